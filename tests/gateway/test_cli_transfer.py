"""Import and export of cache entries, against a scripted admin API."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from gateway.cli import strata
from gateway.cli.rows import MAX_BYTES, MAX_ROWS, exported
from tests.fakes.admin import FakeAdminApi, serving

KEY = "an admin key"


@pytest.fixture
def api() -> Iterator[FakeAdminApi]:
    with serving(FakeAdminApi(admin_key=KEY)) as api:
        yield api


def run(api: FakeAdminApi, *arguments: str, stdin: bytes = b"", key: str = KEY) -> Result:
    environ = {"STRATA_ADMIN_KEY": key}
    return CliRunner().invoke(strata, [*arguments, "--url", api.url], input=stdin, env=environ)


def row(prompt: str, **more: Any) -> dict[str, Any]:
    request = {"model": "m", "messages": [{"role": "user", "content": prompt}]}
    return {"request": request, "text": "answer", **more}


def lines(*rows: Any) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def entry(number: int, **more: Any) -> dict[str, Any]:
    return {
        "id": str(number),
        "tenant": "public",
        "namespace": "",
        "tags": [],
        "expires_at": time.time() + 100,
        "request": {"model": "m", "messages": [], "n": number},
        "response": {"choices": []},
        **more,
    }


def test_all_rows_are_stored_when_all_are_good(api: FakeAdminApi, tmp_path: Path) -> None:
    """From a file and from standard input alike."""
    rows = [row("a"), row("b", tags=["t"])]
    (tmp_path / "rows.jsonl").write_bytes(lines(*rows))
    from_file = run(api, "import", str(tmp_path / "rows.jsonl"), "--json")
    assert json.loads(from_file.stdout) == {"imported": 2, "bad": []}
    assert run(api, "import", "-", stdin=lines(*rows)).exit_code == 0
    assert api.batches == [rows, rows]


def test_good_rows_are_kept_and_bad_ones_named_when_a_file_has_both(api: FakeAdminApi) -> None:
    """Each bad line by its number, whoever found the fault; the exit code says so."""
    text = lines(row("a")) + b"\n{broken\n[1]\n" + lines(row("b", bad=1), row("c"))
    result = run(api, "import", "-", "--json", stdin=text)
    report = json.loads(result.stdout)
    assert report["imported"] == 2
    assert [bad["line"] for bad in report["bad"]] == [3, 4, 5]
    assert result.exit_code == 1
    spoken = run(api, "import", "-", stdin=text).stderr
    assert "line 5: request: bad" in spoken


def test_rows_are_sent_in_bounded_requests_when_there_are_many(api: FakeAdminApi) -> None:
    """By number of rows, and by their size."""
    small = [row(str(i)) for i in range(2 * MAX_ROWS + 1)]
    large = [row("x" * (MAX_BYTES // 2)) for _ in range(3)]
    report = json.loads(run(api, "import", "-", "--json", stdin=lines(*small, *large)).stdout)
    assert report["imported"] == len(small) + len(large)
    sizes = [len(batch) for batch in api.batches]
    assert max(sizes) == MAX_ROWS
    assert sizes[-2:] == [1, 1]


def test_nothing_is_imported_when_the_admin_key_is_wrong(api: FakeAdminApi) -> None:
    """The gateway's own words reach the user."""
    result = run(api, "import", "-", stdin=lines(row("a")), key="another key")
    assert "401: the admin key is missing or wrong" in result.stderr
    assert result.exit_code == 1


def test_the_address_is_named_when_no_gateway_answers_there() -> None:
    """With what to do about it."""
    for url in ("http://127.0.0.1:9", "no-scheme"):
        arguments = ["export", "-", "--url", url]
        result = CliRunner().invoke(strata, arguments)
        assert isinstance(result.exception, SystemExit)
        assert url in result.stderr
        assert result.stdout == ""


def test_every_page_is_written_when_entries_are_exported(api: FakeAdminApi, tmp_path: Path) -> None:
    """In rows that import takes, with their place and the time they have left."""
    api.entries = [entry(i) for i in range(8)]
    api.entries[3] |= {"namespace": "n", "tags": ["t"], "tenant": "alice"}
    result = run(api, "export", str(tmp_path / "out.jsonl"), "--json")
    assert json.loads(result.stderr) == {"exported": 8, "skipped": 0, "why": {}}
    rows = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [row["request"]["n"] for row in rows] == list(range(8))
    assert set(rows[0]) == {"request", "response", "ttl", "tenant"}
    assert 98 <= rows[0]["ttl"] <= 100
    assert {"namespace": "n", "tags": ["t"], "tenant": "alice"}.items() <= rows[3].items()


def test_the_selection_is_passed_on_when_entries_are_exported(api: FakeAdminApi) -> None:
    """The gateway filters; standard output carries rows only."""
    api.entries = [entry(1), entry(2)]
    result = run(api, "export", "-", "--tag", "t", "--tenant", "alice")
    assert api.queries[0].items() >= {"tag": "t", "tenant": "alice"}.items()
    assert [json.loads(line)["request"]["n"] for line in result.stdout.splitlines()] == [1, 2]


def test_each_cause_is_counted_when_entries_are_skipped(api: FakeAdminApi) -> None:
    """An embedding, an answer of another version and a lost request; never silently."""
    vector = {"request": {"model": "e", "input": "x"}, "response": None}
    lost = {"request": {"model": "m"}}
    api.entries = [entry(1), entry(2, **vector), entry(3, **vector), entry(4, response=None)]
    api.entries.append(entry(5, **lost))
    spoken = run(api, "export", "-").stderr
    assert "exported 1 entries, skipped 4" in spoken
    assert "skipped 2: an embedding, which is made anew when it is asked for" in spoken
    assert "skipped 1: its answer cannot be read: another version of Strata wrote it" in spoken
    assert "skipped 1: its request was not kept" in spoken
    counts = json.loads(run(api, "export", "-", "--json").stderr)
    assert counts["skipped"] == sum(counts["why"].values()) == len(api.entries) - 1


def test_an_old_file_stays_when_an_export_fails(api: FakeAdminApi, tmp_path: Path) -> None:
    """A file is replaced whole or not at all."""
    (tmp_path / "out.jsonl").write_text("old")
    api.admin_key = "another key"
    assert run(api, "export", str(tmp_path / "out.jsonl")).exit_code == 1
    assert (tmp_path / "out.jsonl").read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["out.jsonl"]


def test_an_entry_lives_a_second_more_when_it_has_less_than_one() -> None:
    """A TTL of nothing would be refused on import."""
    assert exported(entry(1, expires_at=5.0), now=5.5) is not None
    row = exported(entry(1, expires_at=5.0), now=5.5)
    assert row is not None
    assert row["ttl"] == 1
