"""``strata thresholds``: those of a running gateway, or fitted from a file of labelled pairs."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, BinaryIO

import click

from gateway.cli.admin_client import AdminClient
from gateway.cli.labelled_rows import LabelledRow, read_labelled
from gateway.cli.options import config_option, json_option, settings_of, url_option
from gateway.cli.output import print_table
from gateway.cli.progress import Progress, narrated, reading
from gateway.cli.rows import BadRow, name_of, no_row
from gateway.errors import StrataError
from gateway.evidence.tuner import Tuner
from gateway.intent_settings import policies_of
from gateway.pair_scores import PairScore, open_pair_scorer
from gateway.settings import Settings
from semantic_layer import (
    Calibration,
    Label,
    PooledThresholds,
    SemanticLayerError,
    calibrate,
    proves_once,
    threshold_curve,
)

SCORE_STEP = 100  # pairs between two progress lines
_BATCH = 500  # labels that a gateway is given at once
_CURVE = (0.999, 0.995, 0.99, 0.98, 0.97, 0.95, 0.93, 0.9, 0.85, 0.8, 0.7, 0.6, 0.5)
_GENERAL = "general"
_FILE = "file"
_UNFITTED = (
    "priors are shown as for scores of an unknown scorer; a gateway whose scorer is known may "
    "begin with others: ask a running one by `strata thresholds` without FILE"
)

Row = dict[str, Any]


@click.command("thresholds")
@click.argument("file", type=click.File("rb"), required=False)
@config_option
@url_option
@click.option(
    "--budget",
    type=click.FloatRange(0, 1),
    help="The wrong share among served hits to stay within.  [default: the settings']",
)
@click.option("--teach", is_flag=True, help="Give the running gateway FILE's labels to learn from.")
@json_option
def thresholds(
    file: BinaryIO | None,
    config: Path | None,
    url: str | None,
    *,
    budget: float | None,
    teach: bool,
    as_json: bool,
) -> None:
    """Show the thresholds of a running gateway, or fit them from FILE (- for standard input).

    Each line of FILE is a pair {"a": stored text, "b": asked text, "right": true or false}, scored
    here as the gateway would, or {"score": 0..1, "right": …} scored elsewhere; both may name an
    "intent" and a "weight", one over the share of traffic that was labelled. A fitted threshold is
    the lowest score at which the upper 95% bound of the wrong share stays within the budget. Good
    rows count whatever is wrong with others; any bad row makes the exit code 1. With --teach the
    gateway learns from the good ones as from its own labels.
    """
    settings = settings_of(config)
    if file is None:
        for name, value in {"--budget": budget, "--teach": teach or None}.items():
            if value is not None:
                raise click.UsageError(f"{name} is for fitting: name a FILE of labelled pairs")
        with AdminClient(settings, url) as client:
            _show(client.intents(), as_json=as_json)
        return
    with reading(file, "reading") as lines:
        rows = list(read_labelled(lines, name_of(file)))
    bad = [row for row in rows if isinstance(row, BadRow)]
    good = [row for row in rows if isinstance(row, LabelledRow)]
    if not good:
        raise no_row(name_of(file), bad)
    labels, scorer = asyncio.run(_labels(settings, good))
    share = settings.semantic.wrong_hit_budget if budget is None else budget
    tuner = _tuner(settings, share, scorer)
    fitted = calibrate(
        labels,
        scorer=_FILE,
        budgets=tuner.budgets,
        base=tuner.base(),
        proves=proves_once,
    )
    _report(fitted, labels, bad, as_json=as_json)
    if teach:
        with AdminClient(settings, url) as client:
            is_scored_here = any(row.score is None for row in good)
            _teach(client, labels, scorer if is_scored_here else None)
    if bad:
        raise SystemExit(1)


def _teach(client: AdminClient, labels: Sequence[Label], scorer: str | None) -> None:
    """Give a gateway these labels; a pair it was given before takes that label's place."""
    rows = [
        {
            "score": label.score,
            "right": label.right,
            "a": label.stored_text,
            "b": label.text,
            "intent": label.intent,
            "weight": label.weight,
        }
        for label in labels
    ]
    batches = [rows[at : at + _BATCH] for at in range(0, len(rows), _BATCH)]
    taken = sum(client.teach(batch, scorer) for batch in batches)
    click.echo(f"{taken} labels given to {client.url}", err=True)


