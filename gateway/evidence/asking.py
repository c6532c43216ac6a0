"""Generates an answer for the gateway's own use: no client waits for it and none pays for it."""

import asyncio
from dataclasses import replace
from typing import Any

from gateway.answer import Answer, Assembler
from gateway.auth import Tenant
from gateway.backends.base import Work
from gateway.backends.routing import Backends
from gateway.call import Call
from gateway.errors import StrataError

PATIENCE_S = 120.0
OWN_REQUEST = "strata-evidence"
_SALT = Tenant.named("strata\0evidence").salt


async def ask_again(backends: Backends, call: Call) -> Answer | None:
    """Return a fresh answer to a call, as its tenant would get it; None when none comes."""
    shadow = f"{call.request_id}-shadow"
    work = Work(shadow, call.model, call.body, call.tenant.salt, call.headers, call.api)
    return await _answer(backends, work)


async def ask(backends: Backends, model: str, body: dict[str, Any]) -> Answer | None:
    """Return a model's answer to a chat request of our own; None when none comes."""
    return await _answer(backends, Work(OWN_REQUEST, model, body, _SALT))


async def _answer(backends: Backends, work: Work) -> Answer | None:
    found = backends.find(work.model)
    if found is None:
        return None
    backend, info = found
    work, assembler = replace(work, model=info.model_id), Assembler()
    try:
        async with asyncio.timeout(PATIENCE_S):
            async for event in backends.stream(backend, work, lambda _stand_in: False):
                assembler.add(event)
    except (StrataError, TimeoutError):
        return None
    answer = assembler.answer
    return answer if answer is not None and answer.is_storable else None
