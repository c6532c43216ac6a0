"""Details of pages in a real browser: live figures, points of a curve, two operators, no page."""

import re
import uuid
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from playwright.sync_api import Page, expect

from gateway.dashboard.page import PAGES
from tests.contract.client import until
from tests.dashboard.house import House, OpenContext, signed_in
from tests.dashboard.seeing import faults

CURVED = "code"  # an intent that no other test of these pages labels
# Elements that show what users wrote, names of settings and models, or keys of the keyboard.
DATA = ".words, .mono, .cut, td.text, code, kbd, pre, textarea, select, .masked, time, .note .text"
ENGLISH = re.compile(r"\b[a-z]{2,} [a-z]{2,} [a-z]{2,}\b", re.IGNORECASE)


def ask(house: House, text: str) -> httpx.Response:
    body = {"model": "stub-model", "messages": [{"role": "user", "content": text}]}
    return house.caller.http.post("/v1/chat/completions", json=body)


def test_overview_follows_the_traffic_without_a_reload(house: House, operator: Page) -> None:
    """A request is made, and the figure moves; what the reader did to the page stays."""
    ask(house, f"First {uuid.uuid4().hex}")
    operator.goto("/dashboard")
    figure = operator.locator(".tile dd").first
    before = int(figure.inner_text().replace(",", ""))
    operator.evaluate("document.title = 'not loaded again'")
    for _ in range(3):
        assert ask(house, f"Again {uuid.uuid4().hex}").status_code == 200
    expect(figure).to_have_text(f"{before + 3:,}", timeout=30_000)
    assert operator.title() == "not loaded again"


PATHS = (
    ("nothing?lang=en", "no page"),
    ("requests/a/b", "no page /dashboard/requests/a/b"),
    ("cache/..%2f..%2fetc%2fpasswd", "no page"),
    ("a/b?lang=zh", "没有页面"),
)


def test_unknown_page_is_a_page_that_leads_back(house: House, operator: Page) -> None:
    """In the reader's language, with the status; a visitor is asked to sign in, as everywhere."""
    for path, words in (
        ("/dashboard/nothing?lang=en", "no page"),
        ("/dashboard/a/b?lang=zh", "没有页面"),
    ):
        answer = operator.goto(f"/dashboard/{path}")
        assert answer is not None
        assert answer.status == 404
        assert "text/html" in answer.headers["content-type"]
        expect(operator.get_by_role("alert")).to_contain_text(words)
        assert faults(operator) == []
    operator.locator("main a").click()
    operator.wait_for_url("**/dashboard")
    operator.goto("/dashboard?lang=en")
    stranger = httpx.get(f"{house.stack.url}/dashboard/<script>", trust_env=False)
    assert (stranger.status_code, stranger.headers["location"][:16]) == (303, "/dashboard/login")


@pytest.fixture
def curve(house: House) -> Iterator[str]:
    """The address of an intent's page with labels at several scores."""
    space = {"x-strata-namespace": uuid.uuid4().hex, "x-strata-intent": CURVED}
    house.admin.http.put(f"/admin/intents/{CURVED}", json={"threshold": 0.2})
    asked = "How do I reverse a list in Python?"
    body = {"model": "stub-model", "messages": [{"role": "user", "content": asked}]}
    house.caller.http.post("/v1/chat/completions", json=body, headers=space)
    for words in ("How can I reverse a list in Python?", "how do i reverse a list in python"):
        request = {**body, "messages": [{"role": "user", "content": words}]}
        lookup = {"request": request, "headers": space}

        def is_served(lookup: dict[str, object] = lookup) -> bool:
            found = house.admin.http.post("/admin/cache/lookup", json=lookup).json()
            return bool(found["outcome"] == "semantic")

        until(is_served, what="stored")
        served = house.caller.http.post("/v1/chat/completions", json=request, headers=space)
        about = {"request_id": served.headers["x-request-id"], "verdict": "right"}
        until(lambda a=about: house.admin.http.post("/admin/feedback", json=a).status_code == 200)
    yield f"/dashboard/thresholds?intent={CURVED}"
    house.admin.http.delete(f"/admin/intents/{CURVED}")


