"""A hundred clean prompts of many kinds and scripts, in one log and kind by kind."""

from typing import Any

import pytest

from tests.gateway.lint.conftest import Lint
from tests.gateway.lint.logs import TOOLS, chat

Row = dict[str, Any]
ALLOWED = 0.02
MAX_BLAMED = 1
KINDS: dict[str, tuple[str, tuple[str, str, str, str]]] = {
    "translation": (
        "Translate what the user writes into French. Keep names, numbers and line breaks.",
        ("Good morning, Ms. Lee.", "The train leaves at 9:40.", "Two of 12 are left.", "Thanks!"),
    ),
    "review": (
        "You review Python. Name bugs first, then style. Show a patch for each bug you name.",
        ("x = [1, 2][2]", "for i in range(len(a)): print(a[i])", "def f(a=[]): ...", "1 / 0"),
    ),
    "sql": (
        "Write one SQL query. Tables: orders(id, day, total), people(id, name, born, city).",
        ("Sales of 2024-05?", "Sales of 2025-06?", "Who was born after 1990?", "Top 10 cities"),
    ),
    "extraction": (
        'Answer with JSON only, such as {"name": "…", "amount": 0, "due": "YYYY-MM-DD"}.',
        ("Pay 40 € to Ann by 3 May", "Pay 41 € to Bo by 4 May", "Ann owes me 7", "due 2026-01-02"),
    ),
    "classes": (
        "Label: refund, delivery or praise.\nQ: Where is it?\nA: delivery\nQ: Lovely!\nA: praise",
        ("It never came", "I want my money back", "Best shop ever", "Order 66123 is late"),
    ),
    "maths": (
        "Solve step by step, then write the result on a line of its own after 'Result:'.",
        ("17 * 23", "18 * 24", "What is 2^10?", "Half of three quarters"),
    ),
    "dates": (
        "You know the calendar. Answer with a date in ISO form and the day of the week.",
        ("Monday after 2026-03-01", "Monday after 2026-04-01", "30 days from 5 May", "Easter 2027"),
    ),
    "story": (
        "You are a storyteller for children of six. No violence, happy ends, short sentences.",
        ("A fox and a moon", "A fox and a star", "The lost shoe", "A bear who can't sleep"),
    ),
    "mail": (
        "Draft a mail from notes. Friendly, at most eight lines, signed with 'Your team'.",
        ("- late\n- sorry\n- 5 % off", "- early\n- come by", "- invoice 881", "- invoice 882"),
    ),
    "logs": (
        "Find the first error in a server log, and say in one sentence what it means.",
        (
            "2026-11-30 10:00:01 INFO up\n2026-11-30 10:00:02 ERROR disk full",
            "2026-11-30 11:10:01 INFO up\n2026-11-30 11:10:09 ERROR no route to host",
            "1764495001 warn slow\n1764495002 error 0x80070005",
            "req_8f3k2 ok\nreq_9a8b7 failed: timeout",
        ),
    ),
    "german": (
        "Du berätst Mieter. Antworte in zwei Sätzen und nenne den Paragraphen, wenn du ihn kennst.",
        ("Darf er kündigen?", "Wer zahlt die Heizung?", "Ist Rauchen erlaubt?", "Was heißt § 558?"),
    ),
    "chinese": (
        "你是一位耐心的中文老师，请用简单的词语解释成语，并且各给两个例句。",
        ("画蛇添足", "守株待兔", "半途而废", "一石二鸟"),
    ),
    "japanese": (
        "あなたは旅行の案内人です。丁寧に、三文以内で答えてください。値段は円で書いてください。",
        ("京都で紅葉はいつですか。", "新幹線はいくらですか。", "温泉はどこですか。", "雨の日は？"),
    ),
    "korean": (
        "당신은 요리사입니다. 재료와 순서를 짧게 알려 주세요. 매운 음식은 미리 말해 주세요.",
        ("김치찌개", "비빔밥", "떡볶이 2인분", "떡볶이 3인분"),
    ),
    "arabic": (
        "أنت مساعد في مكتبة عامة. أجب بأدب وبجملتين على الأكثر، واذكر رقم الرف إن عرفته.",
        ("أين كتب التاريخ؟", "متى تفتحون؟", "هل لديكم خرائط؟", "كيف أجدد البطاقة؟"),
    ),
    "hindi": (
        "आप एक डॉक्टर के सहायक हैं। सरल भाषा में उत्तर दें और ज़रूरत हो तो डॉक्टर से मिलने को कहें।",
        ("सिर दर्द", "बुखार 101", "बुखार 102", "नींद नहीं आती"),
    ),
    "thai": (
        "คุณเป็นผู้ช่วยร้านกาแฟ ตอบสั้นๆ สุภาพ และบอกราคาเป็นบาทเสมอ",
        ("ลาเต้เย็น", "ชาเขียว", "เค้กมีไหม", "เปิดกี่โมง"),
    ),
    "russian": (
        "Ты помощник библиотекаря. Отвечай коротко и вежливо, называй зал и полку.",
        ("Где Пушкин?", "Где Чехов?", "Есть карты?", "Когда закрываетесь?"),
    ),
    "emoji": (
        "Answer with emoji only. 🎯 One to three of them, never a word, never a digit.",
        ("happy", "sad", "pizza 🍕", "rain ☔️ again"),
    ),
    "table": (
        "Turn notes into a Markdown table with the columns | item | count | price |.",
        ("3 pens, 1 €", "4 pens, 1 €", "a,b\n1,2\n3,4", "| x | 1 |"),
    ),
    "base64": (
        "Decode what you are given and describe it. Say 'unknown' if it is not base64.",
        ("aGVsbG8=", "d29ybGQ=", "eyJhIjogMX0=", "////"),
    ),
    "law": (
        "Summarise a clause for a layperson. Say what one must do, by when, and what happens else.",
        (
            "The lessee shall, within 14 days of receipt, give notice in writing.",
            "The lessee shall, within 30 days of receipt, give notice in writing.",
            "Section 4(b) applies mutatis mutandis.",
            "Time is of the essence.",
        ),
    ),
}


