"""Mends that are tried on stretches of a long log, and made in all of it."""

import json
import random
from pathlib import Path

import pytest

from gateway.lint import Cache, PromptTokens, lint_file
from gateway.lint.trials import STRETCH_ROWS, Trials
from tests.bench.lint_logs import agent_log, write
from tests.gateway.lint.logs import chat, system_of
from tests.gateway.lint.texts import EN

NUM_REQUESTS = 4 * STRETCH_ROWS


@pytest.fixture
def cache(bundled_chat_model: Path) -> Cache:
    return Cache(bundled_chat_model, block_size=16, num_blocks=4096)


def test_whole_log_is_mended_when_stretches_of_it_are_tried(
    tmp_path: Path, cache: Cache, tokens: PromptTokens
) -> None:
    """The copy is that of trials of the whole; no more requests are replayed than asked for."""
    log = write(tmp_path / "log.jsonl", agent_log(NUM_REQUESTS))
    report = lint_file(cache, log, "log", lambda _: None, tokens)
    copies = []
    for most in (NUM_REQUESTS, STRETCH_ROWS):
        folder = tmp_path / str(most)
        folder.mkdir()
        made = Trials(cache, folder, tokens, lambda _: None, most).best(log, report)
        assert made is not None
        assert len(made.changed) == NUM_REQUESTS
        copies.append(made.path.read_bytes())
    assert copies[0] == copies[1]
    tried = (folder / "stretches.jsonl").read_bytes().splitlines()
    assert len(tried) == STRETCH_ROWS


def test_estimate_spans_what_a_small_cache_reaches(
    tmp_path: Path, cache: Cache, tokens: PromptTokens
) -> None:
    """Mended prompts share more, so that fewer are pushed out: more than is lost may be won."""
    rng = random.Random(3)
    topics = [[f"{topic} {chunk}" for chunk in EN.chunks] for topic in ("A", "B", "C", "D", "E")]
    rows = []
    for at in range(300):
        shown = rng.choice(topics)
        text = "\n\n".join([*rng.sample(shown, len(shown)), f"What of {at}?"])
        rows.append(chat(("system", system_of(EN)), ("user", text)))
    log = write(tmp_path / "log.jsonl", rows)
    ample = lint_file(cache, log, "log", lambda _: None, tokens)
    assert ample.reachable_share == ample.reachable_most
    small = Cache(cache.model_path, cache.block_size, num_blocks=64)
    report = lint_file(small, log, "log", lambda _: None, tokens)
    in_order = [json.loads(json.dumps(row)) for row in rows]
    for row in in_order:
        *chunks, question = row["messages"][1]["content"].split("\n\n")
        row["messages"][1]["content"] = "\n\n".join([*sorted(chunks), question])
    mended = lint_file(small, write(tmp_path / "m.jsonl", in_order), "m", lambda _: None, tokens)
    assert report.hit_share < report.reachable_share < report.reachable_most
    assert report.reachable_share - 0.03 < mended.hit_share < report.reachable_most + 0.03