def test_points_of_the_curve_are_named_and_reached_by_keys(operator: Page, curve: str) -> None:
    """Each has its threshold and its labels beside it, and says the rest aloud."""
    operator.goto(curve)
    points = operator.locator(".spots g")
    expect(points.first).to_have_attribute(
        "aria-label", re.compile(r"Threshold 0\.\d+, \d+ labels")
    )
    expect(points.first.locator("text")).to_have_text(re.compile(r"^\d\.\d{3,4} · n=\d+$"))
    operator.locator(".plot:has(.spots)").locator("xpath=ancestor::figure").evaluate(
        "figure => { figure.tabIndex = -1; figure.focus(); }"
    )
    operator.keyboard.press("Tab")
    expect(points.first).to_be_focused()
    expect(points.first).to_have_css("outline-style", "solid")
    expect(points.first.locator("text")).to_have_css("opacity", "1")
    assert faults(operator) == []


def test_second_of_two_browsers_is_told_when_the_first_one_was_faster(
    house: House, visitor: OpenContext
) -> None:
    """O01: the last write does not cover the first; loaded again, it wins, and both are kept."""
    ada, bob = signed_in(visitor(), "Ada"), signed_in(visitor(), "Bob")
    for page in (ada, bob):
        page.goto("/dashboard/thresholds?intent=creative")
    for page, value in ((ada, "0.91"), (bob, "0.55")):
        page.locator("#threshold").fill(value)
    ada.locator("#apply").click()
    expect(ada.locator("#in-force")).to_have_text("0.910")
    bob.locator("#apply").click()
    expect(bob.locator("#tune [role=alert]")).to_contain_text("changed meanwhile")
    assert house.admin.http.get("/admin/intents/creative").json()["threshold"] == 0.91
    bob.reload()
    expect(bob.locator("#in-force")).to_have_text("0.910")
    bob.locator("#threshold").fill("0.55")
    bob.locator("#apply").click()
    expect(bob.locator("#in-force")).to_have_text("0.550")
    expect(bob.locator("#history tbody tr").nth(0)).to_contain_text("Bob")
    expect(bob.locator("#history tbody tr").nth(1)).to_contain_text("Ada")
    house.admin.http.delete("/admin/intents/creative")


def test_no_english_is_left_on_any_page_in_chinese(house: House, visitor: OpenContext) -> None:
    """But for what users wrote and for names; refusals of the API are said in Chinese too."""
    ask(house, "What is the capital of France?")
    page = signed_in(visitor(locale="zh"))
    for url in PAGES.values():
        page.goto(url)
        page.wait_for_load_state("networkidle")
        text = page.evaluate(
            "data => { const seen = document.body.cloneNode(true);"
            " for (const each of seen.querySelectorAll(data)) each.remove();"
            " return seen.innerText || seen.textContent; }",
            DATA,
        )
        assert ENGLISH.search(text) is None, (url, ENGLISH.search(text))
    page.goto("/dashboard/doctor")
    shown = page.locator("main").inner_text()
    for finding in house.admin.http.get("/admin/doctor").json()["findings"]:
        assert finding["title"] not in shown
    page.goto("/dashboard/thresholds?intent=nobody")
    expect(page.get_by_role("alert")).to_contain_text("没有意图")
    page.goto("/dashboard/thresholds?intent=creative")
    house.admin.http.put("/admin/intents/creative", json={"threshold": 0.93})
    page.locator("#threshold").fill("0.5")
    page.locator("#apply").click()
    expect(page.locator("#tune [role=alert]")).to_contain_text("已被他人修改")
    house.admin.http.delete("/admin/intents/creative")


