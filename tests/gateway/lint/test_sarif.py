"""SARIF output holds what the standard requires, where code hosts look for it."""

from typing import Any

import jsonschema

from gateway.lint import as_sarif
from tests.gateway.lint.conftest import Lint
from tests.gateway.lint.logs import timestamps
from tests.gateway.lint.texts import EN

MESSAGE = {"type": "object", "required": ["text"], "properties": {"text": {"type": "string"}}}
LOCATION = {
    "type": "object",
    "required": ["physicalLocation"],
    "properties": {
        "physicalLocation": {
            "type": "object",
            "required": ["artifactLocation"],
            "properties": {
                "artifactLocation": {
                    "type": "object",
                    "properties": {"uri": {"type": "string", "format": "uri-reference"}},
                },
                "region": {"properties": {"startLine": {"type": "integer", "minimum": 1}}},
            },
        }
    },
}
# Source: OASIS SARIF 2.1.0, sarif-schema-2.1.0.json: what it requires of the objects we write
SARIF = {
    "type": "object",
    "required": ["version", "runs"],
    "properties": {
        "$schema": {"type": "string", "format": "uri"},
        "version": {"const": "2.1.0"},
        "runs": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["tool"],
                "properties": {
                    "tool": {
                        "required": ["driver"],
                        "properties": {
                            "driver": {
                                "required": ["name"],
                                "properties": {
                                    "rules": {
                                        "type": "array",
                                        "uniqueItems": True,
                                        "items": {
                                            "required": ["id"],
                                            "properties": {
                                                "shortDescription": MESSAGE,
                                                "help": MESSAGE,
                                            },
                                        },
                                    }
                                },
                            }
                        },
                    },
                    "columnKind": {"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
                    "results": {
                        "type": "array",
                        "items": {
                            "required": ["message"],
                            "properties": {
                                "message": MESSAGE,
                                "level": {"enum": ["none", "note", "warning", "error"]},
                                "ruleIndex": {"type": "integer", "minimum": 0},
                                "occurrenceCount": {"type": "integer", "minimum": 1},
                                "locations": {"type": "array", "items": LOCATION},
                            },
                        },
                    },
                    "invocations": {
                        "type": "array",
                        "items": {
                            "required": ["executionSuccessful"],
                            "properties": {
                                "toolExecutionNotifications": {
                                    "items": {"required": ["message"]},
                                }
                            },
                        },
                    },
                },
            },
        },
    },
}


def test_sarif_is_valid_and_names_the_place_when_a_log_has_a_fault(lint: Lint) -> None:
    """Rule, file, line, field, character and token stand where readers expect them."""
    (log,) = timestamps(EN)
    bad: dict[str, Any] = {"messages": []}
    written = as_sarif(lint([*log.rows, bad]), "1.0")
    jsonschema.validate(written, SARIF)
    (run,) = written["runs"]
    (result,) = run["results"]
    assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == "timestamp"
    place = result["locations"][0]
    assert place["physicalLocation"]["artifactLocation"]["uri"] == "log"
    assert place["physicalLocation"]["region"]["startLine"] == 2
    assert place["logicalLocations"][0]["fullyQualifiedName"] == "messages[0].content"
    assert result["properties"]["char"] == log.char
    assert not run["invocations"][0]["executionSuccessful"]


def test_sarif_is_valid_when_a_log_is_clean(lint: Lint) -> None:
    """No results are an empty list, not a missing one."""
    written = as_sarif(lint([]), "1.0")
    jsonschema.validate(written, SARIF)
    assert written["runs"][0]["results"] == []
