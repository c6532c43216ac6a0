"""Our errors in Anthropic's envelope. Source: Anthropic API reference, "Errors"."""

from typing import Any

from gateway.errors import StrataError

OVERLOADED = 529
_UNAVAILABLE = 503
_SERVER_ERROR = 500

_KINDS = {
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    OVERLOADED: "overloaded_error",
}


def status_of(error: StrataError) -> int:
    """Return the status Anthropic's API has for it: what is not available now is overloaded."""
    return OVERLOADED if error.status == _UNAVAILABLE else error.status


def anthropic_envelope(error: StrataError, request_id: str | None = None) -> dict[str, Any]:
    """Return Anthropic's error body."""
    status = status_of(error)
    usual = "api_error" if status >= _SERVER_ERROR else "invalid_request_error"
    body: dict[str, Any] = {
        "type": "error",
        "error": {"type": _KINDS.get(status, usual), "message": _message(error)},
    }
    return body if request_id is None else {**body, "request_id": request_id}


def _message(error: StrataError) -> str:
    """Return the message of whatever envelope the error has, an upstream's own included."""
    told = error.envelope().get("error")
    message = told.get("message") if isinstance(told, dict) else told
    return str(message or error.message)
