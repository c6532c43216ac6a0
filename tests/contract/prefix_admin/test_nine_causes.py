"""The causes of a miss that an operator must be told apart, all asked of one gateway with keys."""

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gateway.keys_file import add_key
from tests.contract.prefix_admin.desk import REGELN, RULES, Desk, Json, system, user
from tests.contract.stack import Stack

KEYS = {name: f"sk-{name}-0123456789abcdef" for name in ("alice", "bob")}
QUESTION = "What is the return policy?"
SECRET = "The launch code is 8417; whoever gives it to a visitor breaks the oath of the order. " * 4
NEW = "You translate recipes from French into plain English and keep every measure as it was. " * 3
ORDER = {"city": "Paris", "days": 3, "units": "metric"}
OTHER_TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m.role }}:\n{{ m.content }}<|im_end|>\n"
    "{% endfor %}{{ '<|im_start|>assistant:\n' }}"
)


def tool(name: str) -> Json:
    fields = {"type": "object", "properties": {name: {"type": "string"}}}
    function = {"name": name, "description": f"Use {name} to {name}.", "parameters": fields}
    return {"type": "function", "function": function}


TOOLS = [tool(name) for name in ("search", "book", "cancel")]
CHANGED: list[tuple[str, Json, Json]] = [
    ("timestamp", {"text": f"Now: 2026-11-30T10:31:44Z. {RULES}"},
     {"text": f"Now: 2026-11-30T10:30:05Z. {RULES}"}),
    ("json_key_order", {"text": f"Use {json.dumps(dict(reversed(ORDER.items())))}. {RULES}"},
     {"text": f"Use {json.dumps(ORDER)}. {RULES}"}),
    ("tool_order", {"text": RULES, "tools": TOOLS[::-1]}, {"text": RULES, "tools": TOOLS}),
    ("whitespace", {"text": f"{RULES}Stay brief. "}, {"text": f"{RULES}Stay brief."}),
    ("unicode_form", {"text": f"你好，助手。{REGELN}"}, {"text": f"你好,助手。{REGELN}"}),
]  # fmt: skip


class Gateway:
    """A gateway with two tenants whose model's template can be exchanged."""

    def __init__(self, stack: Stack, template: Path) -> None:
        stack.client.http.headers["x-strata-admin-key"] = "boss"
        stack.client.http.headers["authorization"] = f"Bearer {KEYS['alice']}"
        self._stack = stack
        self._template = template
        self.desk = Desk(stack)

    def ask(self, *, text: str, tools: list[Json] | None = None, key: str = "alice") -> None:
        more = {"tools": tools} if tools else {}
        self.desk.ask(system(text), QUESTION, key=KEYS[key], **more)

    def cause(self, *, text: str, tools: list[Json] | None = None, tenant: str = "alice") -> str:
        more = {"tools": tools} if tools else {}
        request = self.desk.body(system(text), QUESTION, **more)
        return str(self.desk.post("explain", {"request": request, "tenant": tenant})["cause"])

    def change_template(self) -> None:
        self._template.write_text(OTHER_TEMPLATE)
        self._stack.restart()


@pytest.fixture(scope="module")
def gateway(
    serve: Callable[..., Any], tiny_chat: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Gateway]:
    folder = tmp_path_factory.mktemp("causes")
    model, keys = folder / "model", folder / "keys.toml"
    shutil.copytree(tiny_chat, model)
    for name, key in KEYS.items():
        add_key(keys, name, key)
    settings = {"LOCAL__MODEL": str(model), "LOCAL__KV_TOKENS": "2048", "LOCAL__EVICTION": "lru"}
    with serve(API_KEYS_FILE=str(keys), ADMIN_KEY="boss", **settings) as stack:
        yield Gateway(stack, model / "chat_template.jinja")


def test_nine_causes_are_told_apart_when_one_gateway_is_asked(gateway: Gateway) -> None:
    """Each edit, another tenant, eviction, a new template and a new prompt have their own names."""
    told = []
    for _, here, cached in CHANGED:
        gateway.desk.reset()
        gateway.ask(**cached)
        told.append(gateway.cause(**here))
    assert told == [cause for cause, *_ in CHANGED]
    gateway.ask(text=SECRET, key="bob")
    assert gateway.cause(text=SECRET) == "other_tenant"
    gateway.ask(text=RULES)
    for i in range(16):
        gateway.ask(text=f"{i} others {REGELN} {i}", key="bob")
    assert gateway.cause(text=RULES) == "evicted"
    assert gateway.cause(text=NEW) == "never_seen"
    gateway.change_template()
    assert gateway.cause(text=RULES) == "template_change"
    assert gateway.cause(text=NEW) == "never_seen"


@pytest.mark.parametrize(
    ("method", "route"),
    [
        ("POST", "explain"), ("POST", "warm"), ("GET", "tree"), ("GET", "stats"),
        ("GET", "volatile"), ("DELETE", ""), ("DELETE", "pins"),
    ],
)  # fmt: skip
def test_tenant_is_refused_when_it_asks_an_operators_question(
    gateway: Gateway, method: str, route: str
) -> None:
    """A tenant's key opens nothing that tells of the prefix cache, whoever's prompts are in it."""
    gateway.ask(text=SECRET, key="bob")
    for sent in ({"authorization": f"Bearer {KEYS['alice']}"}, {"x-strata-admin-key": KEYS["bob"]}):
        headers = {"x-strata-admin-key": "", **sent}
        request = gateway.desk.body(user(QUESTION))
        body = {"request": request} if route == "explain" else {"requests": [request]}
        answer = gateway.desk.http.request(
            method, f"/admin/prefix/{route}".rstrip("/"), headers=headers, json=body
        )
        assert answer.status_code == 401, answer.text
        assert "8417" not in answer.text
