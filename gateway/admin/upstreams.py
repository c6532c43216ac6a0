"""``/admin/upstreams``: the replicas of each upstream, and which of them are drained."""

from typing import Any

from litestar import Request, get, post
from litestar.params import FromPath
from msgspec import Struct

from gateway.api.connection import parts_of, read_body
from gateway.backends.upstream import Replica, ReplicaView, UpstreamBackend
from gateway.errors import NotFound
from gateway.wire.validation import convert, decode_object

HTTP = Request[Any, Any, Any]


class ReplicaName(Struct, frozen=True, forbid_unknown_fields=True):
    """The address of a replica as the settings write it."""

    replica: str


class UpstreamView(Struct, frozen=True):
    """One upstream: what it serves, and where."""

    name: str
    models: list[str]
    replicas: list[ReplicaView]


class UpstreamList(Struct, frozen=True):
    """Every upstream of the settings."""

    upstreams: list[UpstreamView]


@get("/upstreams")
async def list_upstreams(request: HTTP) -> UpstreamList:
    """List the upstreams with the state and the load of each replica."""
    upstreams = parts_of(request.scope).upstreams
    return UpstreamList([_view(upstream) for upstream in upstreams.values()])


@post("/upstreams/{name:str}/drain", status_code=200)
async def drain(request: HTTP, name: FromPath[str]) -> UpstreamView:
    """Send a replica no new requests, until the gateway is restarted; those in flight go on."""
    return await _set_drained(request, name, is_drained=True)


@post("/upstreams/{name:str}/undrain", status_code=200)
async def undrain(request: HTTP, name: FromPath[str]) -> UpstreamView:
    """Send a drained replica requests again."""
    return await _set_drained(request, name, is_drained=False)


async def _set_drained(request: HTTP, name: str, *, is_drained: bool) -> UpstreamView:
    asked = convert(decode_object(await read_body(request.scope, request.receive)), ReplicaName)
    upstream = parts_of(request.scope).upstreams.get(name)
    if upstream is None:
        raise NotFound(f"there is no upstream {name!r}", param="name")
    _replica(upstream, asked.replica).is_drained = is_drained
    return _view(upstream)


def _replica(upstream: UpstreamBackend, url: str) -> Replica:
    for replica in upstream.replicas:
        if replica.url == url.rstrip("/"):
            return replica
    known = ", ".join(replica.url for replica in upstream.replicas)
    raise NotFound(f"replica: {upstream.name} has no {url!r}, only {known}", param="replica")


def _view(upstream: UpstreamBackend) -> UpstreamView:
    models = [info.model_id for info in upstream.models()]
    return UpstreamView(upstream.name, models, [replica.view for replica in upstream.replicas])
