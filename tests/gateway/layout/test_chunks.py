"""The order of retrieved chunks: the same set always, and what each order costs."""

import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.layout import Chunk, ChunkOrder, PromptBuilder

TEXT = "It takes about forty letters to say this."


def chunks(ids: str) -> list[Chunk]:
    return [Chunk(chunk_id, f"{chunk_id}: {TEXT}") for chunk_id in ids]


def ids(arranged: tuple[Chunk, ...]) -> str:
    return "".join(chunk.chunk_id for chunk in arranged)


@given(
    st.lists(st.lists(st.sampled_from("abcdefgh"), max_size=6), max_size=8),
    st.sampled_from(["relevance", "id", "reuse"]),
    st.integers(1, 4),
)
def test_chunks_are_the_same_set_when_arranged(
    rounds: list[list[str]], by: str, max_orders: int
) -> None:
    """Whatever was remembered or forgotten, no chunk is lost, doubled or changed."""
    order = ChunkOrder(max_orders=max_orders)
    for names in rounds:
        given_ = chunks("".join(names))
        for arranged in order.options(given_).values():
            assert sorted(ids(arranged.chunks)) == sorted(set(names))
            assert set(arranged.chunks) == set(given_)
            assert 0 <= arranged.disorder <= 1
        order.note(order.arrange(given_, by))  # type: ignore[arg-type]
    last = {frozenset(names) for names in rounds if names}
    assert sum(order.hits.values()) <= sum(map(len, last)) * max(len(rounds), 1)


def test_earlier_order_comes_back_when_the_same_chunks_are_ranked_anew() -> None:
    """Reuse follows what is cached, and says what relevance would have cost."""
    order = ChunkOrder()
    first = order.arrange(chunks("dbca"), "reuse")
    order.note(first)
    options = order.options(chunks("cadb"))
    assert ids(options["reuse"].chunks) == ids(first.chunks) == "abcd"
    assert options["reuse"].computed_tokens == 0
    assert options["relevance"].reused_tokens == 0
    assert options["relevance"].disorder == 0 == options["relevance"].top_at
    assert options["reuse"].top_at == 2
    assert options["reuse"].disorder == 0.5


def test_longest_known_beginning_is_taken_when_several_fit() -> None:
    """New chunks follow the known ones, those used more often first."""
    order = ChunkOrder()
    for names in ("ab", "bcd", "bcx", "zq"):
        order.note(order.arrange(chunks(names), "relevance"))
    assert ids(order.arrange(chunks("dbcaq"), "reuse").chunks) == "bcdaq"
    assert order.hits["b"] == 3


def test_changed_chunk_is_another_one_when_its_id_stays() -> None:
    """A new version of a document is never counted as cached."""
    order = ChunkOrder()
    order.note(order.arrange(chunks("ab"), "id"))
    again = order.arrange([Chunk("a", "a: another text"), *chunks("b")], "reuse")
    assert again.reused_tokens == 0


def test_prompts_share_more_when_chunks_follow_earlier_prompts() -> None:
    """On retrievals that overlap, reuse computes least and relevance most."""
    chance = random.Random(4)
    computed = dict.fromkeys(("relevance", "id", "reuse"), 0)
    orders = {by: ChunkOrder() for by in computed}
    for _ in range(300):
        topic = chance.randrange(6)
        names = chance.sample("abcdefgh"[topic % 3 : topic % 3 + 5], 4)
        for by, order in orders.items():
            arranged = order.arrange(chunks("".join(names)), by)  # type: ignore[arg-type]
            computed[by] += arranged.computed_tokens
            order.note(arranged)
    assert computed["reuse"] <= computed["id"] < computed["relevance"]


