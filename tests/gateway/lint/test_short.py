"""Faults of short prompts are named where they cost a block; clean short prompts are not blamed."""

import random

import pytest

from tests.gateway.lint.conftest import Lint
from tests.gateway.lint.logs import Row, chat

REQUESTS = 24
EXAMPLES = (
    ("apple", "fruit"),
    ("carrot", "vegetable"),
    ("salmon", "fish"),
    ("rice", "grain"),
    ("milk", "drink"),
)
WORDS = ("plum", "leek", "trout", "oats", "pear")
TASK = "Say what kind of food the word names. Answer with one word."


def examples(seed: int | None) -> list[Row]:
    """Show a few examples of a word each; in one order without a seed."""
    rng = random.Random(seed)
    rows = []
    for at in range(REQUESTS):
        shown = EXAMPLES if seed is None else rng.sample(EXAMPLES, len(EXAMPLES))
        said = [turn for q, a in shown for turn in (("user", q), ("assistant", a))]
        rows.append(chat(("system", TASK), *said, ("user", WORDS[at % len(WORDS)])))
    return rows


def test_order_of_examples_is_named_when_each_is_a_word(lint: Lint) -> None:
    """The markup about short turns costs more than their words."""
    mended = lint(examples(None))
    assert not mended.findings
    report = lint(examples(5))
    assert [finding.cause for finding in report.findings] == ["few_shot_order"]
    assert abs(report.reachable_share - mended.hit_share) < 0.1


@pytest.mark.parametrize(
    "task", ["Count the words of the user's message.", f"{TASK} Use lower case."]
)
def test_seed_is_named_when_it_heads_a_short_prompt(lint: Lint, task: str) -> None:
    """The first block is found without it, and with it nothing is."""
    rng = random.Random(1)
    seeds = [rng.getrandbits(30) for _ in range(REQUESTS)]
    asked = [("user", f"Is {word} a word?") for word in WORDS]
    report = lint([chat(("system", f"Seed: {s}\n{task}"), asked[s % 5]) for s in seeds])
    (found,) = report.findings
    assert (found.cause, found.name) == ("number", "random seed")
    assert report.hit_share < 0.1
    mended = lint([chat(("system", task), asked[s % 5]) for s in seeds])
    assert report.hit_share < report.reachable_share < mended.hit_share + 0.1


@pytest.mark.parametrize(
    "clean",
    [
        lambda at: (("user", f"What is {at * 7} plus {at * 3 + 1}?"),),
        lambda at: (("system", "Add up."), ("user", f"{at * 7} and {at * 3 + 1}")),
        lambda at: (("system", f"You are agent {at}."), ("user", f"{at} plus {at * 3}?")),
        lambda at: (("system", f"Seed: {at * 7919}\nBe kind."), ("user", f"Who is {at}?")),
        lambda at: (
            ("system", TASK),
            ("user", WORDS[at % 5]),
            ("assistant", "Yes."),
            ("user", "ok"),
            ("assistant", "Anything else?"),
            ("user", "no"),
        ),
    ],
    ids=["sums", "sums with rules", "names", "few words", "small talk"],
)
def test_short_prompts_are_not_blamed_when_they_are_clean(lint: Lint, clean: object) -> None:
    """What differs is what is asked for, or nothing of worth stands behind it."""
    assert callable(clean)
    assert not lint([chat(*clean(at)) for at in range(REQUESTS)]).findings
