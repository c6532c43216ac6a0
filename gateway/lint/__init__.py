"""Finds what splits shared prefixes in a log of requests. Starts no engine and loads no torch."""

from gateway.lint.errors import LintError
from gateway.lint.finding import BadRow, Finding, Position, Report
from gateway.lint.linter import Linter
from gateway.lint.log_file import LogRow, read_rows
from gateway.lint.sarif import as_sarif

__all__ = [
    "BadRow",
    "Finding",
    "LintError",
    "Linter",
    "LogRow",
    "Position",
    "Report",
    "as_sarif",
    "read_rows",
]
