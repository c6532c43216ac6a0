"""Who may see pages and change things through them."""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace

import httpx
import pytest

from gateway.admin.session import LIFETIME_S, Sessions
from gateway.dashboard.page import POLICY
from semantic_layer import MemoryRecords, StoreUnavailable
from tests.dashboard.house import KEY
from tests.fakes.backends import FakeBackend, whole
from tests.fakes.gateway import QUIET, MemoryGateway

INTENT = "/admin/intents/other"


class SwitchedRecords(MemoryRecords):
    """Records that several gateways share until they are down."""

    is_down = False

    async def put(self, tenant: str, items: Mapping[str, bytes], ttl_s: float) -> None:
        self._check()
        await super().put(tenant, items, ttl_s)

    async def get(
        self, tenant: str, names: Sequence[str], renew_s: float | None = None
    ) -> list[bytes | None]:
        self._check()
        return await super().get(tenant, names, renew_s)

    def _check(self) -> None:
        if self.is_down:
            raise StoreUnavailable("down")


@pytest.fixture
async def client() -> AsyncIterator[httpx.AsyncClient]:
    gateway = MemoryGateway(FakeBackend(whole("made")), replace(QUIET, admin_key=KEY))
    async with gateway.client() as client:
        yield client


async def sign_in(client: httpx.AsyncClient, **form: str) -> httpx.Response:
    return await client.post("/dashboard/login", data={"key": KEY, "name": "Ada", **form})


async def token_of(client: httpx.AsyncClient) -> str:
    page = (await client.get("/dashboard")).text
    return page.split('name="strata-token" content="')[1].split('"')[0]


async def an_intent(client: httpx.AsyncClient) -> str:
    listed = await client.get("/admin/intents", headers={"x-strata-admin-key": KEY})
    return f"/admin/intents/{listed.json()['intents'][0]['name']}"


async def test_pages_lead_to_the_sign_in_when_nobody_is_signed_in(
    client: httpx.AsyncClient,
) -> None:
    """The page that was wanted is where the sign-in leads to."""
    response = await client.get("/dashboard?lang=en")
    assert response.status_code == 303
    assert response.headers["location"] == "/dashboard/login"


async def test_cookie_is_out_of_reach_of_scripts_and_sites_when_signed_in(
    client: httpx.AsyncClient,
) -> None:
    """It is for this host alone, and every page says what it may load."""
    response = await sign_in(client)
    cookie = response.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    page = await client.get("/dashboard")
    assert page.status_code == 200
    assert page.headers["content-security-policy"] == POLICY
    assert page.headers["cache-control"] == "no-store"


@pytest.mark.parametrize("key", ["", "wrong", KEY + "x"])
async def test_sign_in_is_refused_when_the_key_is_wrong(
    client: httpx.AsyncClient, key: str
) -> None:
    """And the page says so, without a cookie."""
    response = await sign_in(client, key=key)
    assert response.status_code == 401
    assert "set-cookie" not in response.headers
    assert KEY not in response.text


@pytest.mark.parametrize(
    "headers",
    [{"origin": "https://evil.example"}, {"sec-fetch-site": "cross-site"}, {"origin": "null"}],
)
async def test_form_of_another_site_is_refused(
    client: httpx.AsyncClient, headers: dict[str, str]
) -> None:
    """Nobody is signed in or out by a page elsewhere."""
    for route in ("login", "logout"):
        response = await client.post(f"/dashboard/{route}", data={"key": KEY}, headers=headers)
        assert response.status_code == 403
        assert "set-cookie" not in response.headers


async def test_change_needs_the_pages_token_when_a_session_makes_it(
    client: httpx.AsyncClient,
) -> None:
    """Reading works by the cookie; a change without the token, or from elsewhere, does not."""
    intent = await an_intent(client)
    await sign_in(client)
    assert (await client.get(intent)).status_code == 200
    assert (await client.put(intent, json={"threshold": 0.9})).status_code == 403
    for headers in (
        {"x-strata-csrf": "0" * 64},
        {"x-strata-csrf": await token_of(client), "origin": "https://evil.example"},
    ):
        response = await client.put(intent, json={"threshold": 0.9}, headers=headers)
        assert response.status_code == 403
    token = {"x-strata-csrf": await token_of(client)}
    assert (await client.put(intent, json={"threshold": 0.9}, headers=token)).status_code == 200
    history = (await client.get(f"{intent}/history")).json()["changes"]
    assert [change["actor"] for change in history] == ["Ada"]


async def test_script_needs_no_token_when_it_has_the_key(client: httpx.AsyncClient) -> None:
    """The admin API stays as it was."""
    intent = await an_intent(client)
    response = await client.put(
        intent, json={"threshold": 0.9}, headers={"x-strata-admin-key": KEY}
    )
    assert response.status_code == 200


async def test_session_ends_when_signing_out(client: httpx.AsyncClient) -> None:
    """A cookie that somebody kept opens nothing."""
    await sign_in(client)
    kept = dict(client.cookies)
    refused = await client.post("/dashboard/logout", data={"token": "guessed"})
    assert refused.status_code == 403
    token = await token_of(client)
    assert (await client.post("/dashboard/logout", data={"token": token})).status_code == 303
    client.cookies.update(kept)
    assert (await client.get("/dashboard")).status_code == 303
    assert (await client.get("/admin/stats")).status_code == 401


