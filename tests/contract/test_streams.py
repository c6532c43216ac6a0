"""Streams, to the letter: text, roles, finishes, usage and the end (field cases P01, P03, P05)."""

import uuid

import pytest

from tests.contract.client import CHAT_MODEL, Client, Stream
from tests.contract.conftest import Relay
from tests.fakes.upstream import Answer, FakeUpstream, split_at, streamed, whole

BYPASS = {"cache-control": "no-cache, no-store"}
UNICODE = "晚安🌙 café Ω 你好👩‍🚀 e\u0301 नमस्ते 🇫🇷"


def content(response_body: dict[str, object]) -> str:
    [choice] = response_body["choices"]  # type: ignore[misc]
    return choice["message"]["content"]  # type: ignore[index,no-any-return]


@pytest.mark.parametrize(
    "prompt",
    [
        "Copy this line exactly: 晚安🌙 café Ω 你好👩‍🚀",
        "Write three emojis and nothing else.",
        "请用中文说“你好”。",
        "Repeat: e\u0301 a\u0300 नमस्ते",
    ],
)
@pytest.mark.parametrize("max_tokens", [3, 24])
def test_stream_equals_the_whole_when_the_model_writes(
    client: Client, prompt: str, max_tokens: int
) -> None:
    """Joined deltas are the whole answer, character for character, also when it is cut."""
    whole_text = content(client.answer(prompt, headers=BYPASS, max_tokens=max_tokens).json())
    stream = client.stream(prompt, headers=BYPASS, max_tokens=max_tokens)
    assert stream.cache == "bypass"
    assert stream.text == whole_text
    assert stream.text.encode()  # no lone surrogate
    for delta in stream.deltas:
        assert "\ufffd" not in (delta.get("content") or "") or "\ufffd" in whole_text


def test_stream_equals_the_whole_when_it_comes_from_the_cache(client: Client) -> None:
    """An imported answer is replayed character for character in both modes."""
    text = UNICODE * 40
    for padding in range(8):
        request = client.body(f"Say the line number {padding}.")
        row = {"request": request, "text": "x" * padding + text}
        namespace = client.http.headers["x-strata-namespace"]
        imported = client.http.post("/admin/cache/entries", json=[{**row, "namespace": namespace}])
        assert imported.status_code == 200, imported.text
        prompt = request["messages"]
        assert content(client.answer(prompt).json()) == row["text"]
        stream = client.stream(prompt)
        assert stream.cache == "exact"
        assert stream.text == row["text"]


def test_text_is_whole_when_the_upstream_flushes_at_every_byte(
    relay: Relay, upstream: FakeUpstream
) -> None:
    """One event a character, the socket flushed at each byte offset in turn."""
    text = "晚安🌙café"
    pieces = streamed(list(text))
    first = len(pieces[0])
    last = first + sum(map(len, pieces[1:-3]))
    for offset in range(first, last):
        upstream.script = lambda call, at=offset: Answer(split_at(pieces, at))
        assert relay.stream("Good night.", headers=BYPASS).text == text
    upstream.script = lambda call: Answer([bytes([byte]) for byte in b"".join(pieces)])
    assert relay.stream("Good night.").text == text
    assert content(relay.seed("Good night.").json()) == text


@pytest.mark.parametrize("asked_as_stream", [True, False])
def test_both_modes_agree_when_the_upstream_has_only_one(
    relay: Relay, upstream: FakeUpstream, asked_as_stream: bool
) -> None:
    """An upstream that ignores ``stream`` serves streaming clients, and the other way round."""
    upstream.script = lambda call: (
        whole(UNICODE) if asked_as_stream else Answer(streamed([UNICODE]))
    )
    if asked_as_stream:
        assert relay.stream("Say it.").text == UNICODE
    else:
        assert content(relay.answer("Say it.").json()) == UNICODE


@pytest.fixture(params=["model", "cache"])
def headers(request: pytest.FixtureRequest) -> dict[str, str]:
    """Once past the caches, once as a hit in a space of its own."""
    return BYPASS if request.param == "model" else {"x-strata-namespace": uuid.uuid4().hex}


