"""What an operator sees of the prefix cache and may do with it, over HTTP."""

import json
import shutil
import subprocess
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import torch
import zmq
from transformers import AutoModelForCausalLM, LlamaConfig

from gateway.keys_file import add_key
from tests.contract.client import until
from tests.contract.stack import Stack, command, environment, serving

TEXTS = ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json")
RULES = "Answer briefly, cite the manual, never guess numbers and stay polite at all times. " * 3
REGELN = "请简短回答，引用手册，绝不猜测数字，始终保持礼貌。" * 4
OFF = {"cache-control": "no-cache, no-store"}
Json = dict[str, Any]


@pytest.fixture(scope="module")
def tiny_chat(bundled_chat_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model with the bundled model's texts and tiny random weights."""
    folder = tmp_path_factory.mktemp("tiny-chat")
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 2}
    heads = {"num_attention_heads": 2, "num_key_value_heads": 1}
    config = LlamaConfig(vocab_size=49_152, max_position_embeddings=8192, **sizes, **heads)
    AutoModelForCausalLM.from_config(config).save_pretrained(folder)
    for name in TEXTS:
        if (bundled_chat_model / name).is_file():
            shutil.copy(bundled_chat_model / name, folder / name)
    template = bundled_chat_model / "chat_template.jinja"
    if template.is_file():
        shutil.copy(template, folder / template.name)
    return folder


@pytest.fixture(scope="module")
def serve(
    tiny_chat: Path, serving_models: Path, tmp_path_factory: pytest.TempPathFactory
) -> Callable[..., Any]:
    def start(**settings: str) -> Any:
        settings = {"SEMANTIC__ENABLED": "false", "LOCAL__MODEL": str(tiny_chat)} | settings
        return serving(tmp_path_factory.mktemp("prefix"), serving_models, **settings)

    return start


@pytest.fixture(scope="module")
def tiny(serve: Callable[..., Any]) -> Iterator[Stack]:
    with serve(LOCAL__KV_TOKENS="16384") as stack:
        yield stack


class Desk:
    """An operator and a user of one gateway with the tiny model."""

    def __init__(self, stack: Stack) -> None:
        self.http = stack.client.http
        self.model = self.http.get("/v1/models").json()["data"][0]["id"]

    def body(self, *messages: Json | str, **fields: Any) -> Json:
        turns = [m if isinstance(m, dict) else user(m) for m in messages]
        return {"model": self.model, "messages": turns, "max_tokens": 1, "temperature": 0, **fields}

    def ask(self, *messages: Json | str, key: str | None = None, **fields: Any) -> Json:
        headers = OFF | ({"authorization": f"Bearer {key}"} if key else {})
        body = self.body(*messages, **fields)
        answer = self.http.post("/v1/chat/completions", json=body, headers=headers)
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    def cached(self, *messages: Json | str, key: str | None = None) -> int:
        usage = self.ask(*messages, key=key)["usage"]
        return int(usage["prompt_tokens_details"]["cached_tokens"])

    def explain(self, *messages: Json | str, **more: Any) -> Json:
        return self.post("explain", {"request": self.body(*messages), **more})

    def warm(self, *requests: Json, **more: Any) -> Json:
        return self.post("warm", {"requests": list(requests), **more})

    def post(self, route: str, body: Json) -> Json:
        answer = self.http.post(f"/admin/prefix/{route}", json=body)
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    def reset(self, **query: Any) -> Json:
        answer = self.http.delete("/admin/prefix", params=query)
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    def stats(self) -> Json:
        return dict(self.http.get("/admin/prefix/stats").json())

    def tree(self, **query: Any) -> Json:
        answer = self.http.get("/admin/prefix/tree", params=query)
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    def computed(self) -> int:
        return int(self.stats()["tokens"]["computed"])


def user(text: str) -> Json:
    return {"role": "user", "content": text}


def system(text: str) -> Json:
    return {"role": "system", "content": text}


