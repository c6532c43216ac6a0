"""Which replica answers a request, and what to do when it doesn't. Knows no API.

Everything here happens before the first byte of an answer: once a byte has come nothing is tried
again, because a second try could say something else.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

import httpx

from gateway.backends.upstream.exchange import ConnectTimeout, Exchange, opened
from gateway.backends.upstream.policies import Policy
from gateway.backends.upstream.prefix import Prefix
from gateway.backends.upstream.replica import Replica, Verdict
from gateway.backends.upstream.retry import FAILED, RETRIED, Retries, retry_after_s
from gateway.backends.upstream.timeouts import Timeouts
from gateway.errors import BackendError, BackendTimeout, BackendUnavailable, UpstreamStatus

OnAnswer = Callable[[str, str], None]


class Dispatch:
    """Sends requests to the replicas of one upstream.

    ``on_answer(name, status)`` is told how each try was answered: the status code,
    ``unreachable`` or ``timeout``.
    """

    def __init__(
        self,
        name: str,
        replicas: Sequence[Replica],
        client: httpx.AsyncClient,
        *,
        policy: Policy,
        timeouts: Timeouts,
        retries: Retries,
        on_answer: OnAnswer,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.replicas = tuple(replicas)
        self._name = name
        self._client = client
        self._policy = policy
        self._timeouts = timeouts
        self._retries = retries
        self._on_answer = on_answer
        self._sleep = sleep

    @asynccontextmanager
    async def opened(
        self, path: str, content: bytes, headers: Mapping[str, str], prefix: Prefix
    ) -> AsyncIterator[Exchange]:
        """Give the first answer that a replica begins, of whatever status but `RETRIED`.

        Raises:
            UpstreamStatus: every try ended in a status of `RETRIED`.
            BackendUnavailable: no replica could be reached.
            BackendTimeout: a replica was silent for too long.
        """
        async with AsyncExitStack() as stack:
            yield await self._first_begun(stack, path, content, headers, prefix)

    async def _first_begun(
        self,
        stack: AsyncExitStack,
        path: str,
        content: bytes,
        headers: Mapping[str, str],
        prefix: Prefix,
    ) -> Exchange:
        failure: BackendError | None = None
        tried: set[Replica] = set()
        round_ = 0
        for _ in range(max(len(self.replicas), 1 + self._retries.retries)):
            candidates = self._candidates(tried)
            if not candidates and failure is not None:
                pause_s = self._retries.pause_s(round_, _asked_s(failure))
                if pause_s is None:
                    break
                await self._sleep(pause_s)
                tried.clear()
                round_ += 1
                candidates = self._candidates(tried)
            if not candidates:
                break
            replica = self._policy.choose(prefix, candidates)
            tried.add(replica)
            try:
                exchange = await self._begin(stack, replica, path, content, headers)
            except (ConnectTimeout, BackendUnavailable, UpstreamStatus) as error:
                failure = _more_telling(failure, error)
            else:
                self._policy.served(prefix, replica)
                return exchange
        raise failure or BackendUnavailable(f"upstream {self._name} has no replica to ask: {self}")

    def __str__(self) -> str:
        return ", ".join(f"{each.url} is {each.state}" for each in self.replicas)

    def _candidates(self, tried: Collection[Replica]) -> list[Replica]:
        """Return the replicas to choose from, those that asked for a rest only if need be."""
        for state in ("ready", "resting"):
            found = [each for each in self.replicas if each.state == state and each not in tried]
            if found:
                return found
        return []

    async def _begin(
        self,
        stack: AsyncExitStack,
        replica: Replica,
        path: str,
        content: bytes,
        headers: Mapping[str, str],
    ) -> Exchange:
        """Send the request to one replica; what it opened is closed with the stack."""
        request = self._client.build_request(
            "POST", f"{replica.url}{path}", content=content, headers=headers
        )
        async with AsyncExitStack() as attempt:
            attempt.enter_context(replica.busy())
            try:
                with replica.judged() as verdict:
                    exchange = await self._answered(attempt, replica, request, verdict)
            finally:
                if replica.state == "down":
                    self._policy.forget(replica)
            await stack.enter_async_context(attempt.pop_all())
            return exchange

    async def _answered(
        self, attempt: AsyncExitStack, replica: Replica, request: httpx.Request, verdict: Verdict
    ) -> Exchange:
        begun = opened(self._client, request, self._timeouts, self._name)
        try:
            exchange = await attempt.enter_async_context(begun)
        except (BackendTimeout, BackendUnavailable) as error:
            is_slow = isinstance(error, BackendTimeout) and not isinstance(error, ConnectTimeout)
            self._on_answer(self._name, "timeout" if is_slow else "unreachable")
            verdict.failed(error.message)
            raise
        status = exchange.response.status_code
        self._on_answer(self._name, str(status))
        if status in FAILED:
            verdict.failed(f"answered {status}")
        else:
            verdict.alive()
        if status in RETRIED:
            replica.rest(retry_after_s(exchange.response.headers, time.time()) or 0.0)
            raise await exchange.refusal(self._name)
        return exchange


def _asked_s(failure: BackendError) -> float | None:
    headers = failure.headers if isinstance(failure, UpstreamStatus) else {}
    return retry_after_s(headers, time.time())


def _more_telling(old: BackendError | None, new: BackendError) -> BackendError:
    """Return the failure that tells a client more: an answer more than silence."""
    if isinstance(old, UpstreamStatus) and not isinstance(new, UpstreamStatus):
        return old
    return new
