"""Two faults in one log are both named, each with its cost, and mended one after the other."""

import pytest

from tests.gateway.lint.conftest import Desk, Lint
from tests.gateway.lint.pairs import FAULTS, fault_pairs, log_of
from tests.gateway.lint.texts import EN, ZH, Texts

PAIRS = fault_pairs()
LEFT = {"edited_history", "unicode_form"}  # need their author


@pytest.mark.parametrize("texts", [EN, ZH], ids=["en", "zh"])
@pytest.mark.parametrize("pair", PAIRS, ids=["-".join(pair) for pair in PAIRS])
def test_both_faults_are_named_when_a_log_has_two(
    lint: Lint, pair: tuple[str, str], texts: Texts
) -> None:
    """No fault hides behind another, and none is named that is not there."""
    report = lint(log_of(pair, texts))
    causes = {FAULTS[name][0] for name in pair}
    assert {finding.cause for finding in report.findings} == causes, report.findings
    assert all(finding.lost_per_1000 > 0 for finding in report.findings)


@pytest.mark.parametrize("pair", PAIRS, ids=["-".join(pair) for pair in PAIRS])
def test_mended_copy_needs_no_mend_when_it_is_mended_again(
    desk: Desk, pair: tuple[str, str]
) -> None:
    """What can be mended is, no fault comes of it, and the replayed share does not fall."""
    before, fixed, rows = desk.fix(log_of(pair, EN))
    assert fixed.after.hit_share >= before.hit_share
    causes = {finding.cause for finding in fixed.after.findings}
    assert causes <= {finding.cause for finding in before.findings} & LEFT
    again, nothing, same = desk.fix(rows)
    assert (nothing.changed, same) == (0, rows)
    assert again.hit_share == fixed.after.hit_share