def assistant(text: str) -> Json:
    return {"role": "assistant", "content": text}


@pytest.fixture
def desk(tiny: Stack) -> Desk:
    desk = Desk(tiny)
    desk.reset()
    return desk


def tool(name: str, text: str) -> Json:
    parameters = {"type": "object", "properties": {"q": {"type": "string"}}}
    return {"name": name, "description": text, "parameters": parameters}


TOOLS = [tool("search", "find pages"), tool("weather", "forecast"), tool("book", "a table")]
ORDER = {"city": "Paris", "days": 3, "units": "metric"}
BACK = dict(reversed(ORDER.items()))
CAUSES = [
    ("timestamp", f"Now: 2026-11-29T10:30:05Z. {RULES}", f"Now: 2026-11-29T10:31:44Z. {RULES}"),
    ("timestamp", f"Today is Monday, 3 May 2026. {RULES}", f"Today is Friday, 7 May 2026. {RULES}"),
    ("timestamp", f"现在是2026年11月29日10时30分。{REGELN}",
     f"现在是2026年11月30日9时5分。{REGELN}"),
    ("uuid", f"Id 9f1c2b3a-1111-4a2b-8c3d-0123456789ab. {RULES}",
     f"Id 0a1c2b3a-2222-4a2b-8c3d-0123456789ab. {RULES}"),
    ("identifier", f"Session sess-a8f31c. {RULES}", f"Session sess-b0c77e. {RULES}"),
    ("number", f"Request 17 today. {RULES}", f"Request 18 today. {RULES}"),
    ("number", f"这是第 3 次请求。{REGELN}", f"这是第 12 次请求。{REGELN}"),
    ("json_key_order", f"Use {json.dumps(BACK)}. {RULES}", f"Use {json.dumps(ORDER)}. {RULES}"),
    ("json_key_order", f'参数 {{"天数": 3, "城市": "北京"}}。{REGELN}',
     f'参数 {{"城市": "北京", "天数": 3}}。{REGELN}'),
    ("tool_order", f"Tools: {json.dumps(TOOLS[::-1])} {RULES}",
     f"Tools: {json.dumps(TOOLS)} {RULES}"),
    ("tool_order", "Tools:\n" + "\n".join(map(json.dumps, TOOLS[1:] + TOOLS[:1])) + f"\n{RULES}",
     "Tools:\n" + "\n".join(map(json.dumps, TOOLS)) + f"\n{RULES}"),
    ("whitespace", f"{RULES}Stay brief. ", f"{RULES}Stay brief."),
    ("whitespace", f"Be kind.  {RULES}", f"Be kind. {RULES}"),
    ("whitespace", f"请用中文。\n{REGELN}", f"请用中文。{REGELN}"),
    ("unicode_form", f"你好，助手。{REGELN}", f"你好,助手。{REGELN}"),
    ("unicode_form", f"Don\u2019t guess. {RULES}", f"Don't guess. {RULES}"),
    ("unicode_form", f"Cafe\u0301 helper. {RULES}", f"Café helper. {RULES}"),
    ("letter_case", f"Be BRIEF now. {RULES}", f"Be brief now. {RULES}"),
    ("edited_text", f"Use metric units. {RULES}", f"Use imperial units. {RULES}"),
]  # fmt: skip


@pytest.mark.parametrize(("cause", "here", "cached"), CAUSES)
def test_cause_is_named_when_the_system_prompt_differs(
    desk: Desk, cause: str, here: str, cached: str
) -> None:
    """The cause, and the text at the first token that parts, are those of the nearest prompt."""
    desk.ask(system("Something else altogether, about cooking."), "Hi")
    desk.ask(system(cached), "What is the return policy?")
    desk.ask(system("A third prompt with other words in it."), "Hello")
    seen = desk.explain(system(here), "What is the return policy?")
    assert seen["cause"] == cause, seen
    assert seen["cached_tokens"] < seen["prompt_tokens"] - 1
    assert sum(seen["by_tier"].values()) == seen["cached_tokens"]
    parting = seen["first_divergence"]
    assert parting["text_here"] != parting["text_cached"]
    assert not {"\ufffd"} & set(parting["text_here"] + parting["text_cached"])


