"""Each cause of a miss is named from the two texts alone, in English and Chinese."""

import json
from typing import Any

import pytest

from prefix_layer.explain import find_cause, first_edit

LONG = " The rules follow: be brief, be kind, cite your sources and never guess at numbers."
LANG = "规则如下：请简短回答，保持友善，引用来源，绝不猜测数字。"

TIMES = [
    ("Time: 2026-11-29T22:00:01Z.", "Time: 2026-11-29T22:00:02Z."),
    ("Now 10:30:05 UTC.", "Now 10:31:17 UTC."),
    ("Today is Monday, Nov 29, 2026.", "Today is Tuesday, Nov 30, 2026."),
    ("Date: 29 November 2026.", "Date: 1 December 2026."),
    ("Date 11/29/2026, 9:05 PM,", "Date 11/30/2026, 10:15 AM,"),
    ("ts=1764453601", "ts=1764453999"),
    ("ts=1764453601123", "ts=1764453999001"),
    ("现在是2026年11月29日10时30分。", "现在是2026年11月30日9时5分。"),
    ("今天星期一，", "今天星期二，"),
    ("时间：下午3点15分。", "时间：上午9点20分。"),
    ("当前时间：10：30：05。", "当前时间：10：30：07。"),
    ("日期：二〇二六年十一月二十九日。", "日期：二〇二六年十一月三十日。"),
    ("Heute ist der 29. November 2026.", "Heute ist der 1. Dezember 2026."),
    ("Stand: 29.11.2026, 10:30 Uhr.", "Stand: 30.11.2026, 9:05 Uhr."),
    ("Es ist 10 Uhr 30.", "Es ist 11 Uhr 5."),
    ("Heute ist Donnerstag,", "Heute ist Freitag,"),
    ("Termin am 3. März,", "Termin am 4. Mai,"),
    ("现在是晚上十点半，", "现在是早上八点整，"),
    ("现在三点一刻。", "现在四点三刻。"),
    ("现在是两点钟。", "现在是五点钟。"),
    ("今天是腊月初八。", "今天是腊月初九。"),
    ("Nous sommes le 3 février 2026.", "Nous sommes le 4 août 2026."),
    ("Hoy es 3 de mayo de 2026.", "Hoy es 4 de junio de 2026."),
]
UUIDS = [
    (
        "id 9f1c2b3a-1111-4a2b-8c3d-0123456789ab",
        "id 0a1c2b3a-2222-4a2b-8c3d-0123456789ab",
    ),
    ("会话 9F1C2B3A11114A2B8C3D0123456789AB，", "会话 0A1C2B3A22224A2B8C3D0123456789AB，"),
]
IDENTIFIERS = [
    ("Request req_8fk3k2x0: go.", "Request req_9xy1z7q4: go."),
    ("trace=4bf92f3577b34da6", "trace=00f067aa0ba902b7"),
    ("会话编号 sess-a8f31c，", "会话编号 sess-b0c77e，"),
]
NUMBERS = [
    ("Request 17 of today.", "Request 18 of today."),
    ("You have 3 credits left.", "You have 12 credits left."),
    ("request_00042", "request_00043"),
    ("这是第 3 次请求。", "这是第 4 次请求。"),
    ("这是第三次请求。", "这是第四次请求。"),
    ("Price 12.50 now.", "Price 13.75 now."),
    ("This is the third attempt.", "This is the fourth attempt."),
    ("You have twenty-one credits left.", "You have twenty-two credits left."),
    ("Use one hundred and five words.", "Use two hundred words."),
    ("Nenne drei Gründe.", "Nenne fünf Gründe."),
]
SPACES = [
    ("Answer in English. ", "Answer in English."),
    ("Answer  in English.", "Answer in English."),
    ("Answer in\r\nEnglish.", "Answer in\nEnglish."),
    ("Answer\tin English.", "Answer in English."),
    ("请用中文回答。 ", "请用中文回答。"),
    ("请用中文\n回答。", "请用中文回答。"),
    ("A\n\n\nB", "A\n\nB"),
]
FORMS = [
    ("你好，世界", "你好,世界"),
    ("真的吗？好！", "真的吗?好!"),
    ("结束。下一个", "结束.下一个"),
    ("（注）说明：", "(注)说明:"),
    ("说“你好”吧", '说"你好"吧'),
    ("ｃｏｄｅ １２", "code 12"),
    ("日期：２０２６年１１月２９日", "日期：2026年11月29日"),
    ("Date: ２０２６-１１-２９.", "Date: 2026-11-29."),
    ("Time １０：３０ now", "Time 10:30 now"),
    ("It’s fine", "It's fine"),
    ("caf\u00e9 open", "cafe\u0301 open"),
    ("zero\u200bwidth here", "zerowidth here"),
    ("a\u00a0b", "a b"),
    ("你好，世界", "你好, 世界"),
]
CASES = [("Be BRIEF.", "Be brief."), ("HELLO there", "Hello there")]
PAIRS = [
    *(("timestamp", *pair) for pair in TIMES),
    *(("uuid", *pair) for pair in UUIDS),
    *(("identifier", *pair) for pair in IDENTIFIERS),
    *(("number", *pair) for pair in NUMBERS),
    *(("whitespace", *pair) for pair in SPACES[:2]),
    *(("whitespace", *pair) for pair in SPACES[2:]),
    *(("unicode_form", *pair) for pair in FORMS),
    *(("letter_case", *pair) for pair in CASES),
    ("edited_text", "Use only metric units.", "Use only imperial units."),
    ("edited_text", "请使用公制单位。", "请使用英制单位。"),
]


