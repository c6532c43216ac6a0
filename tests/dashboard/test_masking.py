"""Where the settings mask prompts, no page holds a word of one."""

import re
from dataclasses import replace
from urllib.parse import unquote

from gateway.dashboard.page import PAGES
from gateway.setting_sections import DashboardSettings
from tests.fakes.backends import FakeBackend, whole
from tests.fakes.gateway import QUIET, MemoryGateway

SECRET = "xylophone"


async def test_no_page_shows_a_word_of_prompts_or_answers_when_they_are_masked() -> None:
    """Only how long they are; a record's own page neither."""
    settings = replace(QUIET, dashboard=DashboardSettings(mask_prompts=True))
    gateway = MemoryGateway(FakeBackend(whole(f"the {SECRET} plays")), settings)
    async with gateway.client() as client:
        body = {"model": "m", "messages": [{"role": "user", "content": f"Which {SECRET}?"}]}
        await client.post("/v1/chat/completions", json=body)
        listed = (await client.get(PAGES["requests"])).text
        assert "16 characters" in listed
        (record,) = re.findall(r'href="(/dashboard/requests/[^"]+)"', listed)
        for url in (*PAGES.values(), unquote(record), f"{unquote(record)}/prefix"):
            page = await client.get(url)
            assert page.status_code == 200, url
            assert SECRET not in page.text, url


async def test_words_are_shown_when_nothing_is_masked() -> None:
    """As text."""
    gateway = MemoryGateway(FakeBackend(whole("made")))
    async with gateway.client() as client:
        body = {"model": "m", "messages": [{"role": "user", "content": f"<b>{SECRET}</b>"}]}
        await client.post("/v1/chat/completions", json=body)
        listed = (await client.get(PAGES["requests"])).text
        assert f"&lt;b&gt;{SECRET}&lt;/b&gt;" in listed
        assert f"<b>{SECRET}" not in listed


async def test_traffic_by_the_minute_is_asked_for_within_bounds() -> None:
    """A script gets what the overview draws."""
    gateway = MemoryGateway(FakeBackend(whole("made")))
    async with gateway.client() as client:
        found = (await client.get("/admin/stats/series?minutes=30&step=10")).json()
        assert found["step_s"] == 600
        assert 3 <= len(found["spans"]) <= 4
        for wrong in ("minutes=0", "minutes=1441", "minutes=x", "step=0", "hours=1"):
            assert (await client.get(f"/admin/stats/series?{wrong}")).status_code == 400
        assert (await client.get("/dashboard?minutes=7")).status_code == 400
