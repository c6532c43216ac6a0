"""A long log is read beside a second process, in flat memory, with the same result."""

import json
from pathlib import Path
from typing import Any

from gateway.lint import Cache, LogReader, PromptTokens
from gateway.lint.log_reader import BATCH_ROWS, SHORT_ROWS
from tests.gateway.lint.logs import chat

RULES = "Be brief, be kind, cite your sources and never guess at numbers. Ask back when in doubt."


def row(at: int) -> dict[str, Any]:
    clock = f"{at // 3600 % 24:02}:{at // 60 % 60:02}:{at % 60:02}"
    return chat(("system", f"You help.\nNow: {clock}\n{RULES}"), ("user", f"Question {at}?"))


def test_hits_are_counted_in_a_second_process_when_a_log_is_long(
    bundled_chat_model: Path, tokens: PromptTokens
) -> None:
    """Rows are handed on batch by batch, none is kept, and progress is told all the way."""
    told: list[int] = []
    reader = LogReader(Cache(bundled_chat_model, 16, 4096), told.append, tokens)
    num_rows = SHORT_ROWS + 3 * BATCH_ROWS + 7
    try:
        reader.read("log", (json.dumps(row(at)).encode() for at in range(num_rows)))
        assert len(reader._batch) < BATCH_ROWS
        report = reader.report()
    finally:
        reader.close()
    assert told == list(range(BATCH_ROWS, num_rows, BATCH_ROWS))
    assert report.requests == num_rows
    assert [finding.cause for finding in report.findings] == ["timestamp"]
    assert report.findings[0].requests > 0.9 * num_rows
    assert 0 < report.hit_share < report.reachable_share <= 1
