"""``/v1/responses``: OpenAI's Responses API over chat backends, and the responses it keeps."""

from typing import Annotated, Any, Literal

import msgspec
import structlog
from litestar import Request, Response, delete, get, post
from litestar.params import FromPath, JSONBody
from msgspec import Meta, Struct

from gateway.answer import Answer
from gateway.api.connection import headers_of, parts_of
from gateway.api.shortcut import answered_by
from gateway.api.text_api import Arrival, Asked, TextApi
from gateway.auth import Tenant
from gateway.backends.base import CountsTokens, Usage, Work
from gateway.errors import BackendUnavailable, BadRequest, NotFound
from gateway.kept_responses import Conversation, KeptResponse, KeptResponses
from gateway.parts import Parts
from gateway.wire.blame import Blame
from gateway.wire.responses.answer import Drafts, ResponseOut, response_of
from gateway.wire.responses.chat import chat_body, turns_of
from gateway.wire.responses.events import ResponseStream
from gateway.wire.responses.items import (
    REFERENCE,
    Item,
    input_items,
    new_response_id,
    stored_items,
)
from gateway.wire.responses.items import response_of as response_of_item
from gateway.wire.responses.request import ResponsesRequest, check_responses
from gateway.wire.validation import convert, decode_object, wrong
from semantic_layer import beside_loop

ROUTE = "/v1/responses"
HTTP = Request[Any, Any, Any]

_RENAMED = {
    "max_completion_tokens": "max_output_tokens",
    "response_format.json_schema": "text.format",
    "response_format": "text.format",
    "tools[].function": "tools[]",
    "reasoning_effort": "reasoning.effort",
    "verbosity": "text.verbosity",
    "logprobs": "include",
}
_encode = msgspec.json.Encoder().encode
_log = structlog.get_logger(__name__)


class ItemList(Struct, frozen=True, kw_only=True):
    """A page of items."""

    object: Literal["list"] = "list"
    data: list[Item]
    first_id: str | None
    last_id: str | None
    has_more: bool


class Deleted(Struct, frozen=True, kw_only=True):
    """What became of a deleted response."""

    id: str
    object: Literal["response"] = "response"
    deleted: bool = True


class Paging(Struct, frozen=True):
    """Which page of the items."""

    after: str | None = None
    before: str | None = None
    limit: Annotated[int, Meta(ge=1, le=100)] = 20
    order: Literal["asc", "desc"] = "desc"


async def decode(arrival: Arrival) -> Asked:
    """Read a Responses request, and the conversation it continues.

    Raises:
        BadRequest: anything is wrong with it; names the field.
        NotFound: a response or an item it names is not kept.
    """
    tree, request = await arrival.read(_checked)
    kept, tenant = arrival.parts.responses, arrival.tenant.name
    before = Conversation([], [])
    if request.previous_response_id is not None:
        before = await kept.conversation(tenant, request.previous_response_id)
    items = [
        await _dereferenced(item, f"input[{at}]", kept, tenant)
        for at, item in enumerate(input_items(request.input))
    ]
    body, origins = await _fitting(arrival, request, tree, before.items, items)
    renderer = ResponsesRenderer(request, kept, arrival.tenant, before.ids, items)
    blame = Blame(_RENAMED, origins, "input")
    return Asked(request.model, body, renderer, bool(request.stream), request.strata, blame=blame)


def _checked(data: bytes) -> tuple[dict[str, Any], ResponsesRequest]:
    tree = decode_object(data)
    request = convert(tree, ResponsesRequest)
    check_responses(request, tree)
    return tree, request


async def _fitting(
    arrival: Arrival,
    request: ResponsesRequest,
    tree: dict[str, Any],
    before: list[Item],
    items: list[Item],
) -> tuple[dict[str, Any], list[str]]:
    """Return the chat body, of the latest turns only where truncation is asked for and needed.

    Models whose tokens we cannot count get the whole input.
    """
    whole = await beside_loop(len(arrival.data), chat_body, request, tree, before, items)
    found = arrival.parts.backends.find(request.model)
    if request.truncation != "auto" or found is None:
        return whole
    backend, _ = found
    if not isinstance(backend, CountsTokens):
        return whole

    async def fits(num_dropped: int) -> bool:
        body, _ = chat_body(request, tree, before, items, num_dropped)
        try:
            return await backend.has_room(Work("", request.model, body, arrival.tenant.salt))
        except (BadRequest, BackendUnavailable):
            return True  # told when it is to be answered

    if await fits(0):
        return whole
    cuts = turns_of([*before, *items])
    low, high = 0, len(cuts) - 1
    while low < high:
        middle = (low + high) // 2
        if await fits(cuts[middle]):
            high = middle
        else:
            low = middle + 1
    return chat_body(request, tree, before, items, cuts[low]) if cuts else whole


async def _dereferenced(item: Item, where: str, kept: KeptResponses, tenant: str) -> Item:
    """Return the item itself where only its id is given."""
    if item.get("type", REFERENCE) != REFERENCE:
        return item
    id_ = item.get("id")
    if not isinstance(id_, str):
        raise wrong(f"{where}.type", "expected an item with a type or a role")
    response_id = response_of_item(id_)
    found = await kept.find(tenant, response_id) if response_id is not None else None
    for known in [] if found is None else found.items:
        if known["id"] == id_:
            return known
    raise NotFound(f"{where}.id: no item {id_!r} is kept", param=f"{where}.id")


