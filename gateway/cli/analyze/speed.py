"""``strata analyze speed``: time to first token and in all, by hit share and prompt length."""

import asyncio
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click

from gateway.cli.analyze.local import started_engine
from gateway.cli.options import config_option, json_option, settings_of
from gateway.cli.output import print_table
from gateway.cli.progress import narrated
from gateway.settings import Settings
from prefix_layer import Rates, measure_rates

PROMPTS = (500, 1000, 2000, 4000)
HIT_SHARES = (0.0, 0.25, 0.5, 0.75, 0.9)

_TINY_S = 1e-9
_SHARE = click.FloatRange(0, 1, max_open=True)


@dataclass(frozen=True, slots=True)
class Expectation:
    """One prompt length at one hit share, by measured rates; ``ideal`` is 1 / (1 - hit share)."""

    prompt_tokens: int
    hit_share: float
    ttft_s: float
    total_s: float
    speed_up: float
    ideal: float


@click.command("speed")
@config_option
@click.option(
    "--prompt",
    "prompts",
    type=click.IntRange(min=1),
    multiple=True,
    default=PROMPTS,
    show_default=True,
    help="Tokens of a prompt; may be given again.",
)
@click.option(
    "--hit",
    "shares",
    type=_SHARE,
    multiple=True,
    default=HIT_SHARES,
    show_default=True,
    help="Share of it that is cached, 0 to below 1; may be given again.",
)
@click.option(
    "--output",
    "output_tokens",
    type=click.IntRange(min=1),
    default=128,
    show_default=True,
    help="Tokens of an answer.",
)
@json_option
def speed(
    config: Path | None,
    prompts: tuple[int, ...],
    shares: tuple[float, ...],
    output_tokens: int,
    *,
    as_json: bool,
) -> None:
    """Measure the local model's prefill and decode, and show what hits save.

    Starts an engine of its own, as the settings say, for some seconds. The speed-up is of the time
    to the first token; ideal is 1 / (1 - hit share).
    """
    analysis = analyze_speed(settings_of(config), prompts, shares, output_tokens)
    if as_json:
        click.echo(json.dumps(analysis.as_json()))
        return
    analysis.show()


@dataclass(frozen=True, slots=True)
class Analysis:
    """Measured rates, and what they mean."""

    rates: Rates
    rows: list[Expectation]

    def as_json(self) -> dict[str, Any]:
        """Return the figures by name."""
        return {"rates": asdict(self.rates), "rows": [asdict(row) for row in self.rows]}

    def show(self) -> None:
        """Print the figures as a table."""
        rates = self.rates
        prefill = 1000 / max(rates.ttft_s(1000, 0), _TINY_S)
        decode = 1 / max(rates.step_s + rates.step_pair_s * 1000, _TINY_S)
        click.echo(f"measured at 1,000: prefill {prefill:.0f} and decode {decode:.1f} tokens/s")
        columns = ("prompt", "hit share", "TTFT ms", "total s", "speed-up", "ideal", "of ideal")
        print_table(columns, [_cells(row) for row in self.rows])


def analyze_speed(
    settings: Settings, prompts: Iterable[int], shares: Iterable[float], output_tokens: int
) -> Analysis:
    """Measure an engine of its own, and work out each prompt length at each hit share."""
    rates = asyncio.run(_measure(settings))
    lengths, hits = sorted(set(prompts)), sorted(set(shares))
    rows = [_expect(rates, length, share, output_tokens) for length in lengths for share in hits]
    return Analysis(rates, rows)


async def _measure(settings: Settings) -> Rates:
    with narrated() as tell:
        async with started_engine(settings, tell) as (engine, ready):
            return await measure_rates(engine, ready, tell)


def _expect(rates: Rates, prompt: int, share: float, output_tokens: int) -> Expectation:
    ttft_s = rates.ttft_s(prompt, share)
    return Expectation(
        prompt_tokens=prompt,
        hit_share=share,
        ttft_s=ttft_s,
        total_s=rates.total_s(prompt, share, output_tokens),
        speed_up=rates.ttft_s(prompt, 0) / max(ttft_s, _TINY_S),
        ideal=1 / (1 - share),
    )


def _cells(row: Expectation) -> tuple[str, ...]:
    return (
        str(row.prompt_tokens),
        f"{row.hit_share:.0%}",
        f"{row.ttft_s * 1e3:.0f}",
        f"{row.total_s:.2f}",
        f"{row.speed_up:.2f}",
        f"{row.ideal:.2f}",
        f"{row.speed_up / row.ideal:.0%}",
    )
