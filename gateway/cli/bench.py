"""``strata bench``: how fast a running gateway answers, by the layer that answered."""

import asyncio
import json
import secrets
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import httpx

from gateway.address import url_of
from gateway.cli.options import config_option, json_option, settings_of, url_option
from gateway.cli.output import print_table
from gateway.cli.progress import narrated
from gateway.engine_config import local_model_id
from gateway.latency import LatencyHistogram

_TTL_S = 120  # nothing of a run stays
_TIMEOUT_S = 300.0
_RULES = "You answer questions about our shop in one sentence. We sell tea, cups and kettles. " * 12
_ASKED = "Does the shop sell a kettle with {number} handles?"
_REPEATED = "Please, does the shop sell a kettle with {number} handles?"

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Answered:
    """One answer: the ``x-strata-cache`` outcome, its time, and the prompt's tokens."""

    outcome: str
    seconds: float
    prompt_tokens: int
    cached_tokens: int


class Load:
    """Asks one gateway in a namespace of its own, so that no other answer is met or left."""

    def __init__(self, http: httpx.AsyncClient, model: str, max_tokens: int) -> None:
        self._http = http
        self._model = model
        self._max_tokens = max_tokens
        self._name = secrets.token_hex(4)

    async def run(self, question: str, num: int, repeats: int, at_once: int) -> tuple[Row, ...]:
        """Ask ``num`` questions ``repeats`` times, ``at_once`` together; a row per outcome."""
        waiting = iter([number for _ in range(repeats) for number in range(num)])
        answers: list[Answered] = []

        async def ask() -> None:
            for number in waiting:
                text = question.format(number=number)
                answers.append(await self._ask(text))

        begin = time.perf_counter()
        async with asyncio.TaskGroup() as group:
            for _ in range(at_once):
                group.create_task(ask())
        return tuple(_rows(answers, time.perf_counter() - begin, at_once))

    async def _ask(self, text: str) -> Answered:
        rules = f"{_RULES}List {self._name}."
        body = {
            "model": self._model,
            "temperature": 0,
            "max_tokens": self._max_tokens,
            "stop": [" ", "\n"],  # an answer cut by max_tokens would serve exact repeats only
            "messages": [{"role": "system", "content": rules}, {"role": "user", "content": text}],
        }
        headers = {"x-strata-namespace": f"bench-{self._name}", "x-strata-ttl": str(_TTL_S)}
        begin = time.perf_counter()
        response = await self._http.post("/v1/chat/completions", json=body, headers=headers)
        seconds = time.perf_counter() - begin
        if not response.is_success:
            raise click.ClickException(
                f"{response.url} answered {response.status_code}: {_why(response)}"
            )
        usage = response.json().get("usage") or {}
        cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0
        outcome = response.headers.get("x-strata-cache", "no x-strata-cache header")
        return Answered(outcome, seconds, usage.get("prompt_tokens") or 0, cached)


@click.command("bench")
@config_option
@url_option
@click.option("--key", help="API key of a tenant.")
@click.option("--model", help="Chat model to ask.  [default: the settings' local model]")
@click.option("--requests", "num", type=click.IntRange(1, 1000), default=16, show_default=True)
@click.option("--repeats", type=click.IntRange(1, 10_000), default=50, show_default=True)
@click.option("--concurrency", type=click.IntRange(1, 256), default=8, show_default=True)
@click.option("--max-tokens", type=click.IntRange(1, 4096), default=16, show_default=True)
@json_option
def bench(
    config: Path | None,
    url: str | None,
    *,
    key: str | None,
    model: str | None,
    num: int,
    repeats: int,
    concurrency: int,
    max_tokens: int,
    as_json: bool,
) -> None:
    """Time a running gateway: new questions, the same again, and again in other words.

    New questions share a long beginning and are asked one by one; each is then asked --repeats
    times, --concurrency at once. Rows are by the layer that answered. The answers stand in a
    namespace of their own and end after two minutes; models are really asked, by --requests new
    questions and by what no cache answers.
    """
    settings = settings_of(config)
    asked = model or (None if settings.local.model == "none" else local_model_id(settings))
    if asked is None:
        raise click.UsageError("there is no local model: name one by --model")
    address = url or url_of(settings.host, settings.port)
    rows = _measured(address, key, asked, (num, repeats, concurrency, max_tokens))
    if as_json:
        click.echo(json.dumps({"url": address, "model": asked, "rows": rows}))
    else:
        _print(rows)


def _measured(
    address: str, key: str | None, model: str, how: tuple[int, int, int, int]
) -> list[Row]:
    """Run the whole bench; whatever fails first ends it, in one line."""
    try:
        return asyncio.run(_bench(address, key, model, how))
    except (ExceptionGroup, httpx.HTTPError, httpx.InvalidURL) as error:
        first = error.exceptions[0] if isinstance(error, ExceptionGroup) else error
        if isinstance(first, click.ClickException):
            raise first from error
        if isinstance(first, httpx.HTTPError | httpx.InvalidURL):
            message = f"no gateway answers on {address} ({first})"
            raise click.ClickException(message) from error
        raise


async def _bench(
    address: str, key: str | None, model: str, how: tuple[int, int, int, int]
) -> list[Row]:
    num, repeats, concurrency, max_tokens = how
    headers = {"authorization": f"Bearer {key}"} if key else {}
    limits = httpx.Limits(max_connections=concurrency)
    rows: list[Row] = []
    with narrated() as tell:
        async with httpx.AsyncClient(
            base_url=address, headers=headers, timeout=_TIMEOUT_S, limits=limits, trust_env=False
        ) as http:
            await http.get("/health/live")  # one that is not there is told before all else
            load = Load(http, model, max_tokens)
            for what, question, times, at_once in (
                ("new", _ASKED, 1, 1),
                ("again", _ASKED, repeats, concurrency),
                ("in other words", _REPEATED, 1, 1),
            ):
                tell(f"{what}: {num * times} requests")
                found = await load.run(question, num, times, at_once)
                rows += [{"asked": what, **row} for row in found]
    return rows


def _rows(answers: Sequence[Answered], took_s: float, at_once: int) -> Iterable[Row]:
    for outcome in dict.fromkeys(answer.outcome for answer in answers):
        own = [answer for answer in answers if answer.outcome == outcome]
        times = LatencyHistogram()
        for answer in own:
            times.add(answer.seconds)
        tokens = sum(answer.prompt_tokens for answer in own)
        yield {
            "outcome": outcome,
            "requests": len(own),
            "at_once": at_once,
            "per_s": len(own) / took_s,
            "p50_ms": (times.quantile(0.5) or 0.0) * 1e3,
            "p99_ms": (times.quantile(0.99) or 0.0) * 1e3,
            "cached_share": sum(a.cached_tokens for a in own) / tokens if tokens else 0.0,
        }


def _print(rows: Sequence[Row]) -> None:
    columns = (
        "asked",
        "outcome",
        "requests",
        "at once",
        "p50 ms",
        "p99 ms",
        "per s",
        "prompt cached",
    )
    print_table(
        columns,
        [
            (
                row["asked"],
                row["outcome"],
                str(row["requests"]),
                str(row["at_once"]),
                f"{row['p50_ms']:.2f}",
                f"{row['p99_ms']:.2f}",
                f"{row['per_s']:.1f}",
                f"{row['cached_share']:.1%}",
            )
            for row in rows
        ],
    )


def _why(response: httpx.Response) -> str:
    try:
        return str(response.json()["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return response.reason_phrase
