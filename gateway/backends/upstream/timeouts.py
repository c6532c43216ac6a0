"""How long an upstream may be silent."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Timeouts:
    """How long to wait for a connection, for the first byte of an answer, and between bytes."""

    connect_s: float = 5.0
    first_byte_s: float = 120.0
    idle_s: float = 120.0
