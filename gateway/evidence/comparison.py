"""Tells whether two answers say the same: by their words, else by a model that is asked."""

from gateway.answer import Answer
from gateway.backends.routing import Backends
from gateway.evidence.asking import ask
from semantic_layer import Equality, SemanticCache

NO_JUDGE = "none"
_MAX_TOKENS = 4
_INSTRUCTION = (
    "You compare two answers to one question. They say the same if whoever asked would learn the "
    "same from either; wording, length and politeness do not matter. Reply with one word, yes or no"
)


class Comparison:
    """Compares answers; ``judge_model`` is asked where words do not decide, unless it is ``none``.

    What nobody can tell stays undecided.
    """

    def __init__(self, cache: SemanticCache, backends: Backends, judge_model: str) -> None:
        self._cache = cache
        self._backends = backends
        self._judge_model = judge_model

    async def same(self, question: str, one: Answer, other: Answer) -> Equality:
        """Tell whether both answers say the same."""
        if not (_is_plain(one) and _is_plain(other)):
            return Equality(None, "not plain text")
        found = await self._cache.same_answer(one.text, other.text)
        if found.same is not None or self._judge_model == NO_JUDGE:
            return found
        return await self._judged(question, one.text, other.text)

    async def _judged(self, question: str, one: str, other: str) -> Equality:
        """Ask in both orders; a judge who contradicts himself has not decided."""
        says = [await self._says(question, *pair) for pair in ((one, other), (other, one))]
        same = says[0] if says[0] == says[1] else None
        return Equality(same, f"judge: {self._judge_model}")

    async def _says(self, question: str, one: str, other: str) -> bool | None:
        body = {
            "model": self._judge_model,
            "temperature": 0,
            "max_tokens": _MAX_TOKENS,
            "messages": [
                {"role": "system", "content": _INSTRUCTION},
                {
                    "role": "user",
                    "content": f"Question: {question}\n\nAnswer 1: {one}\n\nAnswer 2: {other}",
                },
            ],
        }
        answer = await ask(self._backends, self._judge_model, body)
        word = (answer.text if answer else "").strip().lower()
        return True if word.startswith("yes") else False if word.startswith("no") else None


def _is_plain(answer: Answer) -> bool:
    """Say whether an answer is one whole text and nothing else."""
    if len(answer.choices) != 1:
        return False
    choice = answer.choices[0]
    return bool(choice.text) and not choice.tool_calls and choice.finish_reason == "stop"
