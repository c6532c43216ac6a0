"""An upstream's error body as OpenAI's envelope, whatever shape it came in."""

from typing import Any

import msgspec

SERVER_ERRORS = range(500, 600)
MAX_QUOTED_CHARS = 300


def envelope(status: int, text: bytes) -> dict[str, Any]:
    """Return an error body in OpenAI's shape; where it already has it, only what lacks is added."""
    try:
        body = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError):
        body = None
    kind = "server_error" if status in SERVER_ERRORS else "invalid_request_error"
    told = f"upstream answered {status}"
    whole: dict[str, Any] = {"message": told, "type": kind, "param": None, "code": None}
    if isinstance(body, dict) and isinstance(body.get("error"), dict):
        return {**body, "error": whole | body["error"]}
    fields = body if isinstance(body, dict) else {}
    message = fields.get("message") or fields.get("error") or fields.get("detail")
    quoted = str(message or text.decode(errors="replace"))[:MAX_QUOTED_CHARS]
    return {"error": whole | {"message": f"{told}: {quoted}"}}
