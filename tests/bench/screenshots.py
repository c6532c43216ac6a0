"""Pictures of every page of the dashboard, over a real stack with real traffic.

usage: python -m tests.bench.screenshots OUT_FOLDER [--only PAGE …] [--widths 1280 400]

Needs Chromium. Light and dark, whole pages, as PNG: ``overview-1280-light.png``.
"""

import argparse
import itertools
import os
import shutil
import tempfile
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

from gateway.bundled import default_models_dir
from gateway.dashboard.page import PAGES
from tests.contract.client import Client
from tests.contract.stack import serving

KEY = "an-admin-key-for-pictures"
RULES = "You work for a small online book shop. Answer in one short sentence, and kindly. " * 4
QUESTIONS = """
How do I reset my password? | how can i reset my password | What's the way to reset my password?
When is my parcel delivered? | When will my parcel be delivered?
How do I turn on email updates? | How do I turn off email updates?
What is the capital of Portugal? | whats the capital of portugal | What is the capital of Spain?
Can I return a book I have read? | Is it possible to return a book that I've read?
如何修改收货地址？ | 怎么修改收货地址 | 如何修改付款方式？
Translate good morning to French | translate "good morning" to French
What time is it now? | How many pages has the longest novel?
"""


def visit(chats: Client, admin: Client) -> None:
    """Ask, repeat, reword; judge some hits; begin an experiment; split some prefixes."""
    for _ in range(2):
        for text in QUESTIONS.strip().replace("\n", " | ").split(" | "):
            chats.chat(text, max_tokens=48, headers={"x-strata-tags": "shop"})
    for minute in range(5):
        system = {"role": "system", "content": f"It is 10:0{minute} on 30 November 2026. {RULES}"}
        asked = {"role": "user", "content": f"Which shelf has book {minute}?"}
        chats.chat([system, asked], max_tokens=4)
    for n in range(4):
        asked = {"role": "user", "content": f"Is book {n} in stock?"}
        chats.chat([{"role": "system", "content": RULES}, asked], max_tokens=4)
    listed = admin.http.get("/admin/requests", params={"limit": 100}).json()["requests"]
    hits = [row["id"] for row in listed if row["outcome"] == "semantic"]
    for request_id in hits[: len(hits) // 2]:
        admin.http.post("/admin/feedback", json={"request_id": request_id, "verdict": "right"})
    admin.http.put("/admin/intents/code", json={"mode": "manual", "threshold": 0.9})
    admin.http.post("/admin/experiments", json={"intent": "factual", "b": 0.8})


def sign_in(browser: Browser, url: str, width: int, scheme: str, language: str) -> Page:
    """Open a browser of this width and sign in."""
    context = browser.new_context(
        base_url=url,
        viewport={"width": width, "height": 900},
        color_scheme="dark" if scheme == "dark" else "light",
        locale=language,
    )
    page = context.new_page()
    page.goto("/dashboard/login")
    page.locator("#key").fill(KEY)
    page.keyboard.press("Enter")
    page.wait_for_url("**/dashboard")
    return page


def main(options: argparse.Namespace) -> None:
    """Start the stack, make traffic, take the pictures."""
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        raise SystemExit("chromium is not installed")
    options.out.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as folder,
        serving(Path(folder), default_models_dir(os.environ), ADMIN_KEY=KEY) as stack,
        sync_playwright() as playwright,
    ):
        visit(Client(stack.url), Client(stack.url, {"x-strata-admin-key": KEY}))
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for width, scheme in itertools.product(options.widths, ("light", "dark")):
            page = sign_in(browser, stack.url, width, scheme, options.language)
            for name in options.only or PAGES:
                page.goto(PAGES[name])
                page.wait_for_load_state("networkidle")
                path = options.out / f"{name}-{width}-{scheme}.png"
                page.screenshot(path=path, full_page=True)
                print(path)
            page.context.close()
        browser.close()


def read_options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--only", nargs="*", choices=list(PAGES))
    parser.add_argument("--widths", nargs="*", type=int, default=[1280, 400])
    parser.add_argument("--language", default="en")
    return parser.parse_args()


if __name__ == "__main__":
    main(read_options())
