"""Which replica gets a request: weights, load, and where its prefix lives."""

import math
import random
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.backends.upstream.policies import LeastBusy, Policy, PrefixAffinity, RoundRobin
from gateway.backends.upstream.prefix import BLOCK_BYTES, MAX_KEYS, Prefix, prefix_of
from gateway.backends.upstream.replica import Replica

SYSTEM = "You are the assistant of our shop. " * 40


def replicas_of(*weights: float) -> list[Replica]:
    return [Replica(f"http://replica-{at}/v1", weight) for at, weight in enumerate(weights)]


def chat(*texts: str, system: str = SYSTEM, **fields: Any) -> Prefix:
    """Return the prefix of a conversation: system, user, assistant, user."""
    roles = ["system", *["user", "assistant"] * len(texts)]
    messages = [
        {"role": role, "content": text} for role, text in zip(roles, [system, *texts], strict=False)
    ]
    return prefix_of({"model": "m", "messages": messages, **fields})


def send(policy: Policy, prefix: Prefix, replicas: Sequence[Replica]) -> Replica:
    chosen = policy.choose(prefix, replicas)
    policy.served(prefix, chosen)
    return chosen


def test_turns_follow_the_weights_when_taken_in_rotation() -> None:
    """A replica of weight 3 gets three of four requests, spread out."""
    replicas = replicas_of(3, 1)
    policy = RoundRobin()
    turns = [replicas.index(policy.choose(Prefix(), replicas)) for _ in range(8)]
    assert turns == [0, 0, 1, 0, 0, 0, 1, 0]


def test_least_busy_is_chosen_when_loads_differ() -> None:
    """Load counts per weight; equals take turns."""
    replicas = replicas_of(1, 4, 1)
    policy = LeastBusy()
    for replica, in_flight in zip(replicas, [1, 3, 2], strict=True):
        replica.in_flight = in_flight
    assert policy.choose(Prefix(), replicas) is replicas[1]
    for replica in replicas:
        replica.in_flight = 0
    chosen = Counter(policy.choose(Prefix(), replicas).url for _ in range(6))
    assert chosen[replicas[0].url] == chosen[replicas[2].url] == 1


def test_conversation_stays_where_it_began_when_it_goes_on() -> None:
    """Every turn goes to the replica that holds the turns before."""
    replicas = replicas_of(1, 1, 1, 1)
    policy = PrefixAffinity()
    texts: dict[int, list[str]] = {at: [] for at in range(20)}
    homes: dict[int, set[str]] = {at: set() for at in range(20)}
    for turn in range(5):
        for at, said in texts.items():
            said += [f"question {at} {turn} " * 30]
            homes[at].add(send(policy, chat(*said, system=f"shop {at}" * 50), replicas).url)
            said += [f"answer {at} {turn} " * 30]
    assert all(len(urls) == 1 for urls in homes.values())
    assert len({url for urls in homes.values() for url in urls}) == 4, "new ones are spread"


def test_conversations_are_spread_when_they_share_a_short_system_prompt() -> None:
    """What little they have in common does not bring everything to one replica."""
    replicas = replicas_of(1, 1)
    policy = PrefixAffinity()
    chosen = Counter(
        send(policy, chat(f"{at} tell me " + "more " * 400, system="Be brief."), replicas).url
        for at in range(200)
    )
    assert min(chosen.values()) > 60


def test_caches_fill_evenly_when_few_conversations_are_hashed() -> None:
    """Chance may not give one replica most of them: it would forget them while others idle."""
    for trial in range(40):
        replicas, policy = replicas_of(1, 1), PrefixAffinity()
        chosen = Counter(
            send(policy, chat("q", system=f"system {trial} {at}" * 40), replicas).url
            for at in range(8)
        )
        assert sorted(chosen.values()) in ([3, 5], [4, 4])


def test_shared_document_brings_requests_together_when_it_is_most_of_them() -> None:
    """Questions on one long document go to one replica while it has room."""
    replicas = replicas_of(1, 1, 1)
    policy = PrefixAffinity()
    chosen = {send(policy, chat(f"question {at}?"), replicas).url for at in range(30)}
    assert len(chosen) == 1


def test_document_inside_a_message_counts_when_the_question_follows_it() -> None:
    """A message's leading text is a prefix of its own: RAG prompts are one message."""
    replicas = replicas_of(1, 1, 1, 1)
    policy = PrefixAffinity()
    document = "Chapter one. " * 300
    prefixes = [prefix_of({"model": "m", "prompt": f"{document}Question {at}"}) for at in range(20)]
    assert len({send(policy, each, replicas).url for each in prefixes}) == 1
    other = prefix_of({"model": "m", "prompt": "x" * BLOCK_BYTES + document})
    assert not set(other.keys) & set(prefixes[0].keys)


@given(st.lists(st.floats(0.5, 8), min_size=1, max_size=6), st.integers(0, 2**32))
def test_load_is_bounded_when_everything_has_one_prefix(weights: list[float], seed: int) -> None:
    """None takes more than 1.25 times its share, rounded up, and one always has room."""
    replicas, dice = replicas_of(*weights), random.Random(seed)
    policy = PrefixAffinity()
    running: list[Replica] = []
    for _ in range(60):
        if running and dice.random() < 0.3:
            running.pop(dice.randrange(len(running))).in_flight -= 1
        chosen = send(policy, chat("same"), replicas)
        chosen.in_flight += 1
        running.append(chosen)
        share = 1.25 * len(running) * chosen.weight / sum(weights)
        assert chosen.in_flight <= math.ceil(share * (1 + 1e-9))


