"""Whose matter "our" is where an answer rests on named documents."""

import pytest

from semantic_layer.outcome import Miss
from semantic_layer.request import CacheControl
from semantic_layer.stores.vector_index import Vector
from tests.fakes.house import House

DOCUMENTS = CacheControl(context=("handbook",))


def by_owner(text: str, _: Vector | None) -> str:
    """Take every question with an owner for a personal one."""
    return "personal" if {"our", "my", "mine"} & set(text.lower().split()) else "general"


@pytest.mark.parametrize(
    ("text", "control", "intent"),
    [
        ("What is our refund window?", DOCUMENTS, "general"),
        ("What is our refund window?", CacheControl(), "personal"),
        ("What is our refund window?", CacheControl(context=()), "personal"),
        ("What is my refund window?", DOCUMENTS, "personal"),
        ("Is my desk in our office?", DOCUMENTS, "personal"),
    ],
)
async def test_our_question_is_personal_when_no_documents_are_named(
    text: str, control: CacheControl, intent: str
) -> None:
    """With documents it is one of whom they are about; what is mine stays mine."""
    found = await House(detect=by_owner).ask(text, control)
    assert isinstance(found, Miss)
    assert found.judgement.intent == intent
    assert (found.scope is None) == (intent == "personal")
