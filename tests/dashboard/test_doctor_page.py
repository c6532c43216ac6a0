"""The doctor's page in a real browser says what the admin API says."""

from playwright.sync_api import Page, expect

from tests.dashboard.house import House


def test_findings_are_those_of_the_api(operator: Page, house: House) -> None:
    """Each with its title, its evidence and its mend, the worst first."""
    operator.goto("/dashboard/doctor")
    shown = operator.locator(".finding h2").all_inner_texts()
    findings = house.admin.http.get("/admin/doctor").json()["findings"]
    assert shown
    assert shown == [finding["title"] for finding in findings]
    for finding in findings:
        if finding["mend"]:
            expect(operator.locator("main")).to_contain_text(finding["mend"])
    operator.get_by_role("link", name="Examine again").click()
    expect(operator.locator(".finding")).to_have_count(len(findings))
