"""Every cache request header and every field of ``strata``, as the contract's tables have them."""

import time
from typing import Any

import httpx
import pytest

from tests.contract.client import Client, until
from tests.contract.conftest import Relay
from tests.fakes.upstream import Answer, FakeUpstream, streamed

NO_CACHE = {"cache-control": "no-cache"}
NO_STORE = {"cache-control": "no-store"}
ASKED = "How do I turn on the oven?"
REWORDED = "How do I switch on the oven?"


def outcome(response: httpx.Response) -> str:
    assert response.status_code == 200, response.text
    return response.headers["x-strata-cache"]


def test_answer_is_made_anew_and_stored_when_no_cache(relay: Relay, upstream: FakeUpstream) -> None:
    """``no-cache`` skips the look-up and replaces what is stored."""
    relay.seed(ASKED)
    upstream.script = lambda call: Answer(streamed(["newer"]))
    assert outcome(relay.answer(ASKED, headers=NO_CACHE)) == "miss"

    def is_newer() -> bool:
        answer = relay.answer(ASKED)
        assert outcome(answer) == "exact"
        return bool(answer.json()["choices"][0]["message"]["content"] == "newer")

    until(is_newer)


def test_nothing_is_stored_when_no_store(relay: Relay, upstream: FakeUpstream) -> None:
    """``no-store`` looks up, and leaves nothing behind."""
    assert outcome(relay.answer(ASKED, headers=NO_STORE)) == "miss"
    assert outcome(relay.answer(ASKED, headers=NO_STORE)) == "miss"
    assert len(upstream.calls) == 2
    relay.seed(ASKED)
    assert outcome(relay.answer(ASKED, headers=NO_STORE)) == "exact"


@pytest.mark.parametrize("value", ["no-cache, no-store", "No-Store,NO-CACHE"])
def test_cache_is_bypassed_when_both_are_asked_for(
    relay: Relay, upstream: FakeUpstream, value: str
) -> None:
    """Both together neither read nor write; names of directives are case-insensitive."""
    relay.seed(ASKED)
    assert outcome(relay.answer(ASKED, headers={"cache-control": value})) == "bypass"
    assert len(upstream.calls) == 2


def test_entry_is_refused_when_it_is_older_than_max_age(relay: Relay) -> None:
    """``max-age`` bounds the age of what is served."""
    relay.seed(ASKED)
    assert outcome(relay.answer(ASKED, headers={"cache-control": "max-age=1000"})) == "exact"
    assert outcome(relay.answer(ASKED, headers={"cache-control": "max-age=0"})) == "miss"


def test_only_the_cache_is_asked_when_only_if_cached(relay: Relay, upstream: FakeUpstream) -> None:
    """A 504 instead of a call to the model, with what the caches found; else the stored answer."""
    only = {"cache-control": "only-if-cached"}
    refused = relay.chat(ASKED, headers=only)
    assert refused.status_code == 504
    assert refused.json()["error"]["message"]
    assert refused.headers["x-strata-cache"] == "miss"
    assert "x-strata-threshold" in refused.headers
    assert upstream.calls == []
    relay.seed(ASKED)
    assert outcome(relay.chat(ASKED, headers=only)) == "exact"
    assert outcome(relay.chat(REWORDED, headers=only)) == "semantic"


DEFAULTS: list[dict[str, Any]] = [
    {"n": 1, "logprobs": False, "response_format": {"type": "text"}, "logit_bias": {}},
    {"tools": [], "tool_choice": "none", "parallel_tool_calls": True, "stop": []},
]


@pytest.mark.parametrize("said", DEFAULTS)
def test_repeat_hits_when_defaults_are_said_or_left_out(
    relay: Relay, upstream: FakeUpstream, said: dict[str, Any]
) -> None:
    """What cannot change an answer parts no repeats, nor questions in other words."""
    relay.seed(ASKED)
    assert outcome(relay.answer(ASKED, **said)) == "exact"
    assert outcome(relay.answer(REWORDED, **said)) == "semantic"
    relay.seed("Who was Ada?", **said)
    assert outcome(relay.answer("Who was Ada?")) == "exact"
    assert len(upstream.calls) == 2


def test_penalty_of_nothing_is_no_field_when_the_model_is_ours(
    client: Client, relay: Relay
) -> None:
    """The local model takes an absent penalty for 0; what another engine takes is its own."""
    zero = {"frequency_penalty": 0, "presence_penalty": 0}
    for caller, found in ((client, "exact"), (relay, "miss")):
        caller.seed("Name a river.")
        assert outcome(caller.answer("Name a river.", **zero)) == found


