"""A report as SARIF 2.1.0, which code hosts and editors read.

Source: OASIS, Static Analysis Results Interchange Format (SARIF) Version 2.1.0, sections 3.13
(sarifLog) to 3.52.
"""

from typing import Any

from gateway.lint.finding import MENDS, Finding, Report

SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
STDIN_URI = "stdin"


def as_sarif(report: Report, version: str) -> dict[str, Any]:
    """Write one run with a rule per cause, a result per finding and a notification per bad row."""
    causes = sorted({finding.cause for finding in report.findings})
    driver = {
        "name": "strata lint",
        "version": version,
        "rules": [_rule(cause) for cause in causes],
    }
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": [_result(finding, causes.index(finding.cause)) for finding in report.findings],
        "invocations": [
            {
                "executionSuccessful": not report.bad,
                "toolExecutionNotifications": [
                    {
                        "level": "error",
                        "message": {"text": bad.message},
                        "locations": [_location(bad.file, bad.line)],
                    }
                    for bad in report.bad
                ],
            }
        ],
        "properties": {
            "requests": report.requests,
            "promptTokens": report.prompt_tokens,
            "hitShare": report.hit_share,
            "reachableShare": report.reachable_share,
        },
    }
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _rule(cause: str) -> dict[str, Any]:
    return {
        "id": cause,
        "shortDescription": {"text": f"{cause.replace('_', ' ')} splits a shared prefix"},
        "help": {"text": MENDS[cause]},
        "defaultConfiguration": {"level": "warning"},
    }


def _result(finding: Finding, rule: int) -> dict[str, Any]:
    at = finding.position
    text = f"{finding.detail}; costs {finding.lost_per_1000} tokens per 1,000 requests"
    location = _location(at.file, at.line)
    location["logicalLocations"] = [{"fullyQualifiedName": at.field, "kind": "member"}]
    return {
        "ruleId": finding.cause,
        "ruleIndex": rule,
        "level": "warning",
        "message": {"text": f"{text}. Mend: {finding.mend}"},
        "locations": [location],
        "occurrenceCount": finding.requests,
        "properties": {
            "name": finding.name,
            "message": at.message,
            "char": at.char,
            "token": at.token,
            "lostTokens": finding.lost_tokens,
            "seen": finding.seen,
        },
    }


def _location(file: str, line: int) -> dict[str, Any]:
    uri = STDIN_URI if file == "-" else file.replace("\\", "/")
    return {
        "physicalLocation": {
            "artifactLocation": {"uri": uri},
            "region": {"startLine": line},
        }
    }