def test_usage_comes_last_when_it_was_asked_for(client: Client, headers: dict[str, str]) -> None:
    """Usage in exactly one last event without choices, equal to that of a whole answer."""
    prompt, limit = "Name two rivers.", 12
    if headers is not BYPASS:
        client.seed(prompt, headers=headers, max_tokens=limit)
    usage = client.answer(prompt, headers=headers, max_tokens=limit).json()["usage"]
    asked = client.stream(
        prompt, headers=headers, max_tokens=limit, stream_options={"include_usage": True}
    )
    unasked = client.stream(prompt, headers=headers, max_tokens=limit)
    assert asked.cache == unasked.cache == ("bypass" if headers is BYPASS else "exact")
    assert [counted(made) for made in asked.usages] == [counted(usage)]
    assert asked.chunks[-1]["usage"] is not None
    assert asked.chunks[-1]["choices"] == []
    assert unasked.usages == []
    assert all(chunk["choices"] for chunk in unasked.chunks)
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]
    assert 0 < usage["completion_tokens"] <= limit


def test_usage_of_a_hit_equals_that_of_the_miss(client: Client) -> None:
    """A replay reports the numbers of the answer it replays."""
    miss = client.seed("Name two lakes.", max_tokens=12)
    hit = client.answer("Name two lakes.", max_tokens=12)
    assert hit.headers["x-strata-cache"] == "exact"
    assert counted(hit.json()["usage"]) == counted(miss.json()["usage"])


def counted(usage: dict[str, int]) -> list[int]:
    return [usage[key] for key in ("prompt_tokens", "completion_tokens", "total_tokens")]


def assert_well_formed(stream: Stream, num_choices: int = 1) -> None:
    assert stream.is_done
    assert {chunk["object"] for chunk in stream.chunks} == {"chat.completion.chunk"}
    for key in ("id", "created", "model"):
        assert len({chunk[key] for chunk in stream.chunks}) == 1
    for index in range(num_choices):
        choices = [c for chunk in stream.chunks for c in chunk["choices"] if c["index"] == index]
        reasons = [choice["finish_reason"] for choice in choices]
        assert reasons.count(None) == len(reasons) - 1
        assert reasons[-1] in {"stop", "length"}
        roles = [choice["delta"].get("role") for choice in choices]
        assert roles == ["assistant", *[None] * (len(roles) - 1)]
    indices = {choice["index"] for chunk in stream.chunks for choice in chunk["choices"]}
    assert indices == set(range(num_choices))


@pytest.mark.parametrize(
    ("prompt", "max_tokens"),
    [
        ("Write a long poem about rain.", 1),
        ("Write a long poem about rain.", 9),
        ("Reply with the single word: ok", 64),
        ("What is the capital of Spain?", 64),
    ],
)
def test_stream_is_well_formed_and_ends_as_its_twin(
    client: Client, headers: dict[str, str], prompt: str, max_tokens: int
) -> None:
    """One role, one id, one finish equal to the whole answer's, then ``[DONE]``."""
    twin = client.answer(prompt, headers=headers, max_tokens=max_tokens).json()
    stream = client.stream(prompt, headers=headers, max_tokens=max_tokens)
    assert_well_formed(stream)
    assert stream.finish_reasons[-1] == twin["choices"][0]["finish_reason"]
    assert stream.chunks[0]["model"] == CHAT_MODEL
    if max_tokens < 10:
        assert twin["choices"][0]["finish_reason"] == "length"
        assert twin["usage"]["completion_tokens"] == max_tokens


def test_every_choice_finishes_once_when_several_are_asked_for(client: Client) -> None:
    """With n=3 each choice has its own role, text and finish."""
    stream = client.stream("Name a colour.", n=3, temperature=0.8, seed=4, max_tokens=6)
    assert_well_formed(stream, num_choices=3)
    whole_body = client.answer("Name a colour.", n=3, temperature=0.8, seed=5, max_tokens=6).json()
    assert [choice["index"] for choice in whole_body["choices"]] == [0, 1, 2]


def test_stop_string_is_never_sent_when_it_ends_the_text(client: Client) -> None:
    """The text ends before the stop string in both modes, wherever tokens are cut."""
    prompt = "Count from one to ten in words."
    full = content(client.answer(prompt, max_tokens=20).json())
    for at in range(1, len(full) - 4, len(full) // 4):
        stop = full[at : at + 4]
        answer = client.answer(prompt, max_tokens=20, stop=stop)
        stream = client.stream(prompt, headers=BYPASS, max_tokens=20, stop=[stop])
        assert content(answer.json()) == stream.text == full[: full.index(stop)]
        assert stream.finish_reasons[-1] == "stop"
