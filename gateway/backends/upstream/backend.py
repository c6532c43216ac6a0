"""Any OpenAI-compatible engine over HTTP. Knows no cache and no environment.

The upstream is asked for a stream with usage, whatever the client wants, so that an abort reaches
it at once; one that answers whole is understood too. Only sound is not, unless the client streams:
its formats differ between the two. Everything else in the body passes
untouched.
"""

import asyncio
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from typing import Any

import httpx
import msgspec

from gateway.backends.base import Event, ModelInfo, PartHealth, PartState, Work
from gateway.backends.chunks import ChunkReader
from gateway.backends.embeddings import Embedding, EmbedWork
from gateway.backends.prices import Prices
from gateway.backends.sse import SseParser
from gateway.backends.upstream.catalogue import Catalogue
from gateway.backends.upstream.dispatch import Dispatch, OnAnswer
from gateway.backends.upstream.embeddings import embed
from gateway.backends.upstream.policies import POLICIES, Policy
from gateway.backends.upstream.prefix import prefix_of
from gateway.backends.upstream.probe import probe
from gateway.backends.upstream.replica import Replica
from gateway.backends.upstream.retry import Retries
from gateway.backends.upstream.timeouts import Timeouts
from gateway.wire.completions import prompts_of

PATHS = {"chat": "/chat/completions", "completions": "/completions"}
PROBE_S = 1.0
TRACE_HEADERS = frozenset({"traceparent", "tracestate", "baggage"})
KEEPALIVE_S = 2.0  # shorter than servers' usual 5 s, so that no request meets a closing connection


