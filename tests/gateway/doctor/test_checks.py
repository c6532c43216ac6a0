"""Each check against a sound gateway and against the faults that it is there for."""

from typing import Any

import pytest

from gateway.doctor import findings_of
from gateway.doctor.checks import CHECKS
from semantic_layer import PartState
from tests.gateway.doctor.cases import SOUND, Check
from tests.gateway.doctor.faults import FAULTS
from tests.gateway.doctor.seen import (
    NOW,
    engine,
    engine_stats,
    glance,
    only,
    prefix,
    report,
    settings,
    sound,
    span,
    traffic,
)


@pytest.mark.parametrize(("check", "changes", "severity", "mend"), [fault[1:] for fault in FAULTS])
def test_fault_is_found_with_its_mend(
    check: Check, changes: dict[str, Any], severity: str, mend: str
) -> None:
    """One finding, as grave as it is, that names what to change."""
    finding = only(check(sound(**changes)))
    assert finding.severity == severity
    assert mend in finding.mend
    assert finding.evidence


@pytest.mark.parametrize("check", CHECKS)
def test_check_is_ok_when_nothing_is_wrong(check: Check) -> None:
    """It says what it looked at."""
    finding = only(check(sound()))
    assert (finding.severity, finding.mend) == ("ok", "")
    assert finding.evidence


@pytest.mark.parametrize(("check", "changes"), SOUND)
def test_check_is_ok_when_there_is_too_little_to_blame(
    check: Check, changes: dict[str, Any]
) -> None:
    """Small numbers, mended faults and clients' own mistakes are no findings."""
    assert only(check(sound(**changes))).severity == "ok"


@pytest.mark.parametrize(
    ("section", "changes"), [("requests", {"texts": "off"}), ("dashboard", {"mask_prompts": True})]
)
def test_no_words_are_quoted_when_they_are_masked(section: str, changes: dict[str, Any]) -> None:
    """Neither prompts nor questions; figures and mends stay."""
    evicting = engine_stats(evictions_by_tier={"device": 1})
    snapshot = sound(
        settings=settings(section, **changes),
        traffic=traffic(
            *[
                glance(NOW - i, entry="e", seconds=0.1, question="secret question")
                for i in range(30)
            ]
        ),
        engine=engine(
            prompts=report(span(3000)), prefixes=[prefix(text="secret prefix")], stats=evicting
        ),
    )
    told = findings_of(snapshot)
    assert {"prompts", "warm_up", "lifetimes"} <= {f.check for f in told if f.severity != "ok"}
    words = " ".join(finding.title + finding.evidence + finding.mend for finding in told)
    assert "secret" not in words
    assert "a time that changes" not in words


def test_worst_finding_comes_first_when_several_are_found() -> None:
    """Whatever the order of the checks is."""
    found = findings_of(
        sound(
            settings=settings("requests", kept=0),
            stores={"redis": PartState(False, "gone")},
            engine=engine(restarts=1),
        )
    )
    assert [finding.severity for finding in found][:3] == ["error", "warning", "notice"]
    assert {finding.severity for finding in found[3:]} == {"ok"}


def test_every_check_speaks_when_a_gateway_has_seen_nothing() -> None:
    """One line each, all well: a fresh start is no fault."""
    found = findings_of(sound())
    assert len({finding.check for finding in found}) == len(CHECKS)
    assert {finding.severity for finding in found} == {"ok"}
