"""Why a prompt misses the prefix cache, as an operator is told over HTTP."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.contract.prefix_admin.desk import REGELN, RULES, Desk, Json, assistant, system


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


def test_edited_history_is_named_when_the_oldest_turns_were_dropped(desk: Desk) -> None:
    """A window that lets go of the first question and answer is named, whatever else differs."""
    talk = ("What is 2 plus 3?", assistant("Five."), "What is 4 plus 5?")
    desk.ask(system(RULES), *talk)
    seen = desk.explain(system(RULES), talk[2], assistant("Nine."), "And 6 plus 7?")
    assert seen["cause"] == "edited_history", seen
    assert "dropped" in seen["detail"]


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


def test_restart_is_named_when_it_took_the_prompt(
    serve: Callable[..., Any], tmp_path: Path
) -> None:
    """A miss after a restart is not called new where it is known not to be; a new prompt is."""
    with serve(DATA_DIR=str(tmp_path)) as stack:
        Desk(stack).ask(system(RULES), "Hi")
    with serve(DATA_DIR=str(tmp_path)) as stack:
        desk = Desk(stack)
        lost = desk.explain(system(RULES), "Hi")
        assert lost["cause"] == "cleared"
        assert "no disk tier" in lost["detail"]
        new = desk.explain(system("Never said."), "Hi")
        assert new["cause"] == "never_seen"
        assert "since 20" in new["detail"]


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
