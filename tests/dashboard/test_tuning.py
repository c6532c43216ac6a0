"""Pages that change things, used by hand: what a person does is what the next request obeys."""

import re
import uuid
from typing import Any

import pytest
from playwright.sync_api import Page, Request, expect

from gateway.dashboard.page import PAGES
from gateway.dashboard.words import visible
from tests.contract.client import until
from tests.dashboard.house import House

ASKED = "What is the capital of France?"
REWORDED = "What's France's capital city?"
HOSTILE = (
    "<img src=x onerror=\"document.title='pwned'\">",
    "</script><script>document.title='pwned'</script>",
    "[x](javascript:document.title='pwned')",
    "{{7*7}} ${7*7}",
    "=1+1",
    "a\u202eb end",
)


@pytest.fixture
def space(house: House) -> dict[str, str]:
    """Headers of a cache space of this test's own."""
    return {"x-strata-namespace": uuid.uuid4().hex}


def ask(house: House, space: dict[str, str], text: str, **fields: Any) -> Any:
    body = {"model": "stub-model", "messages": [{"role": "user", "content": text}], **fields}
    return house.caller.http.post("/v1/chat/completions", json=body, headers=space)


def outcome(house: House, space: dict[str, str], text: str = REWORDED) -> str:
    request = {"model": "stub-model", "messages": [{"role": "user", "content": text}]}
    body = {"request": request, "headers": space}
    response = house.admin.http.post("/admin/cache/lookup", json=body)
    return str(response.json()["outcome"])


def seeded(house: House, space: dict[str, str]) -> Any:
    """Ask a question and then one of its meaning; return the semantic hit."""
    assert ask(house, space, ASKED).status_code == 200
    until(lambda: outcome(house, space) == "semantic", what="seeded")
    return ask(house, space, REWORDED)


def stored(house: House, space: dict[str, str]) -> list[str]:
    """Return the ids of what is kept in one namespace: others' entries come to their end."""
    only = {"namespace": space["x-strata-namespace"]}
    page = house.admin.http.get("/admin/cache/entries", params=only).json()
    return sorted(entry["id"] for entry in page["entries"])


def recorded(house: House, request_id: str) -> None:
    found = f"/admin/requests/{request_id}"
    until(lambda: house.admin.http.get(found).status_code == 200, what="recorded")


def test_next_request_obeys_when_a_threshold_is_applied_and_undone(
    house: House, operator: Page, space: dict[str, str]
) -> None:
    """By keys alone, with a preview first, and the history says who (cases O01)."""
    hit = seeded(house, space)
    recorded(house, hit.headers["x-request-id"])
    intent, score = hit.headers["x-strata-intent"], float(hit.headers["x-strata-score"])
    entries = stored(house, space)
    operator.goto(f"/dashboard/thresholds?intent={intent}")
    before = operator.locator("#in-force").inner_text()
    operator.locator("#threshold").focus()
    operator.keyboard.press("Control+A")
    operator.keyboard.type("1")
    expect(operator.locator("#mode")).to_have_value("manual")
    lost = operator.locator("#preview .tile").nth(1).locator("dd").first
    expect(lost).to_have_text(re.compile("[1-9]"))
    expect(operator.locator("#preview")).to_contain_text(REWORDED)
    operator.keyboard.press("Enter")
    expect(operator.locator("#in-force")).to_have_text("1.000")
    assert score < 1
    until(lambda: outcome(house, space) == "miss", limit_s=5)
    assert stored(house, space) == entries
    expect(operator.locator("#history tbody tr").first).to_contain_text("Ada")
    operator.locator("#undo").focus()
    operator.keyboard.press("Enter")
    expect(operator.locator("#in-force")).to_have_text(before)
    until(lambda: outcome(house, space) == "semantic", limit_s=5)
    house.admin.http.delete(f"/admin/intents/{intent}")


def test_slider_moves_by_arrow_keys_and_the_number_follows(operator: Page) -> None:
    """Dragging is one way of several."""
    operator.goto("/dashboard/thresholds")
    slide = operator.locator("#slide")
    start = float(slide.input_value())
    slide.focus()
    operator.keyboard.press("ArrowLeft")
    assert float(slide.input_value()) == pytest.approx(start - 0.005)
    expect(operator.locator("#threshold")).to_have_value(f"{start - 0.005:.3f}")
    expect(operator.locator("#preview .big")).to_contain_text(f"{start - 0.005:.3f}")


