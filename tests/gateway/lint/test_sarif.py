"""SARIF output is what the standard's own schema allows, and tells the place where hosts look."""

import json
from typing import Any

import pytest
from pydantic import ValidationError
from pydantic_sarif.model import StaticAnalysisResultsFormatSarifVersion210JsonSchema as Sarif

from gateway.lint import as_sarif
from tests.gateway.lint.conftest import Lint
from tests.gateway.lint.logs import FAULTS, timestamps
from tests.gateway.lint.texts import EN

BAD: dict[str, Any] = {"messages": []}


def checked(written: dict[str, Any]) -> dict[str, Any]:
    """Validate against the models that are generated from OASIS's schema of SARIF 2.1.0."""
    Sarif.model_validate_json(json.dumps(written))
    return written


def test_sarif_is_valid_and_names_the_place_when_a_log_has_a_fault(lint: Lint) -> None:
    """Rule, file, line, field, character and token stand where readers expect them."""
    (log,) = timestamps(EN)
    written = checked(as_sarif(lint([*log.rows, BAD]), "1.0"))
    (run,) = written["runs"]
    (result,) = run["results"]
    assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == "timestamp"
    place = result["locations"][0]
    assert place["physicalLocation"]["artifactLocation"]["uri"] == "log"
    assert place["physicalLocation"]["region"]["startLine"] == 2
    assert place["logicalLocations"][0]["fullyQualifiedName"] == "messages[0].content"
    assert result["properties"]["char"] == log.char
    assert not run["invocations"][0]["executionSuccessful"]


def test_sarif_is_valid_when_a_log_has_every_fault(lint: Lint) -> None:
    """All kinds of results in one run."""
    rows = [row for fault in FAULTS for log in fault(EN) for row in log.rows]
    written = checked(as_sarif(lint(rows), "1.0"))
    assert len(written["runs"][0]["tool"]["driver"]["rules"]) > 5


def test_sarif_is_valid_when_a_log_is_clean(lint: Lint) -> None:
    """No results are an empty list, not a missing one."""
    written = checked(as_sarif(lint([]), "1.0"))
    assert written["runs"][0]["results"] == []


def test_schema_is_strict_when_a_member_is_unknown(lint: Lint) -> None:
    """The check would notice a member that the standard has not."""
    written = as_sarif(lint([]), "1.0")
    written["runs"][0]["tool"]["driver"]["rule"] = []
    with pytest.raises(ValidationError):
        checked(written)
