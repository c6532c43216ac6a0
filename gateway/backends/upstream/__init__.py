"""OpenAI-compatible engines over HTTP: names, replicas, retries, and the relay of their answers."""

from gateway.backends.upstream.backend import UpstreamBackend
from gateway.backends.upstream.embedder import UpstreamEmbedder
from gateway.backends.upstream.policies import POLICIES
from gateway.backends.upstream.replica import Replica, ReplicaView
from gateway.backends.upstream.retry import Retries
from gateway.backends.upstream.timeouts import Timeouts

__all__ = [
    "POLICIES",
    "Replica",
    "ReplicaView",
    "Retries",
    "Timeouts",
    "UpstreamBackend",
    "UpstreamEmbedder",
]