@pytest.mark.parametrize("way", ["header", "field"])
def test_answer_is_forgotten_when_its_ttl_is_over(relay: Relay, way: str) -> None:
    """``x-strata-ttl`` and ``strata.ttl`` bound the life of an answer; a hit does not extend it."""
    headers = {"x-strata-ttl": "2"} if way == "header" else {}
    fields: dict[str, Any] = {"strata": {"ttl": 2}} if way == "field" else {}
    started = time.monotonic()
    relay.seed(ASKED, headers=headers, **fields)
    request = relay.body(ASKED)
    until(lambda: relay.lookup(request)["outcome"] != "exact", limit_s=10)
    assert time.monotonic() - started >= 1.9
    assert outcome(relay.answer(REWORDED, headers=NO_STORE)) == "miss"
    assert outcome(relay.answer(ASKED)) == "miss"


@pytest.mark.parametrize("way", ["header", "field"])
def test_spaces_are_separate_when_a_namespace_is_named(relay: Relay, way: str) -> None:
    """An answer of one namespace is not seen from another, exactly or by meaning."""
    headers = {"x-strata-namespace": "other-" + relay.http.headers["x-strata-namespace"]}
    fields: dict[str, Any] = {}
    if way == "field":
        fields, headers = {"strata": {"namespace": headers["x-strata-namespace"]}}, {}
        relay.http.headers.pop("x-strata-namespace")
    relay.seed(ASKED, headers=headers, **fields)
    here = {"x-strata-namespace": "third-" + ASKED.encode().hex()[:20]}
    assert outcome(relay.answer(ASKED, headers=here | NO_STORE)) == "miss"
    assert outcome(relay.answer(REWORDED, headers=here | NO_STORE)) == "miss"
    assert outcome(relay.answer(ASKED, headers=headers, **fields)) == "exact"


def test_entries_go_when_their_tag_is_deleted(relay: Relay) -> None:
    """Tags, from the header or the field, invalidate; others stay."""
    space = relay.http.headers["x-strata-namespace"]
    relay.seed(ASKED, headers={"x-strata-tags": f"doc-1-{space}, v2-{space}"})
    relay.seed("Name one metal.", strata={"tags": [f"doc-1-{space}"]})
    relay.seed("Name one river.", headers={"x-strata-tags": f"doc-2-{space}"})
    counted = relay.http.delete(
        "/admin/cache/entries", params={"tag": f"doc-1-{space}", "dry_run": 1}
    )
    assert counted.status_code == 200
    assert outcome(relay.answer(ASKED)) == "exact"
    relay.http.delete("/admin/cache/entries", params={"tag": f"doc-1-{space}"})
    for prompt, expected in [
        (ASKED, "miss"),
        ("Name one metal.", "miss"),
        ("Name one river.", "exact"),
    ]:
        assert relay.lookup(relay.body(prompt))["outcome"] == expected, prompt


def test_threshold_only_gets_stricter_when_the_caller_names_one(relay: Relay) -> None:
    """A caller can ask for more certainty than the intent does, never for less."""
    relay.seed(ASKED)
    usual = relay.answer(REWORDED)
    assert outcome(usual) == "semantic"
    threshold = float(usual.headers["x-strata-threshold"])
    lower = relay.answer(REWORDED, headers={"x-strata-threshold": "0.01"})
    assert float(lower.headers["x-strata-threshold"]) == threshold
    strict = relay.answer(REWORDED, headers={"x-strata-threshold": "1"} | NO_STORE)
    assert outcome(strict) == "miss"
    other = relay.answer("Who wrote Hamlet?", headers={"x-strata-threshold": "0"} | NO_STORE)
    assert outcome(other) == "miss"


def test_intent_is_taken_when_the_caller_names_it(relay: Relay) -> None:
    """``x-strata-intent`` skips detection."""
    named = relay.answer(ASKED, headers={"x-strata-intent": "code"})
    assert named.headers["x-strata-intent"] == "code"


def test_only_repeats_hit_when_semantic_is_off(relay: Relay) -> None:
    """``x-strata-semantic: off`` leaves the exact layer alone."""
    off = {"x-strata-semantic": "off"}
    relay.seed(ASKED)
    assert outcome(relay.answer(REWORDED, headers=off | NO_STORE)) == "miss"
    assert outcome(relay.answer(ASKED, headers=off)) == "exact"
    assert outcome(relay.answer(REWORDED)) == "semantic"


def test_repeat_hits_when_only_transport_fields_differ(relay: Relay) -> None:
    """Who asks and how the answer travels is no part of the question."""
    relay.seed(ASKED)
    fields = {"user": "u", "metadata": {"a": "b"}, "store": False, "service_tier": "auto"}
    cached = {"safety_identifier": "s", "prompt_cache_key": "k"}
    response = relay.answer(ASKED, **fields, **cached)
    assert response.headers["x-strata-cache"] == "exact"
    assert relay.stream(ASKED, stream_options={"include_usage": True}).cache == "exact"


@pytest.mark.parametrize(
    "fields",
    [{"max_tokens": 25}, {"seed": 1}, {"temperature": 0.1}, {"stop": ["x"]}, {"x_unknown": 1}],
)
def test_repeat_is_no_exact_hit_when_another_field_differs(
    relay: Relay, fields: dict[str, object]
) -> None:
    """Every field that is not transport enters the key, unknown ones too."""
    relay.seed(ASKED)
    assert relay.lookup(relay.body(ASKED, **fields))["outcome"] != "exact"


