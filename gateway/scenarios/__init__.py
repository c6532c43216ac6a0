"""Workloads as clients make them, run against a backend: what hits, how fast, what is evicted."""

from gateway.scenarios.runner import Outcome, Target, run_scenario
from gateway.scenarios.words import Words
from gateway.scenarios.workloads import SCENARIOS, Sizes

__all__ = ["SCENARIOS", "Outcome", "Sizes", "Target", "Words", "run_scenario"]
