"""What a page shows to those who don't see it."""

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

SERIOUS = ("serious", "critical")


def faults(page: Page) -> list[str]:
    """Return the serious findings of axe, each with where it is."""
    found = Axe().run(page).response["violations"]
    return [
        f"{one['id']}: {node['html']}"
        for one in found
        if one["impact"] in SERIOUS
        for node in one["nodes"]
    ]
