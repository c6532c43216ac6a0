"""The prefixes page in a real browser over a tiny local model: misses explained, prompts pinned."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.contract.prefix_admin.desk import RULES, Desk, system
from tests.contract.stack import serving
from tests.dashboard.house import WIDE
from tests.dashboard.seeing import faults


@pytest.fixture(scope="module")
def desk(
    tiny_chat: Path, models_dir: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Desk]:
    """A gateway with a tiny local model, open to this machine."""
    settings = {"SEMANTIC__ENABLED": "false", "LOCAL__MODEL": str(tiny_chat)}
    with serving(tmp_path_factory.mktemp("prefixes"), models_dir, **settings) as stack:
        yield Desk(stack)


@pytest.fixture
def page(desk: Desk, chromium: Browser) -> Iterator[Page]:
    """The page, with nothing cached."""
    desk.reset()
    with chromium.new_context(
        base_url=str(desk.http.base_url), viewport=WIDE, locale="en-GB"
    ) as context:
        context.set_default_timeout(15_000)
        yield context.new_page()


def paste(page: Page, body: object) -> None:
    page.goto("/dashboard/prefixes")
    page.locator("#request").fill(json.dumps(body))


def test_miss_is_explained_when_its_request_is_pasted(desk: Desk, page: Page) -> None:
    """The cause in words, and the texts where the prompts part."""
    desk.ask(system(f"It is 2026-11-29 10:00:00. {RULES}"), "What is a cache?")
    paste(page, desk.body(system(f"It is 2026-11-30 11:30:00. {RULES}"), "What is a cache?"))
    page.get_by_role("button", name="Explain").click()
    expect(page.locator("[data-show=cause]")).to_have_text("A date or time changes")
    expect(page.locator("[data-show=there]")).to_contain_text("29")
    expect(page.locator("[data-show=here]")).to_contain_text("30")
    assert faults(page) == []


def test_prompt_is_pinned_and_unpinned_by_its_request(desk: Desk, page: Page) -> None:
    """The tree and the figures follow at once."""
    paste(page, desk.body(system(RULES), "Pin me."))
    page.get_by_role("button", name="Compute and pin").click()
    expect(page.locator("[data-show=cause]")).to_have_text("Computed and pinned")
    assert desk.stats()["pinned_blocks"] > 0
    expect(page.locator("#tree")).to_contain_text("pinned")
    page.get_by_role("button", name="Unpin", exact=True).click()
    expect(page.locator("[data-show=cause]")).to_have_text("Unpinned")
    assert desk.stats()["pinned_blocks"] == 0


def test_shared_prefixes_and_what_splits_them_are_shown(desk: Desk, page: Page) -> None:
    """Hits in the tree, and the span that changes with its cause."""
    for minute in range(6):
        clock = f"2026-11-29 10:{minute:02}:00"
        desk.ask(system(f"Now: {clock}. {RULES}"), "What is a cache?")
    desk.ask(system(RULES), "One?")
    desk.ask(system(RULES), "Two?")
    page.goto("/dashboard/prefixes")
    expect(page.locator("#tree tbody tr").first).to_be_visible()
    split = page.locator("[data-fragment] tbody tr").first
    expect(split).to_contain_text("A date or time changes")


def test_fault_is_told_when_the_request_is_none(desk: Desk, page: Page) -> None:
    """Broken JSON and a wrong model are named beside the box."""
    paste(page, {"model": "unknown", "messages": [{"role": "user", "content": "x"}]})
    page.get_by_role("button", name="Explain").click()
    expect(page.locator("#ask [role=alert]")).to_contain_text("model")
    page.locator("#request").fill("{")
    page.get_by_role("button", name="Explain").click()
    expect(page.locator("#ask [role=alert]")).to_contain_text("JSON")


def test_everything_is_forgotten_when_reset(desk: Desk, page: Page) -> None:
    """After the question was confirmed."""
    desk.ask(system(RULES), "Forget me.")
    page.goto("/dashboard/prefixes")
    page.on("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Forget what is not pinned").click()
    expect(page.locator("#said")).to_have_text("Forgotten")
    assert desk.stats()["blocks"]["cached"] == 0


def test_prompt_that_is_a_script_is_shown_as_text_in_the_tree(desk: Desk, page: Page) -> None:
    """What users wrote never runs (field case O03)."""
    script = "<script>document.title='owned'</script><img src=x onerror=alert(1)>"
    for tail in ("one", "two"):
        desk.ask(system(f"{script} {RULES}"), tail)
    page.goto("/dashboard/prefixes")
    expect(page.locator("#tree")).to_contain_text("<script>")
    assert "owned" not in page.title()