PLACES = (
    "France", "Japan", "Peru", "Kenya", "Norway", "Chile", "Egypt", "Ghana", "Spain", "Nepal",
    "Cuba", "Iran", "Italy", "Poland", "Greece", "Ireland", "Turkey", "Austria", "Mongolia", "Togo",
)  # fmt: skip
TRIED = "translation"  # an intent that no other test of these pages asks by
WOULD = re.compile(r"([\d,]+)\D+([\d,]+)\D+([\d,]+)")


def test_what_the_page_foretells_is_what_twenty_questions_then_get(
    house: House, operator: Page
) -> None:
    """O01: no restart, no entry lost, the same value twice, less hits the higher the threshold."""
    space = {"x-strata-namespace": uuid.uuid4().hex, "x-strata-intent": TRIED}
    admin, caller = house.admin.http, house.caller.http

    def body(text: str) -> dict[str, object]:
        return {"model": "stub-model", "messages": [{"role": "user", "content": text}]}

    seeds = [f"What is the capital of {place}?" for place in PLACES]
    probes = [f"What's the capital city of {place}?" for place in PLACES]
    rows = [
        {"request": body(text), "text": f"It is {at}.", "namespace": space["x-strata-namespace"]}
        for at, text in enumerate(seeds)
    ]
    assert admin.post("/admin/cache/entries", json=rows).status_code in (200, 201)

    def looked_up(text: str) -> dict[str, Any]:
        asked = {"request": body(text), "headers": space}
        return dict(admin.post("/admin/cache/lookup", json=asked).json())

    def entries() -> int:
        query = {"namespace": space["x-strata-namespace"], "limit": 100}
        return len(admin.get("/admin/cache/entries", params=query).json()["entries"])

    until(lambda: all(looked_up(text)["outcome"] == "exact" for text in seeds), what="imported")
    for text in probes:
        caller.post(
            "/v1/chat/completions",
            json=body(text),
            headers={**space, "cache-control": "no-store"},
        )
    replay = f"/admin/intents/{TRIED}/replay"

    def recorded() -> int:
        return int(admin.post(replay, json={"threshold": 1}).json()["num_decisions"])

    until(lambda: recorded() >= len(probes), what="recorded")
    scores = sorted(looked_up(text)["score"] or 0.0 for text in probes)
    middle = scores[len(scores) // 2]
    operator.goto(f"/dashboard/thresholds?intent={TRIED}")
    hits = []
    for value in sorted({0.5, round(middle - 0.02, 3), min(round(middle + 0.02, 3), 1.0), 1.0}):
        for _ in range(2):  # saved twice
            operator.locator("#threshold").fill(str(value))
            operator.locator("#mode").select_option("manual")
            said = operator.locator("#preview")
            expect(said).to_contain_text(f"{value:.3f}")
            numbers = WOULD.search(said.locator("p").nth(1).inner_text())
            operator.locator("#apply").click()
            expect(operator.locator("#in-force")).to_have_text(f"{value:.3f}")
            expect(operator.locator("#tune")).not_to_have_attribute("aria-busy", "true")
        assert numbers is not None
        live = [looked_up(text) for text in probes]
        served = [one for one in live if one["outcome"] == "semantic"]
        assert int(numbers[3]) == len(served), value
        assert all(one["score"] >= value for one in served)
        assert all(one["threshold"] == pytest.approx(value) for one in live)
        hits.append(len(served))
    assert hits == sorted(hits, reverse=True)
    assert hits[0] > hits[-1]
    assert entries() == len(PLACES)
    for wrong in ("-0.1", "1.5"):
        operator.locator("#threshold").fill(wrong)
        operator.locator("#apply").click()
        assert admin.get(f"/admin/intents/{TRIED}").json()["threshold"] == 1.0
    operator.reload()
    expect(operator.locator("#in-force")).to_have_text("1.000")
    admin.delete(f"/admin/intents/{TRIED}")
