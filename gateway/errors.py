"""Errors a client can see, mapped to status codes and OpenAI's envelope in one place.

StrataError
├── BadRequest            400  the request itself is wrong; names the field
│   └── ContextTooLong    400  context_length_exceeded
├── Unauthorized          401
├── Forbidden             403
├── NotFound              404  (ModelNotFound: model_not_found)
├── Conflict              409  it does not go with how things are
├── PreconditionFailed    412  what a condition names was changed meanwhile
├── RateLimited           429  a rate, budget or concurrency limit of the tenant
├── NotCached             504  only-if-cached and nothing stored
├── Stopping              503  the gateway stops; another one, or the next, will answer
└── BackendError          502  what generates failed
    ├── BackendUnavailable 503 not started, restarting or breaker open
    ├── BackendTimeout    504
    ├── UpstreamAuth      502  an upstream does not accept the gateway's own key
    └── UpstreamStatus    as given by the upstream, body relayed
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gateway.call import CacheReport


class StrataError(Exception):
    """Base of all errors a client can see."""

    status = 500
    kind = "server_error"
    code: str | None = None

    def __init__(self, message: str, *, param: str | None = None, code: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.param = param
        if code is not None:
            self.code = code

    def envelope(self) -> dict[str, Any]:
        """Return OpenAI's error body."""
        return {
            "error": {
                "message": self.message,
                "type": self.kind,
                "param": self.param,
                "code": self.code,
            }
        }


class BadRequest(StrataError):
    """The request cannot be served as it is."""

    status = 400
    kind = "invalid_request_error"


class ContextTooLong(BadRequest):
    """Prompt and completion do not fit the model's context."""

    code = "context_length_exceeded"


class Unauthorized(StrataError):
    """No or unknown API key."""

    status = 401
    kind = "invalid_request_error"
    code = "invalid_api_key"


class Forbidden(StrataError):
    """The caller may not do this."""

    status = 403
    kind = "invalid_request_error"


class NotFound(StrataError):
    """What was named does not exist."""

    status = 404
    kind = "invalid_request_error"


class ModelNotFound(NotFound):
    """No backend serves this model."""

    code = "model_not_found"


class Conflict(StrataError):
    """What is asked does not go with how things are."""

    status = 409
    kind = "invalid_request_error"
    code = "conflict"


class PreconditionFailed(StrataError):
    """What the caller wants to change is not what the caller saw."""

    status = 412
    kind = "invalid_request_error"
    code = "precondition_failed"


class RateLimited(StrataError):
    """The tenant has used up a limit; ``headers`` say which, and when to try again."""

    status = 429
    kind = "rate_limit_error"
    code = "rate_limit_exceeded"

    def __init__(self, message: str, headers: dict[str, str], code: str | None = None) -> None:
        super().__init__(message, code=code)
        self.headers = headers


class NotCached(StrataError):
    """The caller allowed only a cached answer, and there is none; ``report`` is of the nearest."""

    status = 504
    kind = "invalid_request_error"
    code = "not_cached"

    def __init__(self, message: str, report: "CacheReport | None" = None) -> None:
        super().__init__(message)
        self.report = report


class Stopping(StrataError):
    """The gateway stops before the answer is complete."""

    status = 503
    code = "stopping"

    def __init__(self) -> None:
        super().__init__("the gateway is stopping; ask again")


class BackendError(StrataError):
    """What generates failed."""

    status = 502
    kind = "api_error"
    code = "backend_error"


class BackendUnavailable(BackendError):
    """Not started, restarting, or its breaker is open; worth another try."""

    status = 503
    code = "backend_unavailable"


class BackendTimeout(BackendError):
    """The backend did not answer in time."""

    status = 504
    code = "backend_timeout"


class UpstreamAuth(BackendError):
    """An upstream does not accept the key that this gateway sends; the client's is not at fault."""

    code = "upstream_auth"


class UpstreamStatus(BackendError):
    """An upstream answered with an error; its status and body are relayed as they are."""

    def __init__(self, status: int, body: dict[str, Any], headers: dict[str, str]) -> None:
        super().__init__(f"upstream answered {status}")
        self.status = status
        self.body = body
        self.headers = headers

    def envelope(self) -> dict[str, Any]:
        """Return the upstream's own error body."""
        return self.body