def test_spill_goes_to_one_other_when_the_home_is_full() -> None:
    """A hot prefix is computed on as few replicas as its load needs."""
    replicas = replicas_of(1, 1, 1, 1, 1, 1)
    policy = PrefixAffinity()
    home = send(policy, chat("q0"), replicas)
    chosen = set()
    for at in range(40):
        home.in_flight = 2
        chosen.add(send(policy, chat(f"q{at}"), replicas).url)
    assert len(chosen) == 1
    assert home.url not in chosen
    home.in_flight = 0


def test_gateways_agree_when_they_have_seen_nothing() -> None:
    """Two that start from nothing send a prefix to the same replica, whatever their order."""
    replicas = replicas_of(1, 2, 1)
    for at in range(50):
        prefix = chat(f"q{at}", system=f"system {at}" * 40)
        one = PrefixAffinity().choose(prefix, replicas)
        assert PrefixAffinity().choose(prefix, replicas[::-1]) is one


def test_few_prefixes_move_when_a_replica_is_added() -> None:
    """Rendezvous hashing moves only what the newcomer wins."""
    replicas = replicas_of(1, 1, 1, 1)
    prefixes = [chat("q", system=f"system {at}" * 40) for at in range(300)]
    before = [PrefixAffinity().choose(each, replicas[:3]) for each in prefixes]
    after = [PrefixAffinity().choose(each, replicas) for each in prefixes]
    moved = [new for old, new in zip(before, after, strict=True) if new is not old]
    assert set(moved) == {replicas[3]}
    assert len(moved) < 120


def test_shares_follow_weights_when_prefixes_are_new() -> None:
    """A replica of weight 3 wins three quarters of the prefixes."""
    replicas = replicas_of(3, 1)
    policy = PrefixAffinity()
    chosen = Counter(
        policy.choose(chat("q", system=f"system {at}" * 40), replicas).url for at in range(1000)
    )
    assert 700 < chosen[replicas[0].url] < 800


def test_prefix_finds_a_new_home_when_its_replica_is_forgotten() -> None:
    """What went down took its cache with it."""
    replicas = replicas_of(1, 1)
    policy = PrefixAffinity()
    home = send(policy, chat("q"), replicas)
    [other] = [each for each in replicas if each is not home]
    assert send(policy, chat("q", "a", "q2"), [other]) is other
    policy.forget(home)
    assert send(policy, chat("q", "a", "q2", "a2", "q3"), replicas) is other


def test_memory_is_bounded_when_prefixes_keep_coming() -> None:
    """The oldest are forgotten, a long prompt has a limited number of keys."""
    replicas = replicas_of(1, 1)
    policy = PrefixAffinity(max_known=100)
    for at in range(500):
        send(policy, chat(f"q{at}", system=f"system {at}"), replicas)
    assert len(policy._known) == 100
    assert len(chat("x" * 10_000_000).keys) == MAX_KEYS


def test_hint_decides_when_nothing_is_known() -> None:
    """Requests that the client says belong together go together."""
    replicas = replicas_of(1, 1, 1, 1)
    prefixes = [
        chat(f"q{at}", system=f"system {at}" * 40, prompt_cache_key="user-7") for at in range(20)
    ]
    assert len({PrefixAffinity().choose(each, replicas).url for each in prefixes}) == 1


SAME = [
    {"content": "Hi", "role": "user"},
    {"role": "user", "content": [{"type": "text", "text": "Hi"}]},
    {"role": "user", "content": [{"type": "text", "text": "H"}, {"type": "text", "text": "i"}]},
]
OTHER = [
    {"role": "system", "content": "Hi"},
    {"role": "user", "content": "Hi "},
    {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]},
    {"role": "user", "content": "Hi", "tool_calls": [{"id": "1"}]},
]


@pytest.mark.parametrize("message", SAME)
def test_prefix_is_equal_when_a_message_says_the_same(message: dict[str, Any]) -> None:
    """The form of a message does not matter, nor does anything behind the messages."""
    plain = prefix_of({"model": "m", "messages": [{"role": "user", "content": "Hi"}]})
    assert prefix_of({"seed": 3, "messages": [message], "model": "m"}) == plain


@pytest.mark.parametrize("message", OTHER)
def test_prefix_differs_when_a_message_differs(message: dict[str, Any]) -> None:
    """Role, text, parts and tool calls all are part of the prompt."""
    plain = prefix_of({"model": "m", "messages": [{"role": "user", "content": "Hi"}]})
    assert prefix_of({"model": "m", "messages": [message]}) != plain
    assert prefix_of({"model": "n", "messages": [{"role": "user", "content": "Hi"}]}) != plain


def test_tools_lead_the_prefix_when_there_are_some() -> None:
    """Templates put them first; the order of their keys does not matter."""
    tools = [{"type": "function", "function": {"name": "f", "parameters": {"a": 1, "b": 2}}}]
    turned = [{"function": {"parameters": {"b": 2, "a": 1}, "name": "f"}, "type": "function"}]
    assert chat("q", tools=tools) == chat("q", tools=turned)
    assert not set(chat("q", tools=tools).keys) & set(chat("q").keys)


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"messages": None},
        {"messages": [3, None, {}]},
        {"messages": [{"role": 3, "content": {"a": 1}}]},
        {"prompt": [1, 2, 3]},
        {"prompt": ["a", "b"]},
        {"messages": [{"role": "user", "content": "\ud83d"}]},
    ],
)
def test_prefix_is_harmless_when_the_body_has_another_shape(body: dict[str, Any]) -> None:
    """Whatever an API lets through gets some prefix."""
    replicas = replicas_of(1, 1)
    assert send(PrefixAffinity(), prefix_of(body), replicas) in replicas
