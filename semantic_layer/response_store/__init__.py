"""Where answers are kept: one protocol, in memory or in Redis."""

from semantic_layer.response_store.base import Page, ResponseStore, Selector

__all__ = ["Page", "ResponseStore", "Selector"]
