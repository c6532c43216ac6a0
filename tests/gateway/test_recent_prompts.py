"""What is remembered of recent prompts: the nearest one, bounded, and digests over restarts."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from gateway.backends.explanation import Explainer, Explanation, Prompt
from gateway.backends.recent_prompts import RecentPrompts, digest_turns
from gateway.backends.tokenizer import Tokenizer
from prefix_layer import Probed

A, B = b"a", b"b"
MESSAGES = [
    {"role": "system", "content": "Answer from the manual, briefly."},
    {"role": "user", "content": "Hi"},
]


@pytest.fixture(scope="module")
def tokenizer(bundled_chat_model: Path) -> Tokenizer:
    return Tokenizer(bundled_chat_model)


def say(text: str) -> list[dict[str, str]]:
    """Return an answer and the next question."""
    return [{"role": "assistant", "content": "Hello."}, {"role": "user", "content": text}]


def explain(
    tokenizer: Tokenizer,
    recent: RecentPrompts,
    fingerprint: str,
    num_cached: int = 0,
    more: Sequence[dict[str, str]] = (),
) -> Explanation:
    messages = [*MESSAGES, *more]
    ids = tokenizer.encode_chat(messages)
    prompt = Prompt("", ids, tuple(m["role"] for m in messages), digest_turns(messages))
    probed = Probed("p", num_cached, {}, 0, [])
    explainer = Explainer(tokenizer, recent, fingerprint, 16)
    return explainer.explain(prompt, A, probed, is_others=False)


def test_lost_tail_is_named_when_the_whole_prompt_was_seen(tokenizer: Tokenizer) -> None:
    """Less than a block that had to go is no new text."""
    recent, ids = RecentPrompts(), tokenizer.encode_chat(MESSAGES)
    recent.record(A, ids, digest_turns(MESSAGES))
    assert explain(tokenizer, recent, "f", num_cached=len(ids) - 5).cause == "evicted"
    assert explain(tokenizer, recent, "f", num_cached=len(ids) - 1).cause == "none"


@pytest.mark.parametrize(
    ("now", "cause"),
    [
        ("weights-texts", "cleared"),
        ("weights-other", "template_change"),
        ("other-texts", "model_change"),
        ("other-other", "model_change"),
    ],
)
def test_changed_model_is_named_when_the_prompt_was_seen_before_it(
    tokenizer: Tokenizer, tmp_path: Path, now: str, cause: str
) -> None:
    """Digests saved by one run tell the next that template, tokenizer or model changed, or none."""
    before = RecentPrompts()
    before.record(A, [1, 2, 3], digest_turns(MESSAGES))
    before.save(tmp_path / "recent", "weights-texts")
    recent = RecentPrompts()
    recent.load(tmp_path / "recent")
    assert explain(tokenizer, recent, now).cause == cause
    assert b"manual" not in (tmp_path / "recent").read_bytes()


@pytest.mark.parametrize("data", [b"", b"\x00broken", b"\x93\x01\x02\x03"])
def test_broken_memory_counts_as_empty_when_it_is_read(tmp_path: Path, data: bytes) -> None:
    """A file of another version, or half of one, never stops a start."""
    (tmp_path / "recent").write_bytes(data)
    recent = RecentPrompts()
    recent.load(tmp_path / "recent")
    recent.load(tmp_path / "missing")
    assert recent.former_models(A, digest_turns(MESSAGES), "f") == []
    recent.save(tmp_path / "no" / "folder", "f")


def test_nearest_prompt_is_the_one_with_most_to_reuse() -> None:
    """An early edit of a long prompt is nearer than a short prompt that begins alike."""
    recent = RecentPrompts()
    body = list(range(100, 400))
    recent.record(A, [1, 2, 3, 4, 5, 6], ())
    recent.record(A, [1, 2, 9, *body], ())
    recent.record(B, [1, 2, 3, *body], ())
    nearest = recent.nearest((A,), [1, 2, 3, *body])
    assert nearest is not None
    assert (nearest.num_common, nearest.num_reusable) == (2, 299)
    (other,) = recent.of_others((A,), [1, 2, 3, *body])
    assert other.num_common == 303
    assert recent.nearest((b"c",), [1]) is None


def test_memory_is_bounded_when_prompts_keep_coming() -> None:
    """Neither many prompts nor long ones are kept without end; one prompt is kept once."""
    recent = RecentPrompts(max_prompts=10, max_tokens=1000)
    for i in range(100):
        recent.record(A, [i] * 50, ())
        recent.record(A, [i] * 50, (), [7, 8])
    assert recent.nearest((A,), [99] * 50 + [7]) is not None
    kept = [i for i in range(100) if (n := recent.nearest((A,), [i] * 50)) and n.num_common == 50]
    assert kept == list(range(90, 100))
    recent.record(A, [5] * 2000, ())
    assert recent.nearest((A,), [99] * 50) is None


@pytest.mark.parametrize(("num_cached", "says"), [(0, "nothing like it"), (16, "goes on")])
def test_detail_tells_a_first_prompt_from_one_that_goes_on(
    tokenizer: Tokenizer, num_cached: int, says: str
) -> None:
    """With nothing cached there is nothing that the prompt could go on behind."""
    seen = explain(tokenizer, RecentPrompts(), "f", num_cached=num_cached)
    assert seen.cause == "never_seen"
    assert says in seen.detail


def test_miss_after_a_restart_is_not_called_new_when_its_first_messages_are_known(
    tokenizer: Tokenizer, tmp_path: Path
) -> None:
    """What went with a restart is told from a text that only follows known messages."""
    before, recent = RecentPrompts(), RecentPrompts()
    before.record(A, [1], digest_turns(MESSAGES))
    before.save(tmp_path / "recent", "f")
    recent.load(tmp_path / "recent")
    lost = explain(tokenizer, recent, "f", num_cached=16)
    assert lost.cause == "cleared"
    assert f"{recent.since:%Y-%m-%d %H:%M}" in lost.detail
    assert explain(tokenizer, recent, "f", 16, say("more")).cause == "never_seen"
    assert explain(tokenizer, recent, "f", 0, say("more")).cause == "cleared"
