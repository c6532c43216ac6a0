"""What a person is typing stays, whatever the page does meanwhile."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, Route, expect

from tests.dashboard.house import KEY, House

INTENT = "summarization"
PAGE = f"/dashboard/thresholds?intent={INTENT}"


@pytest.fixture
def form(house: House, operator: Page) -> Iterator[Page]:
    """The page of an intent that no other test changes."""
    operator.goto(PAGE)
    yield operator
    house.admin.http.delete(f"/admin/intents/{INTENT}")


def sign_out(page: Page) -> None:
    """End the page's session, as its other tab would."""
    token = page.locator("meta[name=strata-token]").get_attribute("content")
    answer = page.context.request.post("/dashboard/logout", form={"token": str(token)})
    assert answer.url.endswith("/dashboard/login")


def sign_in(page: Page) -> None:
    page.locator("#key").fill(KEY)
    page.keyboard.press("Enter")


def type_threshold(page: Page, value: str) -> None:
    """Type it, and wait until the page has nothing more to fetch."""
    page.locator("#threshold").fill(value)
    expect(page.locator("#preview .big")).to_contain_text(value)


def test_edits_stay_when_they_are_made_while_the_page_renews_itself(
    form: Page, house: House
) -> None:
    """Behind Apply the form is replaced: what was sent is shown as it is now, the rest is kept."""
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    form.route("**/dashboard/thresholds?**", hold, times=1)
    form.locator("#threshold").fill("0.91")
    form.locator("#apply").click()
    form.wait_for_function("document.querySelector('#tune[aria-busy]')")
    form.locator("#budget").fill("0.03")
    form.locator("#ttl").press_sequentially("7")
    while not held:
        form.wait_for_timeout(20)
    form.locator("#ttl").press_sequentially("5")
    held[0].continue_()
    expect(form.locator("#in-force")).to_have_text("0.910")
    expect(form.locator("#budget")).to_have_value("0.03")
    expect(form.locator("#ttl")).to_be_focused()
    expect(form.locator("#ttl")).to_have_value("75")
    expect(form.locator("#mode")).to_have_value("manual")
    form.locator("#apply").click()
    expect(form.locator("#history tbody tr").first).to_contain_text("3.0%")
    policy = house.admin.http.get(f"/admin/intents/{INTENT}").json()["policy"]
    assert policy == {"mode": "manual", "threshold": 0.91, "budget": 0.03, "ttl": 75.0}


def test_edits_stay_when_the_language_is_changed(form: Page) -> None:
    """Once: another page, or this one loaded again, is as it is."""
    form.locator("#threshold").fill("0.77")
    form.locator("#ttl").fill("90")
    form.locator(".tools a[hreflang=zh]").click()
    expect(form.locator("html")).to_have_attribute("lang", "zh")
    expect(form.locator("#threshold")).to_have_value("0.77")
    expect(form.locator("#slide")).to_have_value("0.77")
    expect(form.locator("#mode")).to_have_value("manual")
    expect(form.locator("#ttl")).to_have_value("90")
    expect(form.locator("#preview .big")).to_contain_text("0.770")
    form.goto(f"{PAGE}&lang=en")
    expect(form.locator("#ttl")).to_have_value("")


def test_edits_stay_when_the_session_ended_meanwhile(form: Page, house: House) -> None:
    """The key is asked for, and the page is there again as it was left: nothing was applied."""
    type_threshold(form, "0.88")
    sign_out(form)
    form.locator("#apply").click()
    form.wait_for_url("**/dashboard/login?**")
    sign_in(form)
    form.wait_for_url(f"**{PAGE}")
    expect(form.locator("#threshold")).to_have_value("0.88")
    assert house.admin.http.get(f"/admin/intents/{INTENT}").json()["policy"] is None
    form.locator("#apply").click()
    expect(form.locator("#in-force")).to_have_text("0.880")


def test_edits_stay_when_another_tab_has_signed_in_anew(form: Page) -> None:
    """The page's token is of the session before; it is loaded again with what was typed."""
    type_threshold(form, "0.86")
    sign_out(form)
    other = form.context.new_page()
    other.goto(PAGE)
    sign_in(other)
    other.wait_for_url(f"**{PAGE}")
    with form.expect_event("load"):
        form.locator("#apply").click()
    expect(form.locator("#threshold")).to_have_value("0.86")
    form.locator("#apply").click()
    expect(form.locator("#in-force")).to_have_text("0.860")