async def test_session_ends_at_all_gateways_over_one_store_when_signing_out_at_one() -> None:
    """At once, and a gateway that heard of it keeps to it when the store goes away."""
    shared = SwitchedRecords()
    gateways = [
        MemoryGateway(FakeBackend(whole("made")), replace(QUIET, admin_key=KEY)) for _ in range(2)
    ]
    sessions = [Sessions(shared) for _ in gateways]
    async with (
        gateways[0].client(sessions=sessions[0]) as one,
        gateways[1].client(sessions=sessions[1]) as two,
    ):
        await sign_in(one)
        two.cookies.update(one.cookies)
        token = await token_of(two)
        assert (await one.post("/dashboard/logout", data={"token": token})).status_code == 303
        for _ in range(2):
            assert (await two.get("/dashboard")).status_code == 303
            assert (await two.get("/admin/stats")).status_code == 401
            shared.is_down = True


async def test_person_is_told_when_signing_out_cannot_be_shared() -> None:
    """The session has ended here, and the cookie is gone; a session goes on without the store."""
    shared = SwitchedRecords()
    gateway = MemoryGateway(FakeBackend(whole("made")), replace(QUIET, admin_key=KEY))
    async with gateway.client(sessions=Sessions(shared)) as client:
        await sign_in(client)
        kept = dict(client.cookies)
        shared.is_down = True
        token = await token_of(client)
        told = await client.post("/dashboard/logout", data={"token": token})
        assert told.status_code == 503
        assert "other gateways may take this session" in told.text
        assert not client.cookies
        client.cookies.update(kept)
        assert (await client.get("/dashboard")).status_code == 303


@pytest.mark.parametrize(
    "wanted",
    ["//evil.example", "https://evil.example", "/\\evil", "/v1/models", "/dashboard/login", "é"],
)
async def test_sign_in_leads_to_our_pages_alone(client: httpx.AsyncClient, wanted: str) -> None:
    """A crafted link cannot send an operator elsewhere."""
    response = await sign_in(client, next=wanted)
    assert response.headers["location"] == "/dashboard"


async def test_sign_in_leads_back_to_the_page_that_was_wanted(client: httpx.AsyncClient) -> None:
    """With its filters."""
    response = await sign_in(client, next="/dashboard?a=1&b=2")
    assert response.headers["location"] == "/dashboard?a=1&b=2"


async def test_pages_are_for_this_machine_alone_when_no_key_is_set() -> None:
    """As the admin API; a link from another site shows a page, its fetches and forms do not."""
    gateway = MemoryGateway(FakeBackend(whole("made")))
    async with gateway.client() as local:
        linked = {"sec-fetch-site": "cross-site", "sec-fetch-dest": "document"}
        assert (await local.get("/dashboard")).status_code == 200
        assert (await local.get("/dashboard", headers=linked)).status_code == 200
        framed = {**linked, "sec-fetch-dest": "iframe"}
        assert (await local.get("/dashboard", headers=framed)).status_code == 403
        rebound = {"host": "evil.example"}
        assert (await local.get("/dashboard", headers=rebound)).status_code == 403
        assert (await local.get("/dashboard/login")).status_code == 303
    async with gateway.client(peer="192.0.2.7") as other:
        assert (await other.get("/dashboard")).status_code == 403


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{}", b'{"text": 1}', b"\xff", b'{"text":' + b"[" * 5000]
)
async def test_text_to_be_translated_is_refused_when_it_is_none(
    client: httpx.AsyncClient, body: bytes
) -> None:
    """However deep: the caller's fault, not the gateway's."""
    await sign_in(client)
    assert (await client.post("/dashboard/said", content=body)).status_code == 400
    given = await client.post("/dashboard/said?lang=zh", json={"text": "\U0001f4a9 <b>"})
    assert given.json() == {"text": "\U0001f4a9 <b>"}


async def test_static_files_are_served_with_their_types(client: httpx.AsyncClient) -> None:
    """The sign-in page needs them before anybody is signed in."""
    kinds = {"app.css": "text/css", "app.js": "text/javascript", "icon.svg": "image/svg+xml"}
    for name, kind in kinds.items():
        response = await client.get(f"/dashboard/static/{name}")
        assert response.status_code == 200
        assert response.headers["content-type"].startswith(kind)
    assert (await client.get("/dashboard/static/%2e%2e/page.py")).status_code == 404
    assert (await client.get("/dashboard/page.py")).status_code == 303  # as any page unknown


def test_session_is_read_while_it_is_young_whole_and_of_this_key() -> None:
    """Any other cookie is nobody's."""
    now = [1000.0]
    sessions = Sessions(clock=lambda: now[0])
    cookie = sessions.open("key", "阿达")
    found = sessions.read("key", cookie)
    assert found is not None
    assert found.actor == "阿达"
    data, _, signature = cookie.partition(".")
    for forged in (None, "", ".", data, f"{data}.", f"x{cookie}", f"{data}A.{signature}", "é.é"):
        assert sessions.read("key", forged) is None
    assert sessions.read("another key", cookie) is None
    assert Sessions(clock=lambda: now[0]).read("key", cookie) == found
    now[0] += LIFETIME_S
    assert sessions.read("key", cookie) is None
