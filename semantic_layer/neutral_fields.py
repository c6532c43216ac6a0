"""Fields of a request that say what leaving them out says; they make no key of their own. Pure.

Only values that the API documents as its default and that mean the same to every backend. Not among
them: penalties of 0, `temperature` and `top_p` of 1 and limits of tokens, which engines take from a
model's or their own settings where a request says nothing (vLLM, llama.cpp, Ollama), and
`parallel_tool_calls` beside tools, of which some engines' default is another.
"""

from typing import Any

DEFAULTS: dict[str, Any] = {
    "n": 1,
    "best_of": 1,
    "echo": False,
    "logprobs": False,
    "logit_bias": {},
    "stop": [],
    "response_format": {"type": "text"},
    "tools": [],
}
WITH_TOOLS: dict[str, tuple[Any, ...]] = {"tool_choice": ("auto",)}
WITHOUT_TOOLS: dict[str, tuple[Any, ...]] = {
    "tool_choice": ("auto", "none"),
    "parallel_tool_calls": (True,),
}


def without_neutral(fields: dict[str, Any]) -> dict[str, Any]:
    """Return the fields that say something; ``fields`` are without nulls.

    Deprecated ``functions`` count as tools.
    """
    tools = WITH_TOOLS if fields.get("tools") or fields.get("functions") else WITHOUT_TOOLS
    return {
        name: value
        for name, value in fields.items()
        if not (name in DEFAULTS and _is_same(value, DEFAULTS[name]))
        and not any(_is_same(value, neutral) for neutral in tools.get(name, ()))
    }


def _is_same(value: Any, neutral: Any) -> bool:
    """Compare as JSON does: true is not 1, 1.0 is."""
    return isinstance(value, bool) == isinstance(neutral, bool) and bool(value == neutral)
