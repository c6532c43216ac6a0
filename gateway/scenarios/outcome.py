"""What one scenario met with: hits, times, and what its prompts would allow."""

from dataclasses import dataclass, field
from statistics import median
from typing import Any

from gateway.backends.base import Usage
from gateway.scenarios.mends import Mend

_HIT_FROM = 0.5


@dataclass(slots=True)
class Outcome:
    """What one scenario met with; a request that finds half its prompt cached is a hit.

    ``allowed_tokens`` a cache without bounds would have found of the same prompts.
    """

    num_requests: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    num_evicted: int = 0
    hit_ttfts_s: list[float] = field(default_factory=list)
    miss_ttfts_s: list[float] = field(default_factory=list)
    cut: bool = False
    allowed_tokens: int = 0
    mends: list[Mend] = field(default_factory=list)

    @property
    def hit_share(self) -> float:
        """Share of prompt tokens that were cached."""
        return self.cached_tokens / self.prompt_tokens if self.prompt_tokens else 0.0

    @property
    def allowed_share(self) -> float:
        """Share of prompt tokens that the prompts, as they are, let any cache find."""
        found = max(self.allowed_tokens, self.cached_tokens)
        return found / self.prompt_tokens if self.prompt_tokens else 0.0

    @property
    def mended_share(self) -> float:
        """Share that they would allow with all mends."""
        more = sum(mend.tokens for mend in self.mends if mend.of_prompts)
        share = more / self.prompt_tokens if self.prompt_tokens else 0.0
        return min(1.0, self.allowed_share + share)

    def as_json(self) -> dict[str, Any]:
        """Return the figures; medians in seconds, None without such a request."""
        return {
            "requests": self.num_requests,
            "prompt_tokens": self.prompt_tokens,
            "cached_tokens": self.cached_tokens,
            "hit_share": self.hit_share,
            "allowed_share": self.allowed_share,
            "mended_share": self.mended_share,
            "mends": [mend.as_json() for mend in self.mends],
            "hits": len(self.hit_ttfts_s),
            "misses": len(self.miss_ttfts_s),
            "ttft_hit_s": median(self.hit_ttfts_s) if self.hit_ttfts_s else None,
            "ttft_miss_s": median(self.miss_ttfts_s) if self.miss_ttfts_s else None,
            "evictions": self.num_evicted,
            "cut": self.cut,
        }

    def count(self, usage: Usage, ttft_s: float) -> None:
        """Add one request."""
        self.num_requests += 1
        self.prompt_tokens += usage.prompt_tokens
        self.cached_tokens += usage.cached_tokens
        is_hit = usage.cached_tokens >= _HIT_FROM * usage.prompt_tokens
        (self.hit_ttfts_s if is_hit else self.miss_ttfts_s).append(ttft_s)