def _tuner(settings: Settings, budget: float, scorer: str | None) -> Tuner:
    """Return what holds until labels say otherwise, as in a gateway of these settings."""
    semantic = settings.semantic
    pooled = None if scorer is None else PooledThresholds.matching(scorer)
    return Tuner(budget, lambda *_: None, policies_of(semantic.intents), pooled, semantic.start)


async def _labels(
    settings: Settings, rows: Sequence[LabelledRow]
) -> tuple[list[Label], str | None]:
    """Return a label for each row, and what scores in a gateway of these settings.

    The latter gives those without a score theirs, and the priors; None where none can be opened.
    """
    open_rows = [row for row in rows if row.score is None]
    scores: dict[int, PairScore] = {}
    scorer = None
    with narrated() as tell:
        try:
            scores, scorer = await _scores(settings, open_rows, tell)
        except (StrataError, SemanticLayerError) as error:
            if open_rows:
                raise
            click.echo(f"{_UNFITTED} ({error})", err=True)
    return [_label(row, scores.get(row.number)) for row in rows], scorer


async def _scores(
    settings: Settings, rows: Sequence[LabelledRow], tell: Progress
) -> tuple[dict[int, PairScore], str]:
    scores = {}
    async with open_pair_scorer(settings) as scorer:
        for done, row in enumerate(rows, start=1):
            scores[row.number] = await scorer.score(row.stored, row.asked, row.intent)
            if done % SCORE_STEP == 0:
                tell(f"scored {done} of {len(rows)} pairs")
        return scores, scorer.fingerprint


def _label(row: LabelledRow, given: PairScore | None) -> Label:
    score = given.score if given is not None else row.score
    assert score is not None, "every row has a score by now"
    detected = given.intent if given is not None else _GENERAL
    return Label(
        label_id=str(row.number),
        intent=row.intent or detected or _GENERAL,
        score=score,
        right=row.right,
        source="import",
        served=False,
        at=float(row.number),
        weight=row.weight,
        scorer=_FILE,
        text=row.asked,
        stored_text=row.stored,
    )


def _report(
    fitted: Calibration, labels: Sequence[Label], bad: Sequence[BadRow], *, as_json: bool
) -> None:
    points = [p for p in threshold_curve(labels, scorer=_FILE, thresholds=_CURVE) if p.num]
    intents = [asdict(one) for one in fitted.intents.values()]
    if as_json:
        named = [{"line": row.number, "message": row.message} for row in bad]
        found = {"intents": intents, "curve": [asdict(p) for p in points], "bad": named}
        click.echo(json.dumps(found, ensure_ascii=False))
        return
    for row in bad:
        click.echo(f"line {row.number}: {row.message}", err=True)
    _print_intents(intents)
    click.echo()
    print_table(
        ("threshold", "served", "wrong of served", "95% bounds", "labels"),
        [
            (
                f"{p.threshold:.3f}",
                f"{p.served_share:.1%}",
                f"{p.wrong_share:.2%}",
                f"{p.low:.2%} to {p.high:.2%}",
                str(p.num),
            )
            for p in points
        ],
    )
    click.echo(f"{len(labels)} labels, {len(bad)} bad rows", err=True)


def _show(intents: Sequence[Row], *, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps({"intents": intents}, ensure_ascii=False))
    else:
        _print_intents([_flat(one) for one in intents])


def _flat(one: Row) -> Row:
    """Return a gateway's intent as fitted ones are written."""
    seen = one.get("labels") or {}
    names = {"num_labels": "count", "wrong": "wrong", "lower": "low", "upper": "high"}
    found = {name: seen.get(theirs) for name, theirs in names.items()}
    return {"intent": one["name"], **one, **found, "drifted": seen.get("drifted", False)}


def _print_intents(intents: Sequence[Row]) -> None:
    rows = [
        (
            str(one["intent"]),
            f"{one['threshold']:.4f}",
            str(one["source"]) + (" (drifted)" if one.get("drifted") else ""),
            f"{one['budget']:.2%}",
            *_seen(one),
        )
        for one in intents
    ]
    print_table(("intent", "threshold", "source", "budget", "labels", "wrong", "95% bounds"), rows)


def _seen(one: Row) -> tuple[str, str, str]:
    """Return what labels say of an intent's served hits; dashes when there are none."""
    if not one.get("num_labels"):
        return "-", "-", "-"
    return str(one["num_labels"]), str(one["wrong"]), f"{one['lower']:.2%} to {one['upper']:.2%}"