def test_place_is_shown_when_prompts_part(desk: Desk) -> None:
    """Token and texts lead straight to the piece that changes; explaining changes nothing."""
    desk.ask(system(f"Time 10:30:05. {RULES}"), "Hi")
    before = desk.stats()
    seen = desk.explain(system(f"Time 10:47:05. {RULES}"), "Hi")
    parting = seen["first_divergence"]
    assert parting["text_before"].endswith("Time 10:")
    assert parting["text_here"].startswith("47:05")
    assert parting["text_cached"].startswith("30:05")
    assert parting["token"] == seen["cached_tokens"]
    assert "10:47:05" in seen["detail"]
    assert "10:30:05" in seen["detail"]
    assert desk.stats()["tokens"] == before["tokens"]


def test_nothing_is_missing_when_the_prompt_is_cached(desk: Desk) -> None:
    """A whole hit has no divergence."""
    desk.ask(system(RULES), "Hi")
    seen = desk.explain(system(RULES), "Hi")
    assert seen["cause"] == "none"
    assert seen["cached_tokens"] == seen["prompt_tokens"] - 1
    assert seen["first_divergence"] is None


@pytest.mark.parametrize("question", ["Do you ship to Norway?", "能退货吗？", "x = 1\ny = 2"])
def test_prompt_is_new_when_only_its_question_is(desk: Desk, question: str) -> None:
    """A new question behind a cached system prompt is no fault of the prompt."""
    desk.ask(system(RULES), "What is the return policy?")
    seen = desk.explain(system(RULES), question)
    assert seen["cause"] == "never_seen"
    assert seen["cached_tokens"] > 30
    seen = desk.explain(system("Wholly unlike anything before it."), question)
    assert seen["cause"] == "never_seen"


@pytest.mark.parametrize(
    "history",
    [
        ("What was that about?", "It was about returns.", "And shipping?"),
        ("What is the policy?", "It was edited by the client.", "And shipping?"),
        ("退货政策是什么?", "It is thirty days.", "And shipping?"),
    ],
)
def test_edited_history_is_named_when_an_earlier_turn_changed(
    desk: Desk, history: tuple[str, str, str]
) -> None:
    """Whoever rewrites or drops earlier turns is told which one."""
    first = ("What is the policy?", "It is thirty days.", "And shipping?")
    talk = (system(RULES), first[0], assistant(first[1]), first[2])
    desk.ask(*talk)
    seen = desk.explain(system(RULES), history[0], assistant(history[1]), history[2])
    assert seen["cause"] == "edited_history", seen
    dropped = desk.explain(system(RULES), assistant(first[1]), first[2])
    assert dropped["cause"] == "edited_history", dropped


def test_eviction_and_reset_are_named_when_they_took_the_prompt(
    serve: Callable[..., Any],
) -> None:
    """What was cached and went is told from what never came, and why it went."""
    with serve(LOCAL__KV_TOKENS="1024", LOCAL__EVICTION="lru") as stack:
        desk = Desk(stack)
        desk.ask(system(RULES), "Hi")
        for i in range(8):
            desk.ask(system(f"{i} other {REGELN} {i}"), "Hello")
        seen = desk.explain(system(RULES), "Hi")
        assert seen["cause"] == "evicted", seen
        assert seen["first_divergence"]["text_cached"] is None
        desk.reset()
        desk.ask(system(REGELN), "Hi")
        desk.reset()
        assert desk.explain(system(REGELN), "Hi")["cause"] == "cleared"


KEYS = {"alice": "sk-alice-0123456789abcdef", "bob": "sk-bob-0123456789abcdef"}


