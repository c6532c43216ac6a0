"""Ask an engine whether it is there and what it serves."""

from typing import Any

import httpx
import msgspec

from gateway.backends.upstream.replica import Replica


async def probe(client: httpx.AsyncClient, replica: Replica, timeout_s: float) -> list[str] | None:
    """Return the models a replica lists, none if it keeps no list; None when it cannot serve.

    A replica at work may be slow to answer, so silence counts against it only when it is idle.
    """
    with replica.judged() as verdict:
        try:
            response = await client.get(f"{replica.url}/models", timeout=timeout_s)
        except httpx.TimeoutException as error:
            if not replica.in_flight:
                verdict.failed(f"silent: {error!r}")
            return None
        except (httpx.HTTPError, httpx.StreamError) as error:
            verdict.failed(repr(error))
            return None
        if response.is_server_error:
            verdict.failed(f"answered {response.status_code}")
            return None
        verdict.alive()
        return _names(response) if response.is_success else []


def _names(response: httpx.Response) -> list[str]:
    try:
        listed: Any = msgspec.json.decode(response.content)
        names = [row["id"] for row in listed["data"]]
    except (msgspec.DecodeError, UnicodeDecodeError, KeyError, TypeError):
        return []
    return [name for name in names if isinstance(name, str) and name]