def tool(name: str, **more: str) -> dict[str, object]:
    return {"type": "function", "function": {"name": name, "description": f"does {name}", **more}}


TOOLS = [tool("search"), tool("weather"), tool("book")]


@pytest.mark.parametrize("behind", ["", LONG, LANG, "\nend"])
@pytest.mark.parametrize("before", ["", "You are a bot.\n", "你是助手。"])
@pytest.mark.parametrize(("cause", "here", "cached"), PAIRS)
def test_cause_is_named_when_one_piece_differs(
    cause: str, here: str, cached: str, before: str, behind: str
) -> None:
    """The cause does not depend on what stands around the difference, nor on the direction."""
    for a, b in ((here, cached), (cached, here)):
        found = find_cause(before + a + "<|im_end|>" + behind, before + b + "<|im_end|>" + behind)
        assert found is not None
        assert found.cause == cause, found


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize(
    ("cause", "here", "cached"),
    [
        ("json_key_order", {"a": 1, "b": [2, 3], "c": "x"}, {"b": [2, 3], "a": 1, "c": "x"}),
        ("json_key_order", {"o": {"x": 1, "y": 2}}, {"o": {"y": 2, "x": 1}}),
        ("json_key_order", {"城市": "北京", "天气": "晴"}, {"天气": "晴", "城市": "北京"}),
        ("json_key_order", [{"t": 17, "n": 18}], [{"n": 18, "t": 17}]),
        ("tool_order", TOOLS, TOOLS[::-1]),
        ("tool_order", TOOLS, [TOOLS[0], TOOLS[2], TOOLS[1]]),
        ("tool_order", {"tools": TOOLS}, {"tools": TOOLS[1:] + TOOLS[:1]}),
        ("list_order", ["a", "b", "c"], ["b", "a", "c"]),
        ("list_order", {"ids": [1, 2, 3]}, {"ids": [3, 1, 2]}),
    ],
)
def test_order_is_named_when_json_holds_the_same(
    cause: str, here: object, cached: object, indent: int | None
) -> None:
    """JSON with the same content in another order is told from JSON that differs."""
    texts = [
        f"Use this:\n{json.dumps(value, indent=indent, ensure_ascii=False)}\nNow answer."
        for value in (here, cached)
    ]
    found = find_cause(*texts)
    assert found is not None
    assert found.cause == cause


@pytest.mark.parametrize("wrap", ["{}", "<tool>{}</tool>", "- {}"])
def test_tool_order_is_named_when_each_tool_stands_on_its_line(wrap: str) -> None:
    """Tools are often written one a line, with or without tags."""
    lines = [wrap.format(json.dumps(entry)) for entry in TOOLS]
    found = find_cause("Tools:\n" + "\n".join(lines) + "\n.", "Tools:\n" + "\n".join(lines[::-1]))
    assert found is not None
    assert found.cause == "tool_order"


@pytest.mark.parametrize(
    ("cause", "here", "cached"),
    [
        ("json_key_order", 'Use {"a": 1, "b": "x"}.', 'Use {"b": "y", "a": 1}.'),
        (
            "json_key_order",
            'P {"o": {"x": 1, "y": 2}, "z": 3}',
            'P {"o": {"y": 2, "x": 1}, "z": 4}',
        ),
        ("tool_order", TOOLS, [tool("weather", strict="no"), TOOLS[0], TOOLS[2]]),
        (
            "line_order",
            "- one a\n- two b\n- three c\n- now 5",
            "- two b\n- one a\n- three c\n- now 6",
        ),
    ],
)
def test_order_is_named_when_a_value_changed_too(cause: str, here: Any, cached: Any) -> None:
    """What stands in another order is named though something in it changed as well."""
    ours, theirs = (text if isinstance(text, str) else json.dumps(text) for text in (here, cached))
    found = find_cause(ours, theirs)
    assert found is not None
    assert found.cause == cause


def test_other_causes_are_named_when_json_differs_in_more_than_order() -> None:
    """Spacing, a changed value and shuffled lines are no order of keys."""
    dense, loose = '{"a":1,"b":2}', '{"a": 1, "b": 2}'
    causes = [
        find_cause(f"Use {dense}.", f"Use {loose}."),
        find_cause('Use {"at": "10:30:05", "b": 2}.', 'Use {"at": "10:30:09", "b": 2}.'),
        find_cause("Docs:\nB second\nA first\nC third", "Docs:\nA first\nB second\nC third"),
        find_cause('Use {"a": 1, "b": "x"}.', 'Use {"a": 1, "b": "y"}.'),
    ]
    assert [found and found.cause for found in causes] == [
        "json_format",
        "timestamp",
        "line_order",
        "edited_text",
    ]


def test_nothing_is_found_when_one_text_continues_the_other() -> None:
    """A prompt that goes on behind a cached one has no difference."""
    assert find_cause("abc def", "abc") is None
    assert find_cause("abc", "abc def") is None
    assert first_edit("", "") is None


def test_text_is_new_when_nothing_is_alike_behind() -> None:
    """Prompts that part for good were never seen."""
    found = find_cause("Tell me about cats and dogs please", "Tell me why the sky looks so blue?")
    assert found is not None
    assert found.cause in ("never_seen", "edited_text")
    far = find_cause("A " + "x y z " * 2000, "A " + "p q r " * 2000)
    assert far is not None
    assert far.cause == "never_seen"


def test_edit_is_found_fast_when_texts_are_long() -> None:
    """Long prompts cost no more than their first difference."""
    text = "word " * 40_000
    edit = first_edit(text + "one " + text, text + "two " + text)
    assert edit is not None
    assert (edit.here, edit.cached, edit.resumes) == ("one", "two", True)
