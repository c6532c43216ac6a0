"""When a failed request may be sent again, and after what pause. Pure but for the dice."""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime

BUSY = 429
FAILED = frozenset({502, 503, 504})
RETRIED = FAILED | {BUSY}


@dataclass(frozen=True, slots=True)
class Retries:
    """Tries after the first, all of them before the first byte of an answer.

    Another replica is tried at once; only when every one has been tried comes a pause: what the
    upstream asked for, else ``backoff_s`` doubled each time, a random half of it off. A pause
    longer than ``max_wait_s`` is not made: the failure is the answer.
    """

    retries: int = 2
    backoff_s: float = 0.25
    max_wait_s: float = 5.0

    def pause_s(
        self, round_: int, asked_s: float | None, dice: Callable[[], float] = random.random
    ) -> float | None:
        """Return the pause after a round of tries (0, 1, …); None when it would be too long."""
        backoff_s = self.backoff_s * 2**round_ * (1 - dice() / 2)
        pause_s = backoff_s if asked_s is None else max(asked_s, backoff_s)
        return pause_s if pause_s <= self.max_wait_s else None


def retry_after_s(headers: Mapping[str, str], now: float) -> float | None:
    """Return how long an upstream asks to wait; None when it does not say, or says nonsense.

    ``now`` is Unix seconds. Source: RFC 9110, 10.2.3 Retry-After; ``retry-after-ms`` as the
    OpenAI SDKs read it.
    """
    for name, unit_s in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = headers.get(name, "").strip()
        if value.replace(".", "", 1).isdecimal():
            return float(value) * unit_s
    try:
        return max(0.0, parsedate_to_datetime(headers.get("retry-after", "")).timestamp() - now)
    except ValueError:
        return None
