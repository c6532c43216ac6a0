"""The local backend over a client that plays a script: limits, errors, usage, aborts."""

import json
import shutil
from contextlib import aclosing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gateway.backends.base import Delta, Event, Final, Finish, PartHealth, Usage, Work
from gateway.backends.local import LocalBackend
from gateway.backends.tokenizer import Tokenizer
from gateway.errors import BackendError, BackendUnavailable, BadRequest, ContextTooLong
from prefix_layer import EngineConfig, Tokens
from prefix_layer.messages import Failed
from tests.fakes.engine import FakeClient

EOS = 2
HI = [{"role": "user", "content": "Hi"}]


@pytest.fixture(scope="module")
def tokenizer(bundled_chat_model: Path) -> Tokenizer:
    return Tokenizer(bundled_chat_model)


def said(tokenizer: Tokenizer, text: str, num_cached: int = 0) -> list[Tokens]:
    """Return the engine's events for an answer that ends by itself."""
    ids = tokenizer.encode(text)
    return [
        *(Tokens("r", [token_id], None, None, num_cached) for token_id in ids),
        Tokens("r", [EOS], None, "stop", num_cached),
    ]


def local(folder: Path, client: FakeClient, **settings: Any) -> LocalBackend:
    return LocalBackend("m", folder, client, **settings)  # type: ignore[arg-type]


async def ask(backend: LocalBackend, **body: Any) -> list[Event]:
    work = Work("req", "m", {"messages": HI, **body}, b"salt")
    return [event async for event in backend.stream(work)]


def text_of(events: list[Event], index: int = 0) -> str:
    return "".join(e.text for e in events if isinstance(e, Delta) and e.index == index)


async def test_answer_ends_with_finish_and_usage_when_complete(
    bundled_chat_model: Path, tokenizer: Tokenizer
) -> None:
    """The events are the text, one finish, one final; the engine gets ids, salt and stop ids."""
    client = FakeClient(bundled_chat_model, said(tokenizer, "Hello 🌙", num_cached=16), 8192)
    events = await ask(local(bundled_chat_model, client), temperature=0)
    (command,) = client.commands
    num_answer = len(tokenizer.encode("Hello 🌙"))
    assert text_of(events) == "Hello 🌙"
    assert events[-2:] == [Finish(0, "stop"), Final(Usage(len(command.prompt), num_answer, 16))]
    assert command.salt == b"salt"
    assert command.prompt == tokenizer.encode_chat(HI)
    assert EOS in command.sampling.stop_token_ids
    assert client.aborted == 0


async def test_sequence_is_aborted_when_a_stop_string_comes(
    bundled_chat_model: Path, tokenizer: Tokenizer
) -> None:
    """The engine does not go on behind a stop string."""
    client = FakeClient(bundled_chat_model, said(tokenizer, "one two three four"), 8192)
    events = await ask(local(bundled_chat_model, client), stop=["thr"])
    assert text_of(events) == "one two "
    assert Finish(0, "stop", "thr") in events
    assert client.aborted == 1


async def test_sequence_is_aborted_when_the_reader_goes(
    bundled_chat_model: Path, tokenizer: Tokenizer
) -> None:
    """Closing the iterator ends the work, for one choice and for several."""
    client = FakeClient(bundled_chat_model, said(tokenizer, "one two three"), 8192)
    backend = local(bundled_chat_model, client)
    for n in (1, 3):
        work = Work("req", "m", {"messages": HI, "n": n}, b"")
        async with aclosing(backend.stream(work)) as events:
            await anext(events)
    assert client.aborted == 4


async def test_choices_are_complete_when_several_are_asked_for(
    bundled_chat_model: Path, tokenizer: Tokenizer
) -> None:
    """Each choice has its text, its seed and one finish; the prompt counts once."""
    client = FakeClient(bundled_chat_model, said(tokenizer, "Hello there"), 8192)
    events = await ask(local(bundled_chat_model, client), n=3, seed=7)
    assert [text_of(events, index) for index in range(3)] == ["Hello there"] * 3
    assert sorted(e.index for e in events if isinstance(e, Finish)) == [0, 1, 2]
    assert len({command.request_id for command in client.commands}) == 3
    assert len({command.sampling.seed for command in client.commands}) == 3
    num_answer = len(tokenizer.encode("Hello there"))
    assert events[-1] == Final(Usage(len(client.commands[0].prompt), 3 * num_answer, 0))


