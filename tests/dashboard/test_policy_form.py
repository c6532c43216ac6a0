"""The form of one intent's policy: what is applied is what was chosen, no more."""

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.dashboard.house import House

INTENT = "code"


@pytest.fixture
def form(house: House, operator: Page) -> Iterator[Page]:
    """The page of an intent that nobody has changed, in mode auto."""
    house.admin.http.delete(f"/admin/intents/{INTENT}")
    operator.goto(f"/dashboard/thresholds?intent={INTENT}")
    yield operator
    house.admin.http.delete(f"/admin/intents/{INTENT}")


def applied(page: Page, house: House) -> Any:
    """Press the button; return the policy that is then in force."""
    with page.expect_response(f"**/admin/intents/{INTENT}") as answered:
        page.locator("#apply").click()
    assert answered.value.status == 200, answered.value.text()
    expect(page.locator("#tune[aria-busy]")).to_have_count(0)
    expect(page.locator("#said")).to_contain_text("Applied")
    return house.admin.http.get(f"/admin/intents/{INTENT}").json()["policy"]


@pytest.mark.parametrize(
    ("field", "value"), [("mode", "off"), ("budget", 0.02), ("ttl", 3600.0), ("mode", "auto")]
)
def test_one_choice_is_applied_alone_when_the_mode_is_not_manual(
    form: Page, house: House, field: str, value: Any
) -> None:
    """The threshold that the box shows is not sent along."""
    if field == "mode":
        form.locator("#mode").select_option(value)
    else:
        form.locator(f"#{field}").fill(str(value))
    nothing = {"mode": "auto", "threshold": None, "budget": None, "ttl": None}
    assert applied(form, house) == {**nothing, field: value}


def test_threshold_is_left_behind_when_the_mode_is_no_longer_manual(
    form: Page, house: House
) -> None:
    """From manual to off, and a manual one keeps its threshold while its budget is changed."""
    form.locator("#threshold").fill("0.91")
    expect(form.locator("#mode")).to_have_value("manual")
    assert applied(form, house)["threshold"] == 0.91
    form.locator("#budget").fill("0.02")
    assert applied(form, house)["threshold"] == 0.91
    form.locator("#mode").select_option("off")
    policy = applied(form, house)
    assert (policy["mode"], policy["threshold"], policy["budget"]) == ("off", None, 0.02)


def test_mode_stays_when_the_threshold_is_cleared(form: Page, house: House) -> None:
    """An empty box asks for nothing."""
    form.locator("#threshold").fill("")
    expect(form.locator("#mode")).to_have_value("auto")
    assert applied(form, house)["mode"] == "auto"
