"""The OpenAPI document, with what Litestar does not know of: our errors, and streams.

Served as JSON alone: a page to look at it would need scripts from elsewhere.
"""

from http import HTTPStatus
from typing import Any

from litestar import MediaType, Request
from litestar.openapi import OpenAPIConfig
from litestar.openapi.plugins import JsonRenderPlugin

HEALTH = "/health/"
READY = "/health/ready"
STREAMED = ("/v1/chat/completions", "/v1/completions", "/v1/messages", "/v1/responses")
ANTHROPIC = "/v1/messages"
STATUSES = (400, 401, 403, 404, 405, 408, 409, 412, 413, 415, 429, 500, 502, 503, 504)

_TEXT = {"type": "string"}
_EVENT = {  # of each event, as generators read it
    "type": "object",
    "required": ["data"],
    "properties": {"data": _TEXT, "event": _TEXT},
}
_MAYBE_TEXT = {"type": ["string", "null"]}
_ERRORS = {
    "Error": {
        "type": "object",
        "description": "OpenAI's error envelope.",
        "required": ["error"],
        "properties": {
            "error": {
                "type": "object",
                "required": ["message", "type", "param", "code"],
                "properties": {
                    "message": _TEXT,
                    "type": _TEXT,
                    "param": _MAYBE_TEXT,
                    "code": {"type": ["string", "integer", "null"]},
                },
            }
        },
    },
    "AnthropicError": {
        "type": "object",
        "description": "Anthropic's error envelope.",
        "required": ["type", "error"],
        "properties": {
            "type": {"const": "error"},
            "error": {
                "type": "object",
                "required": ["type", "message"],
                "properties": {"type": _TEXT, "message": _TEXT},
            },
        },
    },
}


def openapi_config(version: str) -> OpenAPIConfig:
    """Describe the API at ``/schema/openapi.json``, and at ``/schema``."""
    return OpenAPIConfig(
        title="Strata", version=version, path="/schema", render_plugins=[_Document()]
    )


class _Document(JsonRenderPlugin):
    def __init__(self) -> None:
        super().__init__(path=("/openapi.json", "/"), media_type=MediaType.JSON)
        self._json: bytes | None = None

    def render(self, request: Request[Any, Any, Any], openapi_schema: dict[str, Any]) -> bytes:
        if self._json is None:
            self._json = self.render_json(request, completed(openapi_schema))
        return self._json


def completed(document: dict[str, Any]) -> dict[str, Any]:
    """Return the document with every status and content type that routes answer with."""
    components = document.get("components", {})
    schemas = {**components.get("schemas", {}), **_ERRORS}
    paths = {
        path: {method: _operation(path, spec) for method, spec in operations.items()}
        for path, operations in document["paths"].items()
    }
    return {**document, "paths": paths, "components": {**components, "schemas": schemas}}


def _operation(path: str, spec: dict[str, Any]) -> dict[str, Any]:
    responses = {**spec["responses"]}
    if path in STREAMED:
        content = {**responses["200"]["content"], "text/event-stream": {"schema": _EVENT}}
        responses["200"] = {**responses["200"], "content": content}
    if path == READY:
        responses["503"] = {**responses["200"], "description": "Nothing could be answered"}
    if not path.startswith(HEALTH):
        name = "AnthropicError" if path.startswith(ANTHROPIC) else "Error"
        reference = {"schema": {"$ref": f"#/components/schemas/{name}"}}
        for status in STATUSES:
            responses[str(status)] = {
                "description": HTTPStatus(status).phrase,
                "content": {"application/json": reference},
            }
    return {**spec, "responses": responses}