@pytest.fixture(scope="module")
def shared(serve: Callable[..., Any], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    """A gateway with two tenants."""
    path = tmp_path_factory.mktemp("keys") / "keys.toml"
    for name, key in KEYS.items():
        add_key(path, name, key)
    with serve(API_KEYS_FILE=str(path), ADMIN_KEY="boss") as stack:
        stack.client.http.headers["x-strata-admin-key"] = "boss"
        stack.client.http.headers["authorization"] = f"Bearer {KEYS['alice']}"
        yield Desk(stack)


def test_other_tenant_is_named_without_its_text_when_it_has_the_prompt(shared: Desk) -> None:
    """A tenant neither hits nor is told what another one asked; the operator learns the cause."""
    secret = f"The launch code is 8417. {RULES}"
    shared.ask(system(secret), "Hi", key=KEYS["alice"])
    before = shared.computed()
    usage = shared.ask(system(secret), "Hi", key=KEYS["bob"], max_tokens=1)["usage"]
    assert usage["prompt_tokens_details"]["cached_tokens"] == 0
    assert shared.computed() - before == usage["prompt_tokens"]
    shared.reset()
    shared.ask(system(secret), "Hi", key=KEYS["alice"])
    seen = shared.explain(system(secret), "Hello", tenant="carol")
    assert seen["cause"] == "other_tenant"
    assert seen["first_divergence"]["text_cached"] is None
    assert "alice" not in json.dumps(seen)
    assert shared.explain(system(secret), "Hi", tenant="alice")["cause"] == "none"


def test_public_prompt_is_shared_by_all_tenants_when_warmed_so(shared: Desk) -> None:
    """What the operator makes public every tenant reuses; what they add stays theirs."""
    shared.reset()
    text = f"Public house rules. {RULES}"
    (row,) = shared.warm(shared.body(system(text), "Hi"), public=True, pin=True)["results"]
    assert row["computed_tokens"] == row["prompt_tokens"]
    assert row["pinned"]
    assert shared.cached(system(text), "My own words", key=KEYS["alice"]) > 48
    assert shared.cached(system(text), "My own words", key=KEYS["bob"]) < row["prompt_tokens"]
    tenants = {node["tenant"] for node in shared.tree()["prefixes"]}
    assert "(shared)" in tenants
    assert not any(name in tenant for name in KEYS for tenant in tenants)
    shared.reset()


def test_template_is_named_when_it_changed(
    serve: Callable[..., Any], tiny_chat: Path, tmp_path: Path
) -> None:
    """After a restart with another template, the miss is not called new."""
    folder, data = tmp_path / "model", tmp_path / "data"
    shutil.copytree(tiny_chat, folder)
    settings = {"LOCAL__MODEL": str(folder), "DATA_DIR": str(data)}
    with serve(**settings) as stack:
        Desk(stack).ask(system(RULES), "Hi")
    template = (
        "{% for m in messages %}<|im_start|>{{ m.role }}:\n{{ m.content }}<|im_end|>\n"
        "{% endfor %}{{ '<|im_start|>assistant:\n' }}"
    )
    (folder / "chat_template.jinja").write_text(template)
    with serve(**settings) as stack:
        desk = Desk(stack)
        assert desk.explain(system(RULES), "Hi")["cause"] == "template_change"
        assert desk.explain(system("Never said."), "Hi")["cause"] == "never_seen"
        desk.ask(system(RULES), "Hi")
        assert desk.explain(system(RULES), "Hi")["cause"] == "none"


def test_prompts_are_computed_once_when_warmed(desk: Desk) -> None:
    """A warm-up computes what is missing, generates nothing, and says what it did."""
    first, second = desk.body(system(RULES), "One"), desk.body(system(RULES), "Two")
    done = desk.warm(first, second, {"model": desk.model}, "no", first)
    assert done["warmed"] == 3
    assert [row["index"] for row in done["results"]] == [0, 1, 4]
    assert [error["index"] for error in done["errors"]] == [2, 3]
    assert done["errors"][0]["param"] == "requests[2].messages"
    one, two, again = done["results"]
    assert (one["cached_tokens"], one["computed_tokens"]) == (0, one["prompt_tokens"])
    assert two["cached_tokens"] > 40
    assert again["computed_tokens"] == 0
    assert done["computed_tokens"] == one["computed_tokens"] + two["computed_tokens"]
    before = desk.computed()
    assert desk.cached(system(RULES), "One") == one["prompt_tokens"] - 1
    assert desk.computed() == before + 1


def test_pinned_prompt_outlives_reset_only_when_asked(desk: Desk) -> None:
    """Pins show in stats and tree, are taken off by pin=false, and by a reset."""
    body = desk.body(system(RULES), "Hi")
    (row,) = desk.warm(body, pin=True)["results"]
    assert row["pinned"]
    assert desk.stats()["pinned_blocks"] > 0
    assert any(node["pinned"] for node in desk.tree()["prefixes"])
    assert desk.reset(keep_pinned=1)["pinned_blocks"] > 0
    assert desk.warm(body)["computed_tokens"] == 0
    (row,) = desk.warm(body, pin=False)["results"]
    assert not row["pinned"]
    desk.warm(body, pin=True)
    assert desk.reset() == {
        "blocks": {"free": 1024, "cached": 0, "active": 0},
        "pinned_blocks": 0,
    }


def test_tree_shows_what_is_shared_most_when_prompts_branch(desk: Desk) -> None:
    """The shared system prompt leads, with its text, its hits and what branches off."""
    for question in ("One", "Two", "Three", "Four"):
        desk.ask(system(RULES), question)
    shown = desk.tree()
    first = shown["prefixes"][0]
    assert first["hits"] == 3
    assert first["text"].startswith("<|im_start|>system\nAnswer briefly")
    assert first["tokens"] == first["own_tokens"]
    assert first["parent"] is None
    assert shown["total"] >= len(shown["prefixes"])
    assert len(desk.tree(limit=1)["prefixes"]) == 1
    assert {node["depth"] for node in desk.tree(depth=1)["prefixes"]} == {1}


def test_stats_and_metrics_agree_when_a_script_has_run(desk: Desk) -> None:
    """Blocks, tokens by source and TTFT by hit and miss are those of the requests made."""
    before, metrics = desk.stats(), desk.http.get("/metrics").text
    usages = [desk.ask(system(RULES), question)["usage"] for question in ("One", "Two", "One")]
    after = desk.stats()
    cached = [usage["prompt_tokens_details"]["cached_tokens"] for usage in usages]
    computed = sum(usage["prompt_tokens"] for usage in usages) - sum(cached)
    assert after["tokens"]["device"] - before["tokens"]["device"] == sum(cached)
    assert after["tokens"]["computed"] - before["tokens"]["computed"] == computed
    assert cached[0] == 0
    assert cached[2] == usages[2]["prompt_tokens"] - 1
    hits = [seen["ttft_s"].get("hit", {"count": 0})["count"] for seen in (before, after)]
    misses = [seen["ttft_s"].get("miss", {"count": 0})["count"] for seen in (before, after)]
    assert (hits[1] - hits[0], misses[1] - misses[0]) == (2, 1)
    assert sum(after["blocks"].values()) == after["num_blocks"]
    assert after["bytes"]["device"] > 0
    text = desk.http.get("/metrics").text
    for name, value in (
        ('strata_prefix_tokens_total{source="device"}', after["tokens"]["device"]),
        ('strata_prefix_tokens_total{source="computed"}', after["tokens"]["computed"]),
        ('strata_prefix_blocks{state="cached"}', after["blocks"]["cached"]),
    ):
        assert f"{name} {float(value)}" in text, name
    assert metrics != text


@pytest.mark.parametrize(
    ("method", "route", "body", "param"),
    [
        ("POST", "explain", {}, "request"),
        ("POST", "explain", {"request": {"model": "other", "messages": [user("x")]}},
         "request.model"),
        ("POST", "explain", {"request": {"model": "m", "messages": []}}, "request.messages"),
        ("POST", "explain", {"request": 3}, "request"),
        ("POST", "explain", {"request": {}, "extra": 1}, "extra"),
        ("POST", "warm", {"requests": []}, "requests"),
        ("POST", "warm", {"requests": {}}, "requests"),
        ("POST", "warm", {"requests": [{}], "pin": "yes"}, "pin"),
        ("POST", "warm", {"requests": [{}], "public": True, "tenant": "a"}, "tenant"),
        ("GET", "tree?limit=0", None, "limit"),
        ("GET", "tree?depth=x", None, "depth"),
        ("GET", "tree?nope=1", None, "nope"),
        ("DELETE", "?keep_pinned=perhaps", None, "keep_pinned"),
        ("DELETE", "?all=1", None, "all"),
    ],
)  # fmt: skip
def test_field_is_named_when_an_admin_request_is_wrong(
    desk: Desk, method: str, route: str, body: Json | None, param: str
) -> None:
    """Bad input is a 400 that names what is wrong."""
    url = f"/admin/prefix{route}" if route.startswith("?") else f"/admin/prefix/{route}"
    answer = desk.http.request(method, url, json=body)
    assert answer.status_code == 400, answer.text
    assert answer.json()["error"]["param"] == param


def test_over_long_rows_are_named_when_warmed(desk: Desk) -> None:
    """A prompt longer than the context, or more pins than fit, spoils only its own row."""
    long = desk.body("word " * 9000)
    pins = [desk.body(f"{i} {'word ' * 4000}") for i in range(3)]
    done = desk.warm(long, desk.body("Hi"), *pins, pin=True)
    assert [error["index"] for error in done["errors"]] == [0, 4]
    assert "pool" in done["errors"][1]["message"]
    assert done["errors"][1]["param"] == "pin"
    desk.reset()


def test_admin_routes_answer_plainly_when_there_is_no_local_model(relay_stack: Stack) -> None:
    """Without a local model there is nothing to explain; that is no server fault."""
    http = relay_stack.client.http
    body = {"request": {"model": "stub-model", "messages": [user("x")]}}
    assert http.post("/admin/prefix/explain", json=body).status_code == 503
    assert http.get("/admin/prefix/tree").status_code == 503
    assert http.delete("/admin/prefix").status_code == 503
    assert http.get("/admin/prefix/stats").json()["engine"]["state"] == "off"


def test_generated_text_is_reused_when_the_conversation_goes_on(desk: Desk) -> None:
    """The next turn finds prompt and answer of the one before, to the last generated token."""
    talk: list[Json] = [system(RULES), user("Say something odd.")]
    found = []
    for seed in range(3):
        answer = desk.ask(*talk, max_tokens=24, temperature=1.5, seed=seed)
        usage = answer["usage"]
        found.append((usage["prompt_tokens_details"]["cached_tokens"], usage["prompt_tokens"]))
        talk += [assistant(answer["choices"][0]["message"]["content"]), user("Go on.")]
        until(lambda: desk.stats()["running"] == 0, what="idle")
    lengths = [length for _, length in found]
    for (cached, _), before in zip(found[1:], lengths, strict=False):
        assert cached >= before + 20


@pytest.fixture(scope="module")
def operated(
    serve: Callable[..., Any], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Stack]:
    """A gateway whose settings name public prompts and a socket for routers."""
    folder = tmp_path_factory.mktemp("operated")
    row = {"messages": [system(f"House rules. {RULES}"), user("Hi")]}
    (folder / "public.jsonl").write_text(json.dumps(row) + "\n\n")
    settings = {"LOCAL__PUBLIC_PREFIXES": str(folder / "public.jsonl"), "LOCAL__KV_EVENTS": "on"}
    with serve(**settings) as stack:
        yield stack


def test_public_prompts_are_there_when_the_gateway_starts(operated: Stack) -> None:
    """The settings' public prompts are computed, pinned and shared before the first request."""
    desk = Desk(operated)
    assert desk.stats()["pinned_blocks"] > 0
    assert desk.cached(system(f"House rules. {RULES}"), "Whatever") > 40
    assert any(node["tenant"] == "(shared)" for node in desk.tree()["prefixes"])


def test_routers_hear_of_new_blocks_when_events_are_on(operated: Stack) -> None:
    """A subscriber on the socket in the data folder learns what a request stored."""
    desk = Desk(operated)
    path = Path(operated.settings["STRATA_DATA_DIR"]) / "kv-events.sock"
    heard: list[Json] = []
    with zmq.Context() as context, context.socket(zmq.SUB) as socket:
        socket.setsockopt(zmq.SUBSCRIBE, b"kv")
        socket.connect(f"ipc://{path}")

        def hear() -> bool:
            desk.ask(system(f"Told to routers. {RULES}"), f"{len(heard)} {uuid.uuid4()} {RULES}")
            while socket.poll(200):
                _, number, payload = socket.recv_multipart()
                heard.append(msgspec.msgpack.decode(payload))
                assert int.from_bytes(number, "big") == heard[-1]["sequence"]
            return any(event["type"] == "stored" for batch in heard for event in batch["events"])

        until(hear, what="a stored event")
    stored = [e for batch in heard for e in batch["events"] if e["type"] == "stored"]
    assert all(e["num_tokens"] == len(e["hashes"]) * 16 and e["tier"] == "device" for e in stored)


def test_command_warms_a_file_when_it_is_run(operated: Stack, tmp_path: Path) -> None:
    """``strata warm`` computes and pins what its file says, and tells what it did."""
    desk = Desk(operated)
    rows = [desk.body(system(f"Warmed by command {i}. {RULES}"), "Hi") for i in range(3)]
    path = tmp_path / "prompts.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in [*rows, {"model": desk.model}]))
    done = subprocess.run(
        command("warm", str(path), "--pin", "--json", "--url", operated.url),
        env=environment(operated.settings),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    told = json.loads(done.stdout)
    assert done.returncode == 1, done.stderr
    assert (told["warmed"], [bad["line"] for bad in told["bad"]]) == (3, [4])
    again = desk.warm(*rows)
    assert again["computed_tokens"] == 0
    assert all(row["pinned"] for row in again["results"])


def test_pins_come_back_when_the_engine_died(operated: Stack) -> None:
    """An engine that is started anew computes pinned and public prompts again."""
    desk = Desk(operated)
    before = desk.stats()["pinned_blocks"]
    assert before > 0
    operated.child("prefix_layer.process").kill()
    until(lambda: desk.stats()["engine"]["restarts"] == 1, what="restart seen")
    until(lambda: desk.stats().get("pinned_blocks") == before, limit_s=60, what="pinned again")
    assert desk.cached(system(f"House rules. {RULES}"), "After all") > 40


def test_start_stops_with_one_line_when_a_public_prompt_is_wrong(
    tiny_chat: Path, serving_models: Path, tmp_path: Path
) -> None:
    """A public prompt that cannot be used stops the start and names its line."""
    (tmp_path / "public.jsonl").write_text('\n{"messages": []}\n')
    settings = {
        "STRATA_SEMANTIC__ENABLED": "false",
        "STRATA_LOCAL__MODEL": str(tiny_chat),
        "STRATA_LOCAL__PUBLIC_PREFIXES": str(tmp_path / "public.jsonl"),
    }
    stack = Stack(tmp_path, serving_models, settings)
    done = subprocess.run(
        command("serve"),
        env=environment(stack.settings),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode != 0
    assert "public.jsonl line 2" in done.stderr + done.stdout
