"""Finds what splits shared prefixes in a log of requests. Starts no engine and loads no torch."""

from gateway.lint.finding import BadRow, Finding, Position, Report
from gateway.lint.fix import Fix, fix_file, lint_file
from gateway.lint.hit_counter import Cache
from gateway.lint.log_file import plain_lines
from gateway.lint.log_reader import LogReader
from gateway.lint.sarif import as_sarif
from gateway.lint.tokens import PromptTokens

__all__ = [
    "BadRow",
    "Cache",
    "Finding",
    "Fix",
    "LogReader",
    "Position",
    "PromptTokens",
    "Report",
    "as_sarif",
    "fix_file",
    "lint_file",
    "plain_lines",
]
