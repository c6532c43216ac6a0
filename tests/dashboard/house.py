"""What the pages' tests share: the gateway they look at, and how a person signs in."""

from collections.abc import Callable
from dataclasses import dataclass

from playwright.sync_api import BrowserContext, Page

from tests.contract.client import Client
from tests.contract.stack import Stack
from tests.fakes.upstream import FakeUpstream

KEY = "an-admin-key-for-tests"
WIDE = {"width": 1280, "height": 900}
OpenContext = Callable[..., BrowserContext]


@dataclass(frozen=True, slots=True)
class House:
    """A gateway with an admin key, its upstream, a caller of its API and one of its admin API."""

    stack: Stack
    upstream: FakeUpstream
    caller: Client
    admin: Client


def signed_in(context: BrowserContext, name: str = "Ada") -> Page:
    """Sign in as a person does."""
    page = context.new_page()
    page.goto("/dashboard")
    page.locator("#key").fill(KEY)
    page.locator("#name").fill(name)
    page.keyboard.press("Enter")
    page.wait_for_url("**/dashboard")
    return page