WRONG_HEADERS = [
    {"x-strata-ttl": "soon"},
    {"x-strata-ttl": "-1"},
    {"x-strata-threshold": "1.5"},
    {"x-strata-threshold": "nan"},
    {"x-strata-semantic": "perhaps"},
    {"cache-control": "max-age=long"},
]


@pytest.mark.parametrize("headers", WRONG_HEADERS)
def test_header_is_named_when_it_is_malformed(relay: Relay, headers: dict[str, str]) -> None:
    """A 400 that names the header, and no call to a model."""
    response = relay.chat(ASKED, headers=headers)
    assert response.status_code == 400, response.headers
    error = response.json()["error"]
    assert next(iter(headers)) in ((error["param"] or "") + error["message"]).lower()


def test_foreign_directives_are_ignored_when_http_allows_them(relay: Relay) -> None:
    """Unknown cache directives are no errors, as RFC 9111 5.2.3 has it."""
    relay.seed(ASKED)
    headers = {"cache-control": "no-transform, max-stale=5, unknown=x", "pragma": "x"}
    assert outcome(relay.answer(ASKED, headers=headers)) == "exact"


def rag(question: str, pages: str) -> str:
    return f"{pages}\n\nAnswer from the pages above: {question}"


def test_question_hits_when_its_pages_are_shared(relay: Relay, upstream: FakeUpstream) -> None:
    """``query`` is what similarity is judged on; ``context`` must be the same set."""
    first = {"query": ASKED, "context": ["doc-1", "doc-2"]}
    relay.seed(rag(ASKED, "Page one. " * 30), strata=first)
    assert "strata" not in upstream.calls[0].body
    same = {"query": REWORDED, "context": ["doc-2", "doc-1"]}
    asked = rag(REWORDED, "Page two. " * 30)
    assert outcome(relay.answer(asked, strata=same, headers=NO_STORE)) == "semantic"
    for context in (["doc-1"], ["doc-1", "doc-2", "doc-3"], ["doc-1", "doc-9"], [], None):
        other = {"query": REWORDED} | ({} if context is None else {"context": context})
        assert outcome(relay.answer(asked, strata=other, headers=NO_STORE)) == "miss", context


def test_our_rules_hit_when_the_documents_tell_them(relay: Relay) -> None:
    """In a chat on named documents "our" is the organisation's, whatever was asked before."""
    documents = ["handbook-3"]
    before = [user("What is our shipping time?"), {"role": "assistant", "content": "Two days."}]
    asked, reworded = (
        "Can we return opened goods to the supplier?",
        "Is it possible for us to return opened goods to the supplier?",
    )
    relay.seed([user(rag(asked, "Page. "))], strata={"query": asked, "context": documents})
    chat = [*before, user(rag(reworded, "Other pages. "))]
    fields = {"query": reworded, "context": documents}
    assert outcome(relay.answer(chat, strata=fields, headers=NO_STORE)) == "semantic"
    told = [user("We bought the Pro plan."), {"role": "assistant", "content": "Great."}, *chat]
    assert outcome(relay.answer(told, strata=fields, headers=NO_STORE)) == "miss"
    mine = "What is the status of my return?"
    fields = {"query": mine, "context": documents}
    relay.seed(rag(mine, "Page. "), strata=fields)
    named = relay.answer(f"{rag(mine, 'Page. ')} Please.", strata=fields, headers=NO_STORE)
    assert (outcome(named), named.headers["x-strata-intent"]) == ("miss", "personal")


def user(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


def test_repeat_needs_the_same_documents_when_a_context_is_named(relay: Relay) -> None:
    """Also an exact repeat misses when the documents behind it changed."""
    relay.seed(ASKED, strata={"context": ["doc-1"]})
    assert outcome(relay.answer(ASKED, strata={"context": ["doc-1"]})) == "exact"
    changed = relay.answer(ASKED, strata={"context": ["doc-1b"]}, headers=NO_STORE)
    assert outcome(changed) == "miss"


@pytest.mark.parametrize("temperature", [1.1, 2])
def test_cache_is_bypassed_when_the_temperature_is_high(
    relay: Relay, upstream: FakeUpstream, temperature: float
) -> None:
    """Above the policy's temperature every answer is meant to be another."""
    for _ in range(2):
        assert outcome(relay.answer(ASKED, temperature=temperature)) == "bypass"
    assert len(upstream.calls) == 2


def test_cut_answer_serves_repeats_only_when_a_limit_ended_it(
    relay: Relay, upstream: FakeUpstream
) -> None:
    """``length`` is in the key of a repeat, and never answers another wording."""
    upstream.script = lambda call: Answer(streamed(["Turn the"], finish="length"))
    relay.seed(ASKED)
    assert outcome(relay.answer(ASKED)) == "exact"
    assert outcome(relay.answer(REWORDED, headers=NO_STORE)) == "miss"