def tooled() -> list[Row]:
    asked = ("Find books on bees", "Book a place on Monday", "Call someone", "Find maps of 1900")
    return [chat(("system", "Use the tools."), ("user", text), tools=TOOLS) for text in asked]


def raw() -> list[Row]:
    begun = ("def add(a, b):\n", "def sub(a, b):\n", "class Queue:\n", "SELECT name FROM ")
    return [{"model": "m", "prompt": text} for text in begun]


def talk() -> list[Row]:
    said = [("system", "You are a patient tutor of physics who asks more than he tells.")]
    rows = []
    for question, answer in (
        ("Why is the sky blue?", "What do you know about light?"),
        ("It has colours.", "Which is scattered most?"),
        ("Blue?", "Yes: so where does it come from?"),
        ("From everywhere.", "There you are."),
    ):
        said = [*said, ("user", question)]
        rows.append(chat(*said))
        said = [*said, ("assistant", answer)]
    return rows


LOGS: dict[str, list[Row]] = {
    **{
        name: [chat(("system", system), ("user", text)) for text in texts]
        for name, (system, texts) in KINDS.items()
    },
    "tools": tooled(),
    "raw": raw(),
    "talk": talk(),
}


def test_prompts_are_a_hundred() -> None:
    """Twenty-five kinds of four prompts."""
    assert sum(map(len, LOGS.values())) == 100


def test_few_are_blamed_when_all_stand_in_one_log(lint: Lint) -> None:
    """Applications that share a gateway are not taken for one that changes its prompt."""
    rows = [row for at in range(4) for rows in LOGS.values() for row in rows[at : at + 1]]
    report = lint(rows * 3)
    assert sum(f.requests for f in report.findings) < ALLOWED * len(rows) * 3, report.findings


def test_few_kinds_are_blamed_when_each_is_a_log(lint: Lint) -> None:
    """Each kind alone is found clean."""
    blamed = {name: found for name, rows in LOGS.items() if (found := lint(rows * 2).findings)}
    assert len(blamed) < MAX_BLAMED, blamed


@pytest.mark.parametrize("copies", [1, 5])
def test_nothing_is_blamed_when_prompts_are_sent_again(lint: Lint, copies: int) -> None:
    """The same request over and over is the best a cache can get."""
    assert not lint(LOGS["law"][:1] * copies).findings
