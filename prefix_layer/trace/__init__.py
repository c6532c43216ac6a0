"""Replays what prompts shared through the real pool and index. Pure: no tensors, no clock."""

from prefix_layer.trace.file import Trace, read_trace
from prefix_layer.trace.optimum import count_belady_bound
from prefix_layer.trace.replay import replay
from prefix_layer.trace.simulated import SIMULATED, make_load

__all__ = ["SIMULATED", "Trace", "count_belady_bound", "make_load", "read_trace", "replay"]
