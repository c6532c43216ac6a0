"""Why a prompt found less in the cache than it might have. Pure: texts in, a cause out."""

from prefix_layer.explain.cause import Cause, Finding, find_cause
from prefix_layer.explain.edit import Edit, first_edit

__all__ = ["Cause", "Edit", "Finding", "find_cause", "first_edit"]
