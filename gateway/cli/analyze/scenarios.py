"""``strata analyze scenarios``: usual workloads against the local model's engine."""

import asyncio
import json
import time
from pathlib import Path

import click

from gateway.backends.local import LocalBackend
from gateway.cli.analyze.local import started_engine
from gateway.cli.options import config_option, json_option, settings_of
from gateway.cli.output import print_table
from gateway.cli.progress import narrated
from gateway.engine_config import local_model_id
from gateway.scenarios import (
    SCENARIOS,
    Outcome,
    Sizes,
    Target,
    Words,
    best,
    mends_of,
    run_scenario,
)
from gateway.settings import Settings

BEST_MENDS = 3
_TIMES = ("TTFT hit ms", "TTFT miss ms", "evictions")


@click.command("scenarios")
@click.argument("names", nargs=-1, type=click.Choice(list(SCENARIOS)))
@config_option
@click.option(
    "--requests",
    type=click.IntRange(min=1),
    default=8,
    show_default=True,
    help="Requests of a scenario and seed.",
)
@click.option(
    "--words",
    type=click.IntRange(min=8),
    default=150,
    show_default=True,
    help="Words of a scenario's longest part.",
)
@click.option(
    "--seeds", type=click.IntRange(min=1), default=2, show_default=True, help="Texts to try."
)
@click.option(
    "--limit",
    "limit_s",
    type=click.FloatRange(min=0, min_open=True),
    default=50.0,
    show_default=True,
    help="Seconds to send in, in equal parts, once the model is loaded; what a scenario has left "
    "by then is cut.",
)
@json_option
def scenarios(
    names: tuple[str, ...],
    config: Path | None,
    requests: int,
    words: int,
    seeds: int,
    limit_s: float,
    *,
    as_json: bool,
) -> None:
    """Run workloads against the local model and show hit share, TTFT and evictions of each.

    Beside the hit share stand what the same prompts would allow a cache without bounds, and what
    they would allow once mended; then the mends that pay most, three at most. NAMES picks some.

    Starts an engine of its own, as the settings say, with an empty cache before each scenario.
    TTFTs are medians; a request that finds half its prompt cached is a hit.
    """
    sizes = Sizes(requests, words)
    picked = list(dict.fromkeys(names)) or list(SCENARIOS)
    outcomes = asyncio.run(_run(settings_of(config), picked, sizes, seeds, limit_s))
    if as_json:
        figures = {name: outcome.as_json() for name, outcome in outcomes.items()}
        click.echo(json.dumps(figures))
        return
    _show(outcomes)


async def _run(
    settings: Settings, names: list[str], sizes: Sizes, seeds: int, limit_s: float
) -> dict[str, Outcome]:
    outcomes = {name: Outcome() for name in names}
    with narrated() as tell:
        async with started_engine(settings, tell) as (engine, _):
            model_id = local_model_id(settings)
            backend = LocalBackend(model_id, engine.config.model_path, engine)
            target = Target(backend, engine, backend.tokenizer, model_id)
            begin_s = time.monotonic()
            runs = [(seed, name) for seed in range(seeds) for name in names]
            for i, (seed, name) in enumerate(runs):
                tell(f"{name}, text {seed + 1} of {seeds}")
                left_s = limit_s - (time.monotonic() - begin_s)
                deadline_s = time.monotonic() + left_s / (len(runs) - i)
                load = SCENARIOS[name](Words(seed), sizes)
                salt = f"{name}/{seed}".encode()
                await run_scenario(load, outcomes[name], target, deadline_s, salt)
            for name, outcome in outcomes.items():
                await _mend(name, outcome, backend, seeds)
            await backend.close()
    return outcomes


async def _mend(name: str, outcome: Outcome, backend: LocalBackend, seeds: int) -> None:
    spans = []
    for seed in range(seeds):
        seen = await backend.prefix.volatile({}, f"{name}/{seed}".encode())
        spans += seen.spans
    missed = outcome.allowed_tokens - outcome.cached_tokens
    outcome.mends = mends_of(spans, missed, outcome.num_evicted, is_on=backend.prefix.is_on)


def _show(outcomes: dict[str, Outcome]) -> None:
    columns = ("scenario", "requests", "hit share", "allowed", "mended", *_TIMES)
    rows = []
    for name, outcome in outcomes.items():
        figures = outcome.as_json()
        rows.append(
            (
                name + (" (cut)" if outcome.cut else ""),
                str(outcome.num_requests),
                f"{outcome.hit_share:.1%}",
                f"{outcome.allowed_share:.1%}",
                f"{outcome.mended_share:.1%}",
                _milliseconds(figures["ttft_hit_s"]),
                _milliseconds(figures["ttft_miss_s"]),
                str(outcome.num_evicted),
            )
        )
    print_table(columns, rows)
    _show_mends(outcomes)


def _show_mends(outcomes: dict[str, Outcome]) -> None:
    found = best((mend for outcome in outcomes.values() for mend in outcome.mends), BEST_MENDS)
    cut = ", ".join(name for name, outcome in outcomes.items() if outcome.cut)
    if found:
        click.echo("\nmends that pay most:")
    for mend in found:
        where = [n for n, o in outcomes.items() if any(m.cause == mend.cause for m in o.mends)]
        click.echo(f"  {mend.tokens} tokens  {mend.cause} ({', '.join(where)}): {mend.mend}")
    if cut:
        click.echo(f"\nnot judged in full, cut by the time limit (raise --limit): {cut}")
    elif not found:
        click.echo("\nnothing to mend: every prompt shares what it can")
    elif len(found) < BEST_MENDS:
        click.echo("  there is no other to mend")


def _milliseconds(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds * 1e3:.0f}"
