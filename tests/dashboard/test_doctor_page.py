"""The doctor's page in a real browser says what the admin API says."""

from playwright.sync_api import Page, expect

from tests.dashboard.house import House

TIMED = "stores"  # on a busy machine a store may be slow at one look and well at the next


def test_findings_are_those_of_the_api(operator: Page, house: House) -> None:
    """Each with its title, its evidence and its mend, the worst first."""
    operator.goto("/dashboard/doctor")
    shown = operator.locator(".finding h2").all_inner_texts()
    graveness = operator.locator(".finding .badge").all_inner_texts()
    ranks = [["Error", "Warning", "Notice", "OK"].index(each) for each in graveness]
    assert ranks == sorted(ranks)
    findings = house.admin.http.get("/admin/doctor").json()["findings"]
    steady = [finding for finding in findings if finding["check"] != TIMED]
    assert len(steady) > 5
    for finding in steady:
        assert finding["title"] in shown
        if finding["mend"]:
            expect(operator.locator("main")).to_contain_text(finding["mend"])
    operator.get_by_role("link", name="Examine again").click()
    expect(operator.locator(".finding").nth(len(steady) - 1)).to_be_visible()
