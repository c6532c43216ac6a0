"""What the admin API shows of entries and decisions, as plain values."""

from typing import Any

import msgspec

from gateway.answer import decode
from gateway.api import sse
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
        "exact_only": entry.exact_only,
        "created_at": entry.created_at,
        "expires_at": entry.expires_at,
        "request": {"model": entry.model, **msgspec.json.decode(entry.request or b"{}")},
        "response": response_of(entry),
    }


def response_of(entry: Entry) -> dict[str, Any] | None:
    """Show the stored answer as a chat completion; None when another version wrote it."""
    try:
        answer = decode(entry.answer)
    except msgspec.MsgspecError:
        return None
    body: dict[str, Any] = msgspec.json.decode(
        sse.chat_completion(f"chatcmpl-{entry.entry_id[:24]}", entry.model, answer)
    )
    return body
