"""Every fault of a corpus of small logs is found, with its name and place, and nothing else."""

import pytest

from tests.gateway.lint.conftest import Lint
from tests.gateway.lint.formats import FORMATS, Format
from tests.gateway.lint.logs import Log, clean_logs, faulty_logs

FAULTY, CLEAN = faulty_logs(), clean_logs()


@pytest.mark.parametrize("log", [log for _, log in FAULTY], ids=[name for name, _ in FAULTY])
def test_fault_is_named_with_its_place_when_a_log_has_one(lint: Lint, log: Log) -> None:
    """The cause, the field and the character are those that the log was made with."""
    report = lint(log.rows)
    assert [finding.cause for finding in report.findings] == [log.cause], report.findings
    found = report.findings[0]
    assert found.position.field == log.field
    if log.char >= 0:
        assert found.position.char == log.char
    if log.kind:
        assert found.name == log.kind
    assert found.lost_per_1000 > 0
    assert not report.bad


@pytest.mark.parametrize("form", FORMATS.values(), ids=FORMATS)
@pytest.mark.parametrize("log", [log for _, log in FAULTY], ids=[name for name, _ in FAULTY])
def test_fault_is_named_in_the_words_of_its_log_when_another_api_wrote_it(
    lint: Lint, log: Log, form: Format
) -> None:
    """The same faults, field by field, in Anthropic's, Responses', LangChain's and our own logs."""
    report = lint([form.write(row) for row in log.rows])
    assert [finding.cause for finding in report.findings] == [log.cause], report
    found = report.findings[0]
    assert found.position.field == form.field(log.field)
    if log.char >= 0:
        assert found.position.char == log.char
    assert log.kind in found.name
    assert not report.bad


@pytest.mark.parametrize("log", [log for _, log in CLEAN], ids=[name for name, _ in CLEAN])
def test_nothing_is_found_when_a_log_is_clean(lint: Lint, log: Log) -> None:
    """A log without faults is said to have none."""
    report = lint(log.rows)
    assert not report.findings
    assert not report.bad


def test_corpus_is_large_enough() -> None:
    """The corpus has at least sixty logs with a fault."""
    assert len(FAULTY) >= 60
