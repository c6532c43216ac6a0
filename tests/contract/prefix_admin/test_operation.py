"""Public prompts, events and the warm-up command of a gateway that an operator set up."""

import json
import subprocess
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import zmq

from tests.contract.client import until
from tests.contract.prefix_admin.desk import RULES, Desk, Json, system, user
from tests.contract.stack import Stack, command, environment


@pytest.fixture(scope="module")
def operated(
    serve: Callable[..., Any], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Stack]:
    """A gateway whose settings name public prompts and a socket for routers."""
    folder = tmp_path_factory.mktemp("operated")
    row = {"messages": [system(f"House rules. {RULES}"), user("Hi")]}
    (folder / "public.jsonl").write_text(json.dumps(row) + "\n\n")
    settings = {"LOCAL__PUBLIC_PREFIXES": str(folder / "public.jsonl"), "LOCAL__KV_EVENTS": "on"}
    with serve(**settings) as stack:
        yield stack


def test_public_prompts_are_there_when_the_gateway_starts(operated: Stack) -> None:
    """The settings' public prompts are computed, pinned and shared before the first request."""
    desk = Desk(operated)
    assert desk.stats()["pinned_blocks"] > 0
    assert desk.cached(system(f"House rules. {RULES}"), "Whatever") > 40
    assert any(node["tenant"] == "(shared)" for node in desk.tree()["prefixes"])


def test_routers_hear_of_new_blocks_when_events_are_on(operated: Stack) -> None:
    """A subscriber on the socket in the data folder learns what a request stored."""
    desk = Desk(operated)
    path = Path(operated.settings["STRATA_DATA_DIR"]) / "kv-events.sock"
    heard: list[Json] = []
    with zmq.Context() as context, context.socket(zmq.SUB) as socket:
        socket.setsockopt(zmq.SUBSCRIBE, b"kv")
        socket.connect(f"ipc://{path}")

        def hear() -> bool:
            desk.ask(system(f"Told to routers. {RULES}"), f"{len(heard)} {uuid.uuid4()} {RULES}")
            while socket.poll(200):
                _, number, payload = socket.recv_multipart()
                heard.append(msgspec.msgpack.decode(payload))
                assert int.from_bytes(number, "big") == heard[-1]["sequence"]
            return any(event["type"] == "stored" for batch in heard for event in batch["events"])

        until(hear, what="a stored event")
    stored = [e for batch in heard for e in batch["events"] if e["type"] == "stored"]
    assert all(e["num_tokens"] == len(e["hashes"]) * 16 and e["tier"] == "device" for e in stored)


def test_command_warms_a_file_when_it_is_run(operated: Stack, tmp_path: Path) -> None:
    """``strata warm`` computes and pins what its file says, and tells what it did."""
    desk = Desk(operated)
    rows = [desk.body(system(f"Warmed by command {i}. {RULES}"), "Hi") for i in range(3)]
    path = tmp_path / "prompts.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in [*rows, {"model": desk.model}]))
    done = subprocess.run(
        command("warm", str(path), "--pin", "--json", "--url", operated.url),
        env=environment(operated.settings),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    told = json.loads(done.stdout)
    assert done.returncode == 1, done.stderr
    assert (told["warmed"], [bad["line"] for bad in told["bad"]]) == (3, [4])
    assert told["bad"][0]["message"].startswith("messages: ")
    again = desk.warm(*rows)
    assert again["computed_tokens"] == 0
    assert all(row["pinned"] for row in again["results"])


def test_pins_come_back_when_the_engine_died(operated: Stack) -> None:
    """An engine that is started anew computes pinned and public prompts again."""
    desk = Desk(operated)
    before = desk.stats()["pinned_blocks"]
    assert before > 0
    operated.child("prefix_layer.process").kill()
    until(lambda: desk.stats()["engine"]["restarts"] == 1, what="restart seen")
    until(lambda: desk.stats().get("pinned_blocks") == before, limit_s=60, what="pinned again")
    assert desk.cached(system(f"House rules. {RULES}"), "After all") > 40


def test_pins_stay_off_when_the_command_took_them_off(operated: Stack) -> None:
    """``strata unpin`` lasts: an engine that is started anew pins nothing, public stays public."""
    desk, before = Desk(operated), Desk(operated).stats()
    assert before["pinned_blocks"] > 0
    done = subprocess.run(
        command("unpin", "--json", "--url", operated.url),
        env=environment(operated.settings),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert json.loads(done.stdout)["unpinned_blocks"] == before["pinned_blocks"]
    operated.child("prefix_layer.process").kill()
    restarts = before["engine"]["restarts"] + 1
    until(lambda: desk.stats()["engine"]["restarts"] == restarts, what="restart seen")
    until(lambda: desk.stats()["engine"]["state"] == "ready", limit_s=60, what="ready again")
    assert desk.cached(system(f"House rules. {RULES}"), "Once more") > 40
    assert desk.stats()["pinned_blocks"] == 0


def test_start_stops_with_one_line_when_a_public_prompt_is_wrong(
    tiny_chat: Path, serving_models: Path, tmp_path: Path
) -> None:
    """A public prompt that cannot be used stops the start and names its line."""
    (tmp_path / "public.jsonl").write_text('\n{"messages": []}\n')
    settings = {
        "STRATA_SEMANTIC__ENABLED": "false",
        "STRATA_LOCAL__MODEL": str(tiny_chat),
        "STRATA_LOCAL__PUBLIC_PREFIXES": str(tmp_path / "public.jsonl"),
    }
    stack = Stack(tmp_path, serving_models, settings)
    done = subprocess.run(
        command("serve"),
        env=environment(stack.settings),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode != 0
    assert "public.jsonl line 2" in done.stderr + done.stdout
