"""Texts longer than the embedder reads are never confused (field case S09)."""

import pytest

from tests.contract.conftest import Relay
from tests.fakes.upstream import FakeUpstream

ENGLISH = " ".join(
    f"Rule {k}: keep every reply short, polite and free of jargon." for k in range(1, 121)
)
CHINESE = "".join(f"第{k}条：回答要简短、礼貌、不用术语。" for k in range(1, 121))


def user(text: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": text}]


def under(system: str, text: str) -> list[dict[str, str]]:
    return [{"role": "system", "content": system}, *user(text)]


PAIRS = [
    (
        user(f"{ENGLISH} Question: name one metal."),
        user(f"{ENGLISH} Question: explain how to boil an egg."),
    ),
    (user(f"{CHINESE} 问题：说出一种金属。"), user(f"{CHINESE} 问题：怎么煮鸡蛋？")),
    (under(ENGLISH, "Name one metal."), under(ENGLISH, "Explain how to boil an egg.")),
    (
        user(f"{'word ' * 600}Is the answer to this yes or no?"),
        user(f"{'word ' * 600}Who won the war of the roses?"),
    ),
    (user(f"Question: name one metal. {ENGLISH}"), user(f"Question: boil an egg. {ENGLISH}")),
]


@pytest.mark.parametrize(("first", "second"), [*PAIRS, *((b, a) for a, b in PAIRS)])
def test_long_texts_miss_when_their_ends_differ(
    relay: Relay, upstream: FakeUpstream, first: list[dict[str, str]], second: list[dict[str, str]]
) -> None:
    """A shared opening makes no hit; the same text again is an exact one."""
    relay.seed(first)
    response = relay.answer(second)
    assert response.headers["x-strata-cache"] == "miss"
    assert len(upstream.calls) == 2
    again = relay.answer(first)
    assert again.headers["x-strata-cache"] == "exact"
    assert again.json()["choices"][0]["message"]["content"] == f"ECHO:{first[-1]['content']}"