@pytest.mark.parametrize(
    ("body", "room", "expected"),
    [
        ({"max_tokens": 64}, 8, 8),
        ({"max_tokens": 4}, 8, 4),
        ({"max_completion_tokens": 64}, 1, 1),
        ({}, 8, 8),
        ({}, 500, 20),
        ({"max_tokens": 64}, 500, 64),
    ],
)
async def test_limit_is_cut_to_the_room_when_the_context_ends_first(
    bundled_chat_model: Path, tokenizer: Tokenizer, body: dict[str, int], room: int, expected: int
) -> None:
    """The engine is never asked for more than fits; silence means the default limit."""
    context = len(tokenizer.encode_chat(HI)) + room
    client = FakeClient(bundled_chat_model, said(tokenizer, "Hi"), context)
    await ask(local(bundled_chat_model, client, default_max_tokens=20), **body)
    assert client.commands[0].sampling.max_tokens == expected


@pytest.mark.parametrize("excess", [0, 24_000])
async def test_both_numbers_are_named_when_the_prompt_is_too_long(
    bundled_chat_model: Path, tokenizer: Tokenizer, excess: int
) -> None:
    """A prompt without room for one token is refused before any event, with its size."""
    messages = [{"role": "user", "content": "pebble " * (excess // 2) + "?"}]
    num_prompt = len(tokenizer.encode_chat(messages))
    client = FakeClient(bundled_chat_model, [], num_prompt - excess)
    with pytest.raises(ContextTooLong) as caught:
        await ask(local(bundled_chat_model, client), messages=messages)
    assert str(num_prompt) in caught.value.message
    assert str(num_prompt - excess) in caught.value.message
    assert client.commands == []


@pytest.mark.parametrize(
    ("own", "named", "unnamed"),
    [(40, "maximum context length is 40", "kv_tokens"), (8192, "40 tokens of the 8192", "maximum")],
)
async def test_what_limits_the_prompt_is_named_when_it_is_too_long(
    bundled_chat_model: Path, own: int, named: str, unnamed: str
) -> None:
    """The model's own context, or the pool that holds less of it; in both APIs, with numbers."""
    client = FakeClient(bundled_chat_model, [], 40)
    client.ready = msgspec.structs.replace(client.ready, model_context_length=own)
    backend = local(bundled_chat_model, client)
    long = "pebble " * 100
    bodies = {"chat": {"messages": [{"role": "user", "content": long}]}}
    for api, body in {**bodies, "completions": {"prompt": long}}.items():
        with pytest.raises(ContextTooLong) as caught:
            [each async for each in backend.stream(Work("r", "m", body, b"", api=api))]
        assert named in caught.value.message
        assert unnamed not in caught.value.message


@pytest.mark.parametrize(
    "body",
    [
        {"messages": []},
        {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}]},
        {"logit_bias": {"49152": 1}},
        {"max_tokens": 0},
    ],
)
async def test_nothing_is_generated_when_the_request_is_wrong(
    bundled_chat_model: Path, body: dict[str, Any]
) -> None:
    """A bad request never reaches the engine."""
    client = FakeClient(bundled_chat_model, [], 8192)
    with pytest.raises(BadRequest):
        await ask(local(bundled_chat_model, client), **body)
    assert client.commands == []


async def test_same_prompt_is_rendered_when_content_comes_in_parts(
    bundled_chat_model: Path, tokenizer: Tokenizer
) -> None:
    """Parts and the string they spell are one prompt, without a word of None or null."""
    client = FakeClient(bundled_chat_model, said(tokenizer, "ok"), 8192)
    backend = local(bundled_chat_model, client)
    parts = [{"type": "text", "text": "Repeat the "}, {"type": "text", "text": "code word."}]
    await ask(backend, messages=[{"role": "user", "content": parts}])
    await ask(backend, messages=[{"role": "user", "content": "Repeat the code word."}])
    assert client.commands[0].prompt == client.commands[1].prompt
    call = {"id": "k", "type": "function", "function": {"name": "stock", "arguments": "{}"}}
    for content in ({"content": None}, {}):
        turn = {"role": "assistant", "tool_calls": [call], **content}
        result = {"role": "tool", "tool_call_id": "k", "content": "17 boxes"}
        await ask(backend, messages=[*HI, turn, result])
    assert client.commands[2].prompt == client.commands[3].prompt
    rendered = tokenizer.decode(client.commands[2].prompt)
    assert "17 boxes" in rendered
    assert "stock" in rendered
    assert "None" not in rendered
    assert "null" not in rendered


@pytest.mark.parametrize(
    ("code", "error", "status"),
    [
        ("engine_error", BackendError, 502),
        ("engine_restarted", BackendError, 502),
        ("kv_exhausted", BackendError, 502),
        ("prompt_too_long", ContextTooLong, 400),
    ],
)
async def test_failure_is_translated_when_the_engine_gives_up(
    bundled_chat_model: Path, code: Any, error: type[BackendError], status: int
) -> None:
    """An engine's failure keeps its words."""
    client = FakeClient(bundled_chat_model, [Failed("r", "what happened", code)], 8192)
    with pytest.raises(error, match="what happened") as caught:
        await ask(local(bundled_chat_model, client))
    assert caught.value.status == status


async def test_sequence_runs_anew_when_the_engine_dies_before_its_first_token(
    bundled_chat_model: Path, tokenizer: Tokenizer
) -> None:
    """Whoever asked sees nothing of it."""
    died = Failed("r", "killed", "engine_restarted")
    client = FakeClient(bundled_chat_model, said(tokenizer, "ok"), 8192, first=[died])
    assert text_of(await ask(local(bundled_chat_model, client))) == "ok"
    assert client.commands[0] == client.commands[1]


async def test_sequence_fails_when_the_engine_dies_after_its_first_token(
    bundled_chat_model: Path, tokenizer: Tokenizer
) -> None:
    """What was said cannot be taken back; the client hears of it."""
    begun = [*said(tokenizer, "half of it")[:1], Failed("r", "killed", "engine_restarted")]
    client = FakeClient(bundled_chat_model, said(tokenizer, "ok"), 8192, first=begun)
    with pytest.raises(BackendError, match="killed"):
        await ask(local(bundled_chat_model, client))
    assert len(client.commands) == 1


async def test_backend_is_unavailable_when_no_engine_runs(bundled_chat_model: Path) -> None:
    """Without an engine the error says why, and the model is still listed."""
    client = FakeClient(bundled_chat_model)
    client.state, client.detail = "failed", "no weights in /x"
    backend = local(bundled_chat_model, client)
    with pytest.raises(BackendUnavailable, match="no weights in /x"):
        await ask(backend)
    assert await backend.health() == PartHealth(False, "down", "no weights in /x")
    assert [info.model_id for info in backend.models()] == ["m"]


@pytest.mark.parametrize(
    ("state", "health"),
    [("ready", "ready"), ("starting", "starting"), ("restarting", "starting"), ("closed", "down")],
)
async def test_health_follows_the_engine_when_asked(
    bundled_chat_model: Path, state: str, health: str
) -> None:
    """A restart is a start."""
    client = FakeClient(bundled_chat_model)
    client.state = state
    assert (await local(bundled_chat_model, client).health()).state == health


def test_fingerprint_changes_only_when_answers_may(
    bundled_chat_model: Path, tmp_path: Path
) -> None:
    """The same folder has the same fingerprint; dtype and template change it."""
    for path in bundled_chat_model.iterdir():
        target = tmp_path / path.name
        if path.suffix == ".safetensors":
            target.symlink_to(path)
        else:
            shutil.copy(path, target)

    def fingerprint(folder: Path, **settings: Any) -> str:
        client = FakeClient(folder)
        client.config = EngineConfig(folder, **settings)
        return local(folder, client).models()[0].fingerprint

    first = fingerprint(bundled_chat_model)
    assert fingerprint(tmp_path) == first
    assert fingerprint(tmp_path, kv_tokens=64) == first
    assert fingerprint(tmp_path, dtype="bfloat16") != first
    (tmp_path / "chat_template.jinja").write_text("{{ messages[0].content }}")
    assert fingerprint(tmp_path) != first


def test_one_line_says_why_when_the_model_folder_is_broken(
    bundled_chat_model: Path, tmp_path: Path
) -> None:
    """A folder without configuration stops the start."""
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(bundled_chat_model / name, tmp_path / name)
    with pytest.raises(BackendUnavailable) as caught:
        local(tmp_path, FakeClient(tmp_path))
    assert str(tmp_path) in caught.value.message
    (tmp_path / "config.json").write_text(json.dumps({}))
    local(tmp_path, FakeClient(tmp_path))