def test_stale_page_changes_nothing_when_somebody_was_faster(house: House, operator: Page) -> None:
    """Two operators at once: the second is told, and sees the first one's value after loading."""
    operator.goto("/dashboard/thresholds?intent=code")
    house.admin.http.put("/admin/intents/code", json={"threshold": 0.91})
    operator.locator("#threshold").fill("0.5")
    operator.locator("#apply").click()
    expect(operator.locator("#tune [role=alert]")).to_contain_text("changed meanwhile")
    assert house.admin.http.get("/admin/intents/code").json()["threshold"] == 0.91
    house.admin.http.delete("/admin/intents/code")


def test_wrong_hit_is_gone_and_the_bound_moves_when_it_is_judged_by_a_key(
    house: House, operator: Page, space: dict[str, str]
) -> None:
    """One key: the pair is not served again, the next pair is there, the estimate knows."""
    hit = seeded(house, space)
    recorded(house, hit.headers["x-request-id"])
    estimate = house.admin.http.get("/admin/stats").json()["wrong_hits"].get("all", {})
    operator.goto("/dashboard/review")
    pair = operator.locator(f'article[data-request^="{hit.headers["x-request-id"]}@"]')
    while not pair.is_visible():
        operator.keyboard.press("s")
    expect(pair.locator("ins").first).to_be_visible()
    with operator.expect_response("**/admin/feedback") as answered:
        operator.keyboard.press("w")
    assert answered.value.status == 200
    expect(pair).to_have_count(0)
    until(lambda: outcome(house, space) == "miss", limit_s=5)

    def moved() -> bool:
        now = house.admin.http.get("/admin/stats").json()["wrong_hits"].get("all", {})
        return bool(now.get("labels", 0) > estimate.get("labels", 0)) and now != estimate

    until(moved, limit_s=10, what="the estimate")
    operator.goto("/dashboard")
    expect(operator.locator("#wrong")).to_contain_text(re.compile("95%"))


def test_requests_are_found_by_filters_that_stand_in_the_address(
    house: House, operator: Page, space: dict[str, str]
) -> None:
    """A filtered list can be sent to a colleague; a row leads to the reasons."""
    hit = seeded(house, space)
    recorded(house, hit.headers["x-request-id"])
    operator.goto("/dashboard/requests")
    operator.locator("#outcome").select_option("semantic")
    operator.locator("#text").fill("France's capital")
    operator.keyboard.press("Enter")
    operator.wait_for_url("**outcome=semantic**")
    rows = operator.locator("#list tbody tr")
    expect(rows.first).to_contain_text(REWORDED)
    expect(operator.locator("#list tbody")).not_to_contain_text(ASKED)
    operator.locator(f'a[href*="{hit.headers["x-request-id"]}"]').click()
    expect(operator.locator("#main")).to_contain_text(ASKED)
    expect(operator.locator("#main")).to_contain_text("Threshold")


def test_hostile_text_is_shown_as_text_on_every_page(house: House, operator: Page) -> None:
    """Prompts, names and tags run nothing and ask nothing of other hosts (case O03)."""
    space = {"x-strata-namespace": "<i>space</i>", "x-strata-tags": "<b>tag</b>"}
    sent = {text: ask(house, space, text).headers["x-request-id"] for text in HOSTILE}
    elsewhere: list[str] = []

    def note(request: Request) -> None:
        if not request.url.startswith((house.stack.url, "data:")):
            elsewhere.append(request.url)

    operator.on("request", note)
    for text, request_id in sent.items():
        recorded(house, request_id)
        operator.goto(f"/dashboard/requests/{request_id}")
        expect(operator.locator(".words").first).to_have_text(visible(text))
        assert operator.title().endswith("Strata")
    for url in PAGES.values():
        operator.goto(url)
        assert operator.title().endswith("Strata")
        assert operator.locator("#main img, #main b, #main i:not(.key)").count() == 0
    assert elsewhere == []


def test_hostile_names_are_shown_as_text_when_a_key_is_guessed_with_them(
    house: House, operator: Page
) -> None:
    """A model's name, a user agent and a bearer token (case O03): the token is on no page."""
    body = {"model": "<b>m</b>", "messages": [{"role": "user", "content": "x"}]}
    headers = {"user-agent": "<svg onload=1>", "authorization": "Bearer sk-test-visible-123"}
    house.caller.http.post("/v1/chat/completions", json=body, headers=headers)
    operator.goto("/dashboard/requests?model=<b>m</b>&text=<script>")
    assert operator.locator("#main b, #main script").count() == 0
    for url in ("/dashboard", "/dashboard/requests", "/admin/requests"):
        assert "sk-test-visible" not in operator.goto(url).text()
