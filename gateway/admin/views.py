"""What the admin API shows of entries and decisions, as plain values."""

from typing import Any

import msgspec

from gateway.answer import decode
from gateway.api import sse
from gateway.api.completions import CompletionRenderer
from gateway.wire.completions import is_completion
from semantic_layer import Candidate, Entry, Reason


def reason_view(reason: Reason) -> dict[str, str]:
    """Show one check of a decision."""
    return {"check": reason.check, "verdict": reason.verdict, "detail": reason.detail}


def candidate_view(candidate: Candidate) -> dict[str, Any]:
    """Show one entry that was considered."""
    return {
        "entry": candidate.entry_id,
        "similarity": candidate.similarity,
        "score": candidate.score,
        "reasons": [reason_view(reason) for reason in candidate.reasons],
    }


def entry_view(entry: Entry) -> dict[str, Any]:
    """Show a stored entry; its ``request`` and ``response`` can be imported again."""
    return {
        "id": entry.entry_id,
        "tenant": entry.tenant,
        "namespace": entry.namespace,
        "model": entry.model,
        "intent": entry.intent,
        "tags": list(entry.tags),
        "text": entry.text,
        "answer_text": entry.answer_text,
        "exact_only": entry.exact_only or entry.scope is None,
        "created_at": entry.created_at,
        "expires_at": entry.expires_at,
        "request": _request(entry),
        "response": response_of(entry),
    }


def response_of(entry: Entry) -> dict[str, Any] | None:
    """Show the stored answer as its API would give it.

    None when it is no answer in words, or another version wrote it.
    """
    try:
        answer = decode(entry.answer)
    except msgspec.MsgspecError:
        return None
    if is_completion(_request(entry)):
        body = msgspec.to_builtins(CompletionRenderer(entry.model).body(answer))
    else:
        answer_id = f"chatcmpl-{entry.entry_id[:24]}"
        body = msgspec.json.decode(sse.chat_completion(answer_id, entry.model, answer))
    return dict(body)


def _request(entry: Entry) -> dict[str, Any]:
    """Return a request that has the entry's key again."""
    said = {"query": entry.query, "context": entry.context}
    strata = {name: value for name, value in said.items() if value is not None}
    body = {"model": entry.model, **msgspec.json.decode(entry.request or b"{}")}
    return {**body, "strata": strata} if strata else body
