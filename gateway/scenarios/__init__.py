"""Workloads as clients make them, run against a backend: what hits, how fast, what is evicted."""

from gateway.scenarios.mends import Mend, best, mends_of
from gateway.scenarios.outcome import Outcome
from gateway.scenarios.runner import Target, run_scenario
from gateway.scenarios.words import Words
from gateway.scenarios.workloads import SCENARIOS, Sizes

__all__ = [
    "SCENARIOS",
    "Mend",
    "Outcome",
    "Sizes",
    "Target",
    "Words",
    "best",
    "mends_of",
    "run_scenario",
]
