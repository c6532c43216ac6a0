"""What the tokens of a model cost. Pure."""

from dataclasses import dataclass

MILLION = 1e6


@dataclass(frozen=True, slots=True)
class Prices:
    """Prices of one model, each for a million tokens; cached input costs as input unless said."""

    input_per_million: float
    output_per_million: float
    cached_input_per_million: float | None = None
    currency: str = "USD"

    def cost(self, prompt_tokens: int, completion_tokens: int, cached_tokens: int = 0) -> float:
        """Return the price of one answer; the cached tokens are part of the prompt's."""
        prompt = prompt_tokens * self.input_per_million
        completion = completion_tokens * self.output_per_million
        return (prompt + completion) / MILLION - self.cached_rebate(cached_tokens)

    def cached_rebate(self, cached_tokens: int) -> float:
        """Return what the upstream's own cache made cheaper."""
        if self.cached_input_per_million is None:
            return 0.0
        return cached_tokens * (self.input_per_million - self.cached_input_per_million) / MILLION