class UpstreamBackend:
    """Relays chat requests to one named upstream.

    ``base_url`` is what an SDK takes, with its ``/v1``; ``replicas`` are further addresses of the
    same engine. ``models`` None asks the upstream for its list. ``headers`` are sent along as they
    are, ``relay_headers`` name those of the client that are. ``on_answer(name, status)`` is
    told how each try was answered: the status code, ``unreachable`` or ``timeout``.
    """

    def __init__(
        self,
        name: str,
        base_url: str,
        models: Sequence[str] | None,
        *,
        replicas: Sequence[str] = (),
        weights: Mapping[str, float] | None = None,
        drained: Collection[str] = (),
        aliases: Mapping[str, str] | None = None,
        api_key: str | None = None,
        headers: Mapping[str, str] | None = None,
        relay_headers: Sequence[str] = (),
        proxy: str | None = None,
        prices: Mapping[str, Prices] | None = None,
        timeouts: Timeouts | None = None,
        retries: Retries | None = None,
        policy: Policy | None = None,
        on_answer: OnAnswer = lambda _name, _status: None,
    ) -> None:
        self.name = name
        urls = list(dict.fromkeys(url.rstrip("/") for url in (base_url, *replicas)))
        self._relayed = tuple(header.lower() for header in relay_headers)
        self._catalogue = Catalogue(
            name,
            urls[0],
            models,
            aliases=aliases or {},
            prices=prices or {},
            relayed=tuple(header for header in self._relayed if header not in TRACE_HEADERS),
        )
        timeouts, shares = timeouts or Timeouts(), weights or {}
        self._client = httpx.AsyncClient(
            headers=_headers(api_key, headers or {}),
            timeout=httpx.Timeout(None, connect=timeouts.connect_s),
            limits=httpx.Limits(max_connections=None, keepalive_expiry=KEEPALIVE_S),
            proxy=proxy,
            trust_env=False,
        )
        self._dispatch = Dispatch(
            name,
            [Replica(url, shares.get(url, 1.0), is_drained=url in drained) for url in urls],
            self._client,
            policy=policy or POLICIES["affinity"](),
            timeouts=timeouts,
            retries=retries or Retries(),
            on_answer=on_answer,
        )

    @property
    def replicas(self) -> tuple[Replica, ...]:
        """The addresses of the engine, ``base_url`` first."""
        return self._dispatch.replicas

    def models(self) -> list[ModelInfo]:
        """List the models that have a name of their own; see also `match`."""
        return self._catalogue.models()

    def match(self, model_id: str) -> ModelInfo | None:
        """Return the model of this name, also one that only a pattern lets in."""
        return self._catalogue.match(model_id)

    async def stream(self, work: Work) -> AsyncIterator[Event]:
        """Generate; closing the iterator closes the connection.

        Raises:
            UpstreamStatus: the upstream refused the request.
            BackendUnavailable: no replica could be reached.
            BackendTimeout: it was silent for too long.
            BackendError: its answer was broken or cut, also after events were given.
        """
        body = _body(work, self._catalogue.target(work.model))
        headers = {**self._passed_on(work.headers), **work.trace, "x-request-id": work.request_id}
        content = msgspec.json.encode(body)
        begun = self._dispatch.opened(PATHS[work.api], content, headers, prefix_of(body))
        async with begun as exchange:
            if not exchange.response.is_success:
                raise await exchange.refusal(self.name, headers)
            reader = ChunkReader(_num_choices(work))
            framing = _Whole() if exchange.is_whole else SseParser()
            async for chunk in exchange.chunks:
                for event in reader.read_all(framing.feed(chunk)):
                    yield event
                if reader.is_done:
                    break
            for event in reader.read_all(framing.close()):
                yield event
            for event in reader.end():
                yield event
            await exchange.drain()

    async def embed(self, work: EmbedWork) -> list[Embedding]:
        """Return one vector per input, in order.

        Raises:
            UpstreamStatus: the upstream refused the request.
            BackendError: it cannot be reached, or its answer was broken.
        """
        model = self._catalogue.target(work.model)
        headers = {**self._passed_on(work.headers), **work.trace}
        return await embed(self._dispatch, self.name, model, headers, work)

    async def health(self) -> PartHealth:
        """Say whether any replica answers, asked now."""
        await self.refresh()
        each = {replica.url: _health(replica) for replica in self.replicas}
        num_ok = sum(part.ok for part in each.values())
        if num_ok:
            return PartHealth(True, "ready", f"{num_ok} of {len(each)} reachable", each)
        return PartHealth(False, "down", f"{', '.join(each)} not reachable", each)

    async def refresh(self, timeout_s: float = PROBE_S) -> None:
        """Ask every replica whether it is there, and take over what it serves."""
        asked = (probe(self._client, replica, timeout_s) for replica in self.replicas)
        found = [names for names in await asyncio.gather(*asked) if names]
        if found and self._catalogue.learns:
            self._catalogue.learn(name for names in found for name in names)

    async def watch(self, every_s: float) -> None:
        """Refresh for ever, so that what went down or came back is known without a request."""
        while True:
            await asyncio.sleep(every_s)
            await self.refresh(max(PROBE_S, every_s / 2))

    def _passed_on(self, headers: Mapping[str, str]) -> dict[str, str]:
        return {name: headers[name] for name in self._relayed if name in headers}

    async def close(self) -> None:
        """Close every connection; idempotent."""
        await self._client.aclose()


_WHOLE_ONLY = ("audio", "prompt_logprobs")  # what engines give only, or differently, in one piece


def _headers(api_key: str | None, more: Mapping[str, str]) -> dict[str, str]:
    headers = {
        "content-type": "application/json",
        "accept": "text/event-stream, application/json",
        "accept-encoding": "identity",
        **{name.lower(): value for name, value in more.items()},
    }
    return headers if api_key is None else {**headers, "authorization": f"Bearer {api_key}"}


def _body(work: Work, model: str) -> dict[str, Any]:
    if not work.body.get("stream") and any(work.body.get(name) for name in _WHOLE_ONLY):
        return {**work.body, "model": model, "stream": False}
    options = {**(work.body.get("stream_options") or {}), "include_usage": True}
    return {**work.body, "model": model, "stream": True, "stream_options": options}


def _num_choices(work: Work) -> int:
    num_prompts = len(prompts_of(work.body["prompt"])) if work.api == "completions" else 1
    return num_prompts * (work.body.get("n") or 1)


def _health(replica: Replica) -> PartHealth:
    state: PartState = "off" if replica.state == "drained" else "ready" if replica.is_up else "down"
    return PartHealth(state == "ready", state, replica.detail)


class _Whole:
    """A body that is one JSON text."""

    def __init__(self) -> None:
        self._body = bytearray()

    def feed(self, chunk: bytes) -> list[bytes]:
        self._body += chunk
        return []

    def close(self) -> list[bytes]:
        return [bytes(self._body)]
