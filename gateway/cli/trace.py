"""``strata trace``: how much of a trace each eviction policy would have found cached."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

import click

from gateway.cli.chart_file import check_kind, write_chart
from gateway.cli.options import json_option
from gateway.cli.output import print_table
from gateway.cli.progress import Progress, narrated
from prefix_layer import (
    POLICIES,
    SIMULATED,
    Trace,
    TraceError,
    count_belady_bound,
    make_load,
    make_policy,
    read_trace,
    replay,
)

_QUIET_REQUESTS = 2000  # a replay of fewer takes less than 2 s


@dataclass(frozen=True, slots=True)
class Share:
    """One policy at one size; shares of 0..1, ``of_optimum`` of the Belady bound's hits."""

    policy: str
    blocks: int
    hit_share: float
    of_optimum: float


@click.command("trace")
@click.argument("file", required=False, type=click.Path(path_type=Path))
@click.option("--simulate", type=click.Choice(SIMULATED), help="A made-up load in place of a file.")
@click.option(
    "--policy",
    "policies",
    type=click.Choice([*POLICIES, "all"]),
    multiple=True,
    default=["all"],
    help="May be given again.  [default: all]",
)
@click.option(
    "--blocks",
    "sizes",
    type=click.IntRange(min=1),
    multiple=True,
    default=[1000, 3000, 10_000],
    show_default=True,
    help="Blocks of the pool; may be given again.",
)
@click.option("--requests", type=click.IntRange(min=1), default=10_000, help="Of a simulated load.")
@click.option("--seed", type=int, default=0, help="Of a simulated load.")
@click.option(
    "--plot",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Draw the shares to this .svg or .png.",
)
@json_option
def trace(
    file: Path | None,
    simulate: str | None,
    policies: tuple[str, ...],
    sizes: tuple[int, ...],
    requests: int,
    seed: int,
    plot: Path | None,
    *,
    as_json: bool,
) -> None:
    """Replay requests through the prefix cache's pool and show what each policy hits.

    FILE holds JSON lines with hash_ids, the ids of a prompt's blocks in order. The optimum is
    Belady's rule without the tree's constraints: an upper bound.
    """
    if (file is None) == (simulate is None):
        raise click.UsageError("name a FILE, or a load by --simulate")
    if plot is not None:
        check_kind(plot)
    loaded = read_trace(file) if file else make_load(str(simulate), requests, seed)
    if not loaded.num_blocks:
        raise TraceError(f"{loaded.name}: no blocks")
    names = list(POLICIES) if "all" in policies else list(dict.fromkeys(policies))
    with narrated() as tell:
        shares = [
            share
            for num_blocks in sorted(set(sizes))
            for share in _measure(loaded, names, num_blocks, tell)
        ]
    if plot is not None:
        write_chart(plot, loaded.name, _lines(shares))
    _show(loaded, shares, as_json=as_json)


def _measure(loaded: Trace, names: list[str], num_blocks: int, tell: Progress) -> list[Share]:
    quiet = len(loaded.requests) < _QUIET_REQUESTS
    optimum = count_belady_bound(loaded, num_blocks)
    shares = []
    for name in names:
        if not quiet:
            tell(f"{name}, {num_blocks} blocks")
        num_hits = replay(loaded, num_blocks, make_policy(name, num_blocks))
        of_optimum = num_hits / optimum if optimum else 1.0
        shares.append(Share(name, num_blocks, num_hits / loaded.num_blocks, of_optimum))
    shares.append(Share("optimum", num_blocks, optimum / loaded.num_blocks, 1.0))
    return shares


def _lines(shares: list[Share]) -> dict[str, list[tuple[int, float]]]:
    lines: dict[str, list[tuple[int, float]]] = {}
    for share in shares:
        lines.setdefault(share.policy, []).append((share.blocks, share.hit_share))
    return lines


def _show(loaded: Trace, shares: list[Share], *, as_json: bool) -> None:
    if as_json:
        figures = {
            "trace": loaded.name,
            "requests": len(loaded.requests),
            "blocks": loaded.num_blocks,
            "shares": [asdict(share) for share in shares],
        }
        click.echo(json.dumps(figures))
        return
    rows = [(str(s.blocks), s.policy, f"{s.hit_share:.1%}", f"{s.of_optimum:.1%}") for s in shares]
    print_table(("blocks", "policy", "hits", "of optimum"), rows)
