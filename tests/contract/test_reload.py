"""New settings for a running gateway: in force at once, no stream lost, wrong ones refused."""

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.client import until
from tests.contract.conftest import Relay
from tests.contract.stack import Stack, serving, upstream_toml
from tests.fakes.upstream import FakeUpstream, Gate, echo, in_two_parts

HELD = '[local]\nmodel = "none"\n'


@pytest.fixture(scope="module")
def other() -> Iterator[FakeUpstream]:
    with FakeUpstream() as fake:
        yield fake


@pytest.fixture(scope="module")
def reloaded(
    tmp_path_factory: pytest.TempPathFactory, serving_models: Path, shared_upstream: FakeUpstream
) -> Iterator[Stack]:
    """A gateway whose settings file the tests rewrite."""
    toml = HELD + upstream_toml(shared_upstream.base_url)
    folder = tmp_path_factory.mktemp("reloaded")
    settings = {"SEMANTIC__ENABLED": "false", "LOG__FORMAT": "json"}
    with serving(folder, serving_models, toml=toml, **settings) as started:
        yield started


@pytest.fixture
def caller(reloaded: Stack) -> Iterator[Relay]:
    made = Relay(reloaded.url)
    yield made
    made.close()


def write(stack: Stack, text: str) -> None:
    (stack.folder / "strata.toml").write_text(text, encoding="utf-8")


def reload(caller: Relay) -> dict[str, list[str]]:
    answered = caller.http.post("/admin/reload")
    assert answered.status_code == 200, answered.text
    return dict(answered.json())


def test_a_stream_ends_where_it_began_when_its_upstream_is_replaced(
    reloaded: Stack, caller: Relay, upstream: FakeUpstream, other: FakeUpstream
) -> None:
    """The running stream is whole, the next request goes to the new address, and back again."""
    gate = Gate()
    upstream.script = lambda call: in_two_parts(gate)
    other.script = echo
    with caller.opened("Tell me.", headers={"cache-control": "no-store"}) as response:
        lines = response.iter_lines()
        next(line for line in lines if "first" in line)
        write(reloaded, HELD + upstream_toml(other.base_url))
        assert reload(caller) == {"changed": ["upstreams"], "restart_needed": []}
        caller.answer("Who answers now?")
        assert len(other.calls) == 1
        gate.open()
        rest = "".join(lines)
    assert "last" in rest
    assert "[DONE]" in rest
    upstream.script = echo
    write(reloaded, HELD + upstream_toml(upstream.base_url))
    assert reload(caller)["changed"] == ["upstreams"]


def test_every_line_is_json_when_logs_are(reloaded: Stack) -> None:
    """The one that says where the gateway listens too."""

    def said() -> list[dict[str, object]]:
        return [json.loads(line) for line in reloaded.log.splitlines()]

    until(lambda: any(line["event"] == "ready" for line in said()), what="the line")
    (ready,) = [line for line in said() if line["event"] == "ready"]
    assert (ready["url"], ready["level"]) == (reloaded.url, "info")
    assert "timestamp" in ready


def test_prompts_are_masked_on_pages_as_soon_as_the_settings_say_so(
    reloaded: Stack, caller: Relay, upstream: FakeUpstream
) -> None:
    """Whoever looks over an operator's shoulder reads none, without a restart."""
    own, question = upstream_toml(upstream.base_url), "What of my secret garden?"
    caller.answer(question)

    def page() -> str:
        return caller.http.get("/dashboard/requests").text

    until(lambda: question in page(), what="recorded")
    write(reloaded, HELD + "[dashboard]\nmask_prompts = true\n" + own)
    assert reload(caller) == {"changed": ["dashboard.mask_prompts"], "restart_needed": []}
    assert question not in page()
    write(reloaded, HELD + own)
    assert reload(caller)["changed"] == ["dashboard.mask_prompts"]
    assert question in page()


def test_what_needs_a_restart_is_named_when_it_changed(
    reloaded: Stack, caller: Relay, upstream: FakeUpstream
) -> None:
    """What can be is in force at once; the rest waits, and is named again the next time."""
    own = upstream_toml(upstream.base_url)
    write(
        reloaded,
        HELD + "[cache]\nmax_temperature = 0.5\nwrite_queue = 7\n[redis]\ntimeout_s = 9\n" + own,
    )
    assert reload(caller) == {
        "changed": ["cache.max_temperature"],
        "restart_needed": ["cache.write_queue", "redis.timeout_s"],
    }
    assert caller.answer("Hi", temperature=0.7).headers["x-strata-cache"] == "bypass"
    assert reload(caller) == {
        "changed": [],
        "restart_needed": ["cache.write_queue", "redis.timeout_s"],
    }
    write(reloaded, HELD + own)
    assert reload(caller) == {"changed": ["cache.max_temperature"], "restart_needed": []}
    assert caller.answer("Hello", temperature=0.7).headers["x-strata-cache"] == "miss"


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ("[cache]\nttl_s = -1\n", "cache.ttl_s"),
        ("[cache]\nttl = 5\n", "ttl"),
        ("[cache\n", "TOML"),
        ('api_keys_file = "not-there.toml"\n', "not-there.toml"),
    ],
)
def test_nothing_changes_when_the_file_is_wrong(
    reloaded: Stack, caller: Relay, upstream: FakeUpstream, wrong: str, named: str
) -> None:
    """The answer and the log say why; requests go on as before."""
    own = upstream_toml(upstream.base_url)
    text = wrong + own if wrong.startswith("api_keys") else '[log]\nlevel = "debug"\n' + wrong + own
    write(reloaded, text)
    answered = caller.http.post("/admin/reload")
    assert answered.status_code == 400
    assert named in answered.json()["error"]["message"]
    assert "settings_not_reloaded" in reloaded.log
    assert caller.answer("Still there?").headers["x-strata-cache"] in {"miss", "exact"}
    write(reloaded, HELD + own)
    assert reload(caller) == {"changed": [], "restart_needed": []}


def test_settings_are_read_again_when_a_hangup_comes(
    reloaded: Stack, caller: Relay, upstream: FakeUpstream
) -> None:
    """SIGHUP does the same as the route, and the process goes on."""
    own = upstream_toml(upstream.base_url)
    write(reloaded, HELD + "[cache]\nmax_temperature = 0.3\n" + own)
    os.kill(reloaded.pid, signal.SIGHUP)

    def outcome() -> str:
        return caller.answer("Hey", temperature=0.4).headers["x-strata-cache"]

    until(lambda: outcome() == "bypass", what="the new temperature")
    write(reloaded, HELD + own)
    os.kill(reloaded.pid, signal.SIGHUP)
    until(lambda: outcome() != "bypass", what="the old temperature")


def test_keys_are_asked_for_when_a_file_of_them_is_named(
    reloaded: Stack, caller: Relay, upstream: FakeUpstream
) -> None:
    """An open gateway closes without a restart, and opens again."""
    own = upstream_toml(upstream.base_url)
    (reloaded.folder / "keys.toml").write_text("", encoding="utf-8")
    write(reloaded, 'api_keys_file = "keys.toml"\n' + HELD + own)
    assert reload(caller)["changed"] == ["api_keys_file"]
    assert caller.chat("Hi").status_code == 401
    write(reloaded, HELD + own)
    assert reload(caller)["changed"] == ["api_keys_file"]
    assert caller.chat("Hi").status_code == 200
