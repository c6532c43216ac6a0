"""Each page in a real browser over real traffic: seen, understood, used by keys alone."""

import pytest
from playwright.sync_api import Page, expect

from gateway.dashboard.language import LANGUAGES, catalogue
from gateway.dashboard.page import PAGES
from tests.dashboard.house import House, OpenContext, signed_in
from tests.dashboard.seeing import faults

NARROW = {"width": 400, "height": 800}


@pytest.fixture(params=["light", "dark"])
def coloured(request: pytest.FixtureRequest, visitor: OpenContext) -> Page:
    return signed_in(visitor(color_scheme=request.param))


def test_page_has_no_serious_accessibility_fault(coloured: Page) -> None:
    """Axe finds nothing serious on any page, in light and in dark."""
    for url in PAGES.values():
        coloured.goto(url)
        assert faults(coloured) == [], url


def test_sign_in_page_has_no_serious_accessibility_fault(visitor: OpenContext) -> None:
    """Nor on the page before all others."""
    page = visitor().new_page()
    page.goto("/dashboard/login")
    assert faults(page) == []


def test_page_fits_a_narrow_screen(visitor: OpenContext) -> None:
    """Nothing makes a page of 400 pixels scroll sideways."""
    page = signed_in(visitor(viewport=NARROW))
    for url in PAGES.values():
        page.goto(url)
        width = page.evaluate("document.documentElement.scrollWidth")
        assert width <= NARROW["width"], url


@pytest.mark.parametrize("language", LANGUAGES)
def test_page_speaks_the_browsers_language(visitor: OpenContext, language: str) -> None:
    """Its heading and its language say so, and the other language is a click away."""
    page = signed_in(visitor(locale=language))
    for name, url in PAGES.items():
        page.goto(url)
        expect(page.locator("html")).to_have_attribute("lang", language)
        expect(page.locator("h1")).to_have_text(catalogue(language)[f"nav.{name}"])
    other = next(each for each in LANGUAGES if each != language)
    page.locator(f"a[hreflang={other}]").click()
    expect(page.locator("html")).to_have_attribute("lang", other)
    page.goto("/dashboard")
    expect(page.locator("html")).to_have_attribute("lang", other)


def test_theme_stays_when_it_was_switched(operator: Page) -> None:
    """Without a flash of the other: the server writes it into the page."""
    operator.locator("#theme").click()
    expect(operator.locator("html")).to_have_attribute("data-theme", "dark")
    operator.reload()
    expect(operator.locator("html")).to_have_attribute("data-theme", "dark")


def test_content_is_reached_by_keys_alone(operator: Page) -> None:
    """The first tab is the way past the navigation."""
    operator.keyboard.press("Tab")
    expect(operator.locator(".skip")).to_be_focused()
    operator.keyboard.press("Enter")
    expect(operator.locator("#main")).to_be_focused()


def test_signing_out_closes_every_page(operator: Page, house: House) -> None:
    """And a wrong key says so."""
    operator.get_by_role("button", name="Sign out").click()
    operator.wait_for_url("**/dashboard/login")
    operator.goto("/dashboard")
    operator.wait_for_url("**/dashboard/login")
    operator.locator("#key").fill("wrong")
    operator.keyboard.press("Enter")
    expect(operator.get_by_role("alert")).to_be_visible()
