"""The experiments page in a real browser: started, watched, ended with a threshold applied."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.dashboard.house import House


@pytest.fixture(autouse=True)
def nothing_runs(house: House) -> Iterator[None]:
    """No experiment is left running, and the intent is as it was."""
    yield
    for one in house.admin.http.get("/admin/experiments").json()["experiments"]:
        if one["state"] == "running":
            house.admin.http.delete(f"/admin/experiments/{one['id']}")
    house.admin.http.delete("/admin/intents/factual")


def start(operator: Page, threshold: str) -> None:
    operator.goto("/dashboard/experiments")
    operator.locator("#intent").select_option("factual")
    operator.locator("#b").fill(threshold)
    operator.get_by_role("button", name="Start").click()


def test_experiment_runs_until_its_threshold_is_applied(operator: Page, house: House) -> None:
    """The arm that was kept is the intent's threshold, and the history says by whom."""
    start(operator, "0.77")
    card = operator.locator("#experiments section").first
    expect(card).to_contain_text("running")
    expect(card).to_contain_text("0.770")
    card.get_by_role("button", name="Apply B").click()
    expect(operator.locator("#experiments section").first).to_contain_text("applied")
    intent = house.admin.http.get("/admin/intents/factual").json()
    assert intent["threshold"] == 0.77
    changes = house.admin.http.get("/admin/intents/factual/history").json()["changes"]
    assert changes[0]["actor"].startswith("Ada")


def test_experiment_ends_without_a_change_when_it_is_dropped(operator: Page, house: House) -> None:
    """The threshold in force stays."""
    before = house.admin.http.get("/admin/intents/factual").json()["threshold"]
    start(operator, "0.66")
    card = operator.locator("#experiments section").first
    card.get_by_role("button", name="End without a change").click()
    expect(operator.locator("#experiments section").first).to_contain_text("ended")
    assert house.admin.http.get("/admin/intents/factual").json()["threshold"] == before


def test_second_experiment_of_an_intent_is_refused_in_words(operator: Page) -> None:
    """The API's own message stands beside the form."""
    start(operator, "0.7")
    expect(operator.locator("#experiments section").first).to_contain_text("running")
    start(operator, "0.8")
    alert = operator.locator("form[data-method=POST] [role=alert]")
    expect(alert).to_contain_text("has a running experiment")
