"""Warm-ups and pins, over HTTP."""

from tests.contract.prefix_admin.desk import RULES, Desk, system


def test_prompts_are_computed_once_when_warmed(desk: Desk) -> None:
    """A warm-up computes what is missing, generates nothing, and says what it did."""
    first, second = desk.body(system(RULES), "One"), desk.body(system(RULES), "Two")
    done = desk.warm(first, second, {"model": desk.model}, "no", first)
    assert done["warmed"] == 3
    assert [row["index"] for row in done["results"]] == [0, 1, 4]
    assert [error["index"] for error in done["errors"]] == [2, 3]
    assert done["errors"][0]["param"] == "requests[2].messages"
    one, two, again = done["results"]
    assert (one["cached_tokens"], one["computed_tokens"]) == (0, one["prompt_tokens"])
    assert two["cached_tokens"] > 40
    assert again["computed_tokens"] == 0
    assert done["computed_tokens"] == one["computed_tokens"] + two["computed_tokens"]
    before = desk.computed()
    assert desk.cached(system(RULES), "One") == one["prompt_tokens"] - 1
    assert desk.computed() == before + 1


def test_pinned_prompt_outlives_reset_only_when_asked(desk: Desk) -> None:
    """Pins show in stats and tree, are taken off by pin=false, and by a reset."""
    body = desk.body(system(RULES), "Hi")
    (row,) = desk.warm(body, pin=True)["results"]
    assert row["pinned"]
    assert desk.stats()["pinned_blocks"] > 0
    assert any(node["pinned"] for node in desk.tree()["prefixes"])
    assert desk.reset(keep_pinned=1)["pinned_blocks"] > 0
    assert desk.warm(body)["computed_tokens"] == 0
    (row,) = desk.warm(body, pin=False)["results"]
    assert not row["pinned"]
    desk.warm(body, pin=True)
    assert desk.reset() == {
        "blocks": {"free": 1024, "cached": 0, "active": 0},
        "pinned_blocks": 0,
    }


def test_over_long_rows_are_named_when_warmed(desk: Desk) -> None:
    """A prompt longer than the context, or more pins than fit, spoils only its own row."""
    long = desk.body("word " * 9000)
    pins = [desk.body(f"{i} {'word ' * 4000}") for i in range(3)]
    done = desk.warm(long, desk.body("Hi"), *pins, pin=True)
    assert [error["index"] for error in done["errors"]] == [0, 4]
    assert "pool" in done["errors"][1]["message"]
    assert done["errors"][1]["param"] == "pin"
    desk.reset()


def test_everything_is_unpinned_when_asked(desk: Desk) -> None:
    """Pins go, what they kept stays cached; again there is nothing to unpin."""
    bodies = [desk.body(system(RULES), text) for text in ("One", "Two")]
    desk.warm(*bodies, pin=True)
    pinned = desk.stats()["pinned_blocks"]
    done = desk.http.delete("/admin/prefix/pins").json()
    assert (done["unpinned_blocks"], done["pinned_blocks"]) == (pinned, 0)
    assert desk.warm(*bodies)["computed_tokens"] == 0
    assert desk.http.delete("/admin/prefix/pins").json()["unpinned_blocks"] == 0
    assert desk.http.delete("/admin/prefix/pins", params={"all": 1}).status_code == 400


def test_refusal_is_foretold_when_a_prompt_is_too_long(desk: Desk) -> None:
    """Explain says what the model API would say, where that is a refusal."""
    long = "word " * 9000
    seen = desk.explain(long)
    assert (seen["cause"], seen["cached_tokens"]) == ("too_long", 0)
    assert seen["prompt_tokens"] > 8192
    assert "would be refused" in seen["detail"]
    answer = desk.http.post("/v1/chat/completions", json=desk.body(long))
    assert answer.json()["error"]["code"] == "context_length_exceeded"