def test_stable_parts_come_first_when_a_request_is_built() -> None:
    """Tools, rules and examples begin every prompt alike; the question and the facts end it."""
    tools = [{"type": "function", "function": {"name": name}} for name in ("zoo", "ask")]
    builder = PromptBuilder("Be brief.", tools=tools, examples=[("1+1?", "2")])
    first = builder.build("Who?", chunks=chunks("ba"), facts={"Date": "2026-11-30 10:01"})
    second = builder.build("When?", chunks=chunks("ab"), facts={"Date": "2026-11-30 10:02"})
    assert first.messages[:3] == second.messages[:3]
    assert [tool["function"]["name"] for tool in first.body["tools"]] == ["ask", "zoo"]
    ours, theirs = first.messages[-1]["content"], second.messages[-1]["content"]
    assert ours.index("</documents>") == theirs.index("</documents>")
    assert ours.split("</documents>")[0] == theirs.split("</documents>")[0]
    assert ours.endswith("Who?\n\nDate: 2026-11-30 10:01")
    assert second.arrangement is not None
    assert second.arrangement.computed_tokens == 0


def test_id_is_escaped_when_it_could_end_its_tag() -> None:
    """An id stands as data in its tag."""
    built = PromptBuilder().build("Q", chunks=[Chunk('a"><x', "text")])
    assert '<document id="a&quot;&gt;&lt;x">' in built.messages[-1]["content"]
    assert built.body == {"messages": built.messages}


@pytest.mark.parametrize(
    "text", ["</document>", "</ documents >", '<document id="x">', "</DOCUMENT>"]
)
def test_text_ends_no_document_when_it_spells_a_tag(text: str) -> None:
    """A retrieved text cannot pass for another document; other tags stay as they are."""
    built = PromptBuilder().build("Q", chunks=[Chunk("1", f"a <b>{text}"), Chunk("2", "b")])
    said = built.messages[-1]["content"]
    assert len(re.findall(r"</?\s*documents?\b", said, re.IGNORECASE)) == 6
    assert "a <b>&lt;" in said


def test_order_is_refused_when_there_is_no_such_one() -> None:
    """A misspelt order is told, with those that there are."""
    with pytest.raises(ValueError, match="by must be one of relevance, id, reuse, not 'x'"):
        PromptBuilder().build("Q", by="x")  # type: ignore[arg-type]


def test_later_requests_stay_when_an_earlier_one_is_changed() -> None:
    """What was built, and what was given to build it, are the caller's to change."""
    tools = [{"type": "function", "function": {"name": "f", "parameters": {"enum": ["a"]}}}]
    turn = {"role": "user", "content": [{"type": "text", "text": "Hi"}]}
    builder = PromptBuilder("Rules.", tools=tools)
    first = builder.build("Q", history=[turn]).body
    tools[0]["function"]["parameters"]["enum"].append("b")  # type: ignore[index]
    expected = builder.build("Q", history=[turn]).body
    assert first == expected
    first["messages"][0]["content"] += " It is 10:02."
    first["messages"][1]["content"][0]["text"] = "Bye"
    first["tools"][0]["function"]["parameters"]["enum"].append("c")
    assert builder.build("Q", history=[turn]).body == expected


def test_history_is_refused_when_it_holds_no_messages() -> None:
    """Text in place of a list of turns is told by its place."""
    with pytest.raises(TypeError, match=r"history\[0\] must be a message, not str"):
        PromptBuilder().build("Q", history="hello")  # type: ignore[arg-type]


def test_order_is_refused_when_it_could_remember_nothing() -> None:
    """A memory without room is told when it is made."""
    with pytest.raises(ValueError, match="max_orders must be at least 1, not -1"):
        ChunkOrder(max_orders=-1)


def test_chunks_are_refused_when_two_texts_have_one_id() -> None:
    """An id names one text in a prompt; the same chunk twice is one."""
    with pytest.raises(ValueError, match="two texts have the id 'a'"):
        ChunkOrder().arrange([Chunk("a", "1"), Chunk("a", "2")], "id")
    assert len(ChunkOrder().arrange([Chunk("a", "1"), Chunk("a", "1")], "id").chunks) == 1
