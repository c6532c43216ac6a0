"""Which questions share an answer and which never may, in English and Chinese, in both orders."""

import pytest

from tests.contract.conftest import Relay

REWORDINGS = [
    ("What is the capital of France?", "What is France's capital city?"),
    ("What is the capital of France?", "what is the capital of france"),
    ("What is the capital of France?", "Please tell me: what is the capital of France?"),
    ("法国的首都是哪里？", "法国的首都是哪里"),
]


@pytest.mark.parametrize(("asked", "reworded"), REWORDINGS)
def test_answer_is_semantic_when_the_question_is_reworded(
    relay: Relay, asked: str, reworded: str
) -> None:
    """A rewording gets the stored answer, with the numbers of the decision."""
    first = relay.seed(asked).json()
    response = relay.answer(reworded)
    assert response.headers["x-strata-cache"] == "semantic", relay.lookup(relay.body(reworded))
    assert response.json()["choices"] == first["choices"]
    score, threshold = (float(response.headers[f"x-strata-{n}"]) for n in ("score", "threshold"))
    assert 0 < threshold <= score <= 1
    assert 0 < float(response.headers["x-strata-similarity"]) <= 1.0001
    assert response.headers["x-strata-intent"]
    assert response.headers["x-strata-entry"]


OTHERS = [
    ("What is the capital of France?", "What is not the capital of France?"),
    ("What is the capital of France?", "What is the capital of Germany?"),
    ("What is the capital of France?", "Which is the largest city of France?"),
    ("How do I turn the heating on?", "How do I turn the heating off?"),
    ("Is 15 a prime number?", "Is 13 a prime number?"),
    ("Convert 5 kg to pounds.", "Convert 5 pounds to kg."),
    ("法国的首都是哪里？", "德国的首都是哪里？"),
    ("怎么打开暖气？", "怎么关闭暖气？"),
]


@pytest.mark.parametrize(("asked", "other"), [*OTHERS, *((b, a) for a, b in OTHERS)])
def test_answer_is_a_miss_when_the_question_is_another(
    relay: Relay, asked: str, other: str
) -> None:
    """An opposite or merely similar question never gets the stored answer."""
    relay.seed(asked)
    response = relay.answer(other)
    assert response.headers["x-strata-cache"] == "miss"
