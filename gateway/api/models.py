"""``GET /v1/models`` and ``/v1/models/{id}``: what the backends serve now."""

from typing import Any, Literal

from litestar import HttpMethod, Request, route
from litestar.params import FromPath
from msgspec import Struct

from gateway.api.connection import headers_of, parts_of
from gateway.auth import Tenant
from gateway.backends.base import ModelInfo
from gateway.errors import ModelNotFound
from gateway.parts import Parts

# the HTTP server drops a body that answers HEAD and keeps its length
_READS = [HttpMethod.GET, HttpMethod.HEAD]


class Model(Struct, frozen=True):
    """One model."""

    id: str
    created: int
    owned_by: str
    object: Literal["model"] = "model"


class ModelList(Struct, frozen=True):
    """All models."""

    data: list[Model]
    object: Literal["list"] = "list"


@route("/v1/models", http_method=_READS, status_code=200, tags=["models"])
async def list_models(request: Request[Any, Any, Any]) -> ModelList:
    """List the local and the upstream models."""
    parts, tenant = _authorised(request)
    listed = parts.backends.models()
    return ModelList([_model(info) for info in listed if tenant.rules.allows_model(info.model_id)])


@route("/v1/models/{model_id:path}", http_method=_READS, status_code=200, tags=["models"])
async def get_model(request: Request[Any, Any, Any], model_id: FromPath[str]) -> Model:
    """Describe one model; its name may hold slashes."""
    name = model_id.removeprefix("/")
    parts, tenant = _authorised(request)
    found = parts.backends.find(name)
    if found is None or not tenant.rules.allows_model(name):
        raise ModelNotFound(f"the model {name!r} does not exist", param="model")
    return _model(found[1])


def _authorised(request: Request[Any, Any, Any]) -> tuple[Parts, Tenant]:
    parts = parts_of(request.scope)
    headers = headers_of(request.scope)
    return parts, parts.key_ring.tenant(headers.get("authorization"), headers.get("x-api-key"))


def _model(info: ModelInfo) -> Model:
    return Model(info.model_id, info.created, info.owned_by)
