"""What other parts say in English is said in the page's language: no word of a finding is left."""

import ast
import re
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

import gateway.doctor
from gateway.dashboard.language import LANGUAGES
from gateway.dashboard.sentences import sentences_in
from gateway.doctor.checks import CHECKS
from gateway.doctor.checks.prompts import check_prompts
from gateway.lint.finding import MENDS
from gateway.said import Joined, Said, Saying, say, told
from tests.gateway.doctor.cases import SOUND, Check
from tests.gateway.doctor.faults import FAULTS
from tests.gateway.doctor.seen import engine, report, sound, span

FOLDER = Path(gateway.doctor.__file__).parent
OTHERS = [language for language in LANGUAGES if language != "en"]
# Names: of settings, of routes, of commands, of what stands in quotes.
NAMES = re.compile(
    r"`[^`]*`|\"[^\"]*\"|\{.*?\}|\[\[.*?\]\]|\S*[/_.=]\S*|\b[A-Z][A-Z]+\b|"
    r"maxmemory-policy noeviction|cacheable = false"
)
WORDS = re.compile(r"[A-Za-z]{2,}[ ,;:]+[a-z]{2,}")
CASES = [
    case
    for case in [*((check, {}) for check in CHECKS), *SOUND, *(fault[1:3] for fault in FAULTS)]
    if case[0] is not check_prompts  # below
]


def said_in_checks() -> set[str]:
    """Every sentence that the checks' sources hold, and every noun that they count."""
    found: set[str] = set()
    for path in FOLDER.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                if node.func.id == "say":
                    found |= texts_in(node.args[0])
                if node.func.id == "counted":
                    found |= {
                        f"{{n}} {noun}{s}" for noun in texts_in(node.args[1]) for s in ("", "s")
                    }
    return found


def texts_in(node: ast.expr) -> set[str]:
    """The texts that an expression may be, without those put together of pieces."""
    match node:
        case ast.Constant(str(text)):
            return {text}
        case ast.IfExp():
            return texts_in(node.body) | texts_in(node.orelse)
    return set()


def without_data(saying: Saying) -> Saying:
    """The saying with nothing in the places of names and figures."""
    match saying:
        case Said(text, values):
            return Said(text, {name: without_data(value) for name, value in values.items()})
        case Joined(parts, by):
            return Joined([without_data(part) for part in parts], by)
    return "·"


@pytest.mark.parametrize("language", OTHERS)
def test_every_sentence_of_the_checks_is_translated_with_its_places(language: str) -> None:
    """None is missing, and none loses a value."""
    found = said_in_checks()
    assert len(found) > 150
    places = re.compile(r"\{\w+\}")
    for text in found:
        other = sentences_in(language).translated(text)
        assert other != text or text == "{status} {times}", text
        assert sorted(places.findall(text)) == sorted(places.findall(other)), text


@pytest.mark.parametrize("language", OTHERS)
@pytest.mark.parametrize(("check", "changes"), CASES)
def test_no_english_is_left_of_a_finding(
    language: str, check: Check, changes: dict[str, Any]
) -> None:
    """Title, evidence and mend of every kind of finding; names and figures stay."""
    for finding in check(sound(**changes)):
        for part in ("title", "evidence", "mend"):
            assert told(finding.said[part]) == getattr(finding, part)
            text = sentences_in(language).say(without_data(finding.said[part]))
            assert WORDS.search(NAMES.sub("·", text)) is None, text


@pytest.mark.parametrize("language", OTHERS)
@pytest.mark.parametrize("cause", MENDS)
def test_no_english_is_left_when_prompts_are_split(language: str, cause: str) -> None:
    """Whatever splits them: what it is called, and what to do."""
    detail = 'the text was changed: "a" here, "b" in the cached prompt'
    split = structs.replace(span(3000, cause=cause), mend=MENDS[cause], detail=detail)
    (finding,) = check_prompts(sound(engine=engine(prompts=report(split))))
    for part in ("title", "evidence", "mend"):
        text = sentences_in(language).say(finding.said[part])
        assert WORDS.search(NAMES.sub("·", text)) is None, text
    english = sentences_in("en").say(finding.said["title"])
    assert sentences_in(language).say(finding.said["title"]) != english


@pytest.mark.parametrize(
    ("english", "chinese"),
    [
        ("0.8123 is too low", "0.8123 太低"),
        ("Rome on one side only", "只有一方有 Rome"),
        ("factual: exact repeats only", "factual：只回答完全重复的请求"),
        ("1.2 is above 1", "1.2 高于 1"),
        (
            'message 3 (user) was edited: white space differs: "a" here, "b" in the cached prompt',
            '第 3 条消息（user）被修改：空白不同：此处为 "a"，缓存的提示中为 "b"',
        ),
        ("Rome / Oslo", "Rome / Oslo"),
        ("there is no intent 'x'", "没有意图 'x'"),
        ("there is no intent 'x', only a, b", "没有意图 'x'，只有 a, b"),
        ("budget: Expected `float` <= 1.0", "budget：应为 `float` <= 1.0"),
    ],
)
def test_recorded_text_is_translated_when_it_follows_a_known_sentence(
    english: str, chinese: str
) -> None:
    """Values are kept, what stands inside is translated too, and data stays as it is."""
    assert sentences_in("zh").translated(english) == chinese
    assert sentences_in("en").translated(english) == english


def test_long_text_is_left_as_it_is() -> None:
    """Reading it by a sentence with several places would take for ever."""
    text = "3 messages from message 1 (user) on were " * 100
    assert sentences_in("zh").translated(text) == text


def test_values_stay_data_when_they_look_like_sentences() -> None:
    """A name with braces, or one that is a sentence of ours, is shown as it is."""
    named = Joined([say("its budget is {share}", share="{x}"), "the verifier"], ", ")
    assert told(named) == "its budget is {x}, the verifier"
    assert sentences_in("zh").say(named) == "其预算为 {x}，the verifier"
    assert told(Said("{not a place}")) == "{not a place}"
