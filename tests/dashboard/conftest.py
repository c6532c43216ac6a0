"""One real gateway with an admin key and real traffic, and a real browser, for the pages' tests."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from gateway.bundled import BundledModels
from tests.contract.client import Client
from tests.contract.stack import serving, upstream_toml
from tests.dashboard.house import KEY, WIDE, House, OpenContext, signed_in
from tests.fakes.upstream import FakeUpstream


@pytest.fixture(scope="session")
def house(
    tmp_path_factory: pytest.TempPathFactory, bundled_models: BundledModels, models_dir: Path
) -> Iterator[House]:
    """A relay gateway: the real embedder and stores, a scripted upstream."""
    with FakeUpstream() as upstream:
        toml = upstream_toml(
            upstream.base_url,
            more="prices = { stub-model = { input_per_million = 1, output_per_million = 2 } }",
        )
        folder = tmp_path_factory.mktemp("dashboard")
        settings = {"LOCAL__MODEL": "none", "ADMIN_KEY": KEY}
        with serving(folder, models_dir, toml=toml, **settings) as stack:
            caller, admin = Client(stack.url), Client(stack.url, {"x-strata-admin-key": KEY})
            yield House(stack, upstream, caller, admin)
            caller.close()
            admin.close()


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """Headless Chromium; what needs it is left out, by name, where it is not installed.

    Of a module: while it runs, its event loop stands in the way of tests that are coroutines.
    """
    path = shutil.which("chromium") or shutil.which("google-chrome")
    if path is None:
        pytest.skip("chromium is not installed")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def visitor(chromium: Browser, house: House) -> Iterator[OpenContext]:
    """Make browsers that nobody signed in with; a page's script errors fail the test."""
    opened: list[BrowserContext] = []
    faults: list[str] = []

    def make(**options: object) -> BrowserContext:
        context = chromium.new_context(
            **{"base_url": house.stack.url, "viewport": WIDE, "locale": "en-GB", **options}  # type: ignore[arg-type]
        )
        context.set_default_timeout(15_000)
        context.on("weberror", lambda error: faults.append(str(error.error)))
        opened.append(context)
        return context

    yield make
    for context in opened:
        context.close()
    assert not faults


@pytest.fixture
def operator(visitor: OpenContext) -> Page:
    """A page of a signed-in operator, on the overview."""
    return signed_in(visitor())