class ResponsesRenderer:
    """Writes an answer as a Response or its events, and keeps it where that is asked for."""

    def __init__(
        self,
        request: ResponsesRequest,
        kept: KeptResponses,
        tenant: Tenant,
        before: list[str],
        items: list[Item],
    ) -> None:
        self._request = request
        self._kept = kept
        self._tenant = tenant
        self._before = before
        self._items = items
        self._drafts = Drafts(new_response_id(), request)

    async def whole(self, answer: Answer) -> bytes:
        """Return a whole answer as JSON."""
        return _encode(await self._keep(response_of(self._drafts, answer)))

    def stream(self, _: Usage | None) -> ResponseStream:
        """Begin a stream."""
        return ResponseStream(self._drafts, self._keep)

    async def _keep(self, response: ResponseOut) -> ResponseOut:
        """Keep the response if it may be, and return it as it is to be told.

        A store that fails does not take the answer away: then it says that it is not stored.
        """
        if not self._request.is_stored:
            return response
        items = stored_items(self._items, response.id, len(response.output))
        kept = KeptResponse(self._before, items, msgspec.to_builtins(response))
        try:
            await self._kept.keep(self._tenant.name, response.id, kept)
        except BackendUnavailable as error:
            _log.warning("response_not_kept", response=response.id, error=error.message)
            return msgspec.structs.replace(response, store=False)
        return response


answer_responses = TextApi(ROUTE, decode)


@post(ROUTE, status_code=200, middleware=[answered_by(answer_responses)], tags=["models"])
async def create_response(
    data: JSONBody[ResponsesRequest],  # noqa: ARG001 - documents the body
) -> ResponseOut:
    """Answer a conversation in the Responses format; streams when ``stream`` is true."""
    raise AssertionError("answered by the middleware")


@get(f"{ROUTE}/{{response_id:str}}", tags=["models"])
async def get_response(request: HTTP, response_id: FromPath[str]) -> Response[dict[str, Any]]:
    """Give a kept response again."""
    if request.query_params.get("stream") in ("true", "1"):
        raise BadRequest("stream: a kept response is given whole only", param="stream")
    parts, tenant = _authorised(request)
    return Response((await _found(parts, tenant, response_id)).response)


@delete(f"{ROUTE}/{{response_id:str}}", status_code=200, tags=["models"])
async def delete_response(request: HTTP, response_id: FromPath[str]) -> Deleted:
    """Forget a kept response."""
    parts, tenant = _authorised(request)
    if not await parts.responses.forget(tenant, response_id):
        raise _unknown(response_id)
    return Deleted(id=response_id)


@get(f"{ROUTE}/{{response_id:str}}/input_items", tags=["models"])
async def list_input_items(request: HTTP, response_id: FromPath[str]) -> ItemList:
    """List what a kept response answers: its own input and the conversation before it."""
    parts, tenant = _authorised(request)
    query = {name: value for name, value in request.query_params.items() if name != "include"}
    paging = convert(query, Paging, strict=False)
    own = await _found(parts, tenant, response_id)
    earlier = [turn.items for turn in await _earlier(parts, tenant, own)]
    items = [item for turn in earlier for item in turn] + own.input
    return _page(items, paging)


@post(f"{ROUTE}/{{response_id:str}}/cancel", status_code=200, tags=["models"])
async def cancel_response(request: HTTP, response_id: FromPath[str]) -> ResponseOut:
    """Refuse: only background responses can be cancelled, and there are none."""
    parts, tenant = _authorised(request)
    await _found(parts, tenant, response_id)
    raise BadRequest("only a background response can be cancelled", param="response_id")


async def _earlier(parts: Parts, tenant: str, own: KeptResponse) -> list[KeptResponse]:
    if not own.before:
        return []
    return (await parts.responses.conversation(tenant, own.before[-1])).turns


async def _found(parts: Parts, tenant: str, response_id: str) -> KeptResponse:
    found = await parts.responses.find(tenant, response_id)
    if found is None:
        raise _unknown(response_id)
    return found


def _page(items: list[Item], paging: Paging) -> ItemList:
    ordered = items if paging.order == "asc" else items[::-1]
    ids = [item["id"] for item in ordered]
    start = _place(ids, paging.after, "after") + 1 if paging.after is not None else 0
    end = _place(ids, paging.before, "before") if paging.before is not None else len(ids)
    page = ordered[start:end][: paging.limit]
    return ItemList(
        data=page,
        first_id=page[0]["id"] if page else None,
        last_id=page[-1]["id"] if page else None,
        has_more=end - start > len(page),
    )


def _place(ids: list[str], id_: str, name: str) -> int:
    if id_ not in ids:
        raise BadRequest(f"{name}: no item {id_!r} here", param=name)
    return ids.index(id_)


def _unknown(response_id: str) -> NotFound:
    return NotFound(f"no response {response_id!r} is kept", param="response_id")


def _authorised(request: HTTP) -> tuple[Parts, str]:
    parts, headers = parts_of(request.scope), headers_of(request.scope)
    tenant = parts.key_ring.tenant(headers.get("authorization"), headers.get("x-api-key"))
    return parts, tenant.name
