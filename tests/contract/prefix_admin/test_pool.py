"""What an operator sees of the pool: its tree, its numbers and what is reused."""

from tests.contract.client import until
from tests.contract.prefix_admin.desk import RULES, Desk, Json, assistant, system, user


def test_tree_shows_what_is_shared_most_when_prompts_branch(desk: Desk) -> None:
    """The shared system prompt leads, with its text, its hits and what branches off."""
    for question in ("One", "Two", "Three", "Four"):
        desk.ask(system(RULES), question)
    shown = desk.tree()
    first = shown["prefixes"][0]
    assert first["hits"] == 3
    assert first["text"].startswith("<|im_start|>system\nAnswer briefly")
    assert first["tokens"] == first["own_tokens"]
    assert first["parent"] is None
    assert shown["total"] >= len(shown["prefixes"])
    assert len(desk.tree(limit=1)["prefixes"]) == 1
    assert {node["depth"] for node in desk.tree(depth=1)["prefixes"]} == {1}


def test_stats_and_metrics_agree_when_a_script_has_run(desk: Desk) -> None:
    """Blocks, tokens by source and TTFT by hit and miss are those of the requests made."""
    before, metrics = desk.stats(), desk.http.get("/metrics").text
    usages = [desk.ask(system(RULES), question)["usage"] for question in ("One", "Two", "One")]
    after = desk.stats()
    cached = [usage["prompt_tokens_details"]["cached_tokens"] for usage in usages]
    computed = sum(usage["prompt_tokens"] for usage in usages) - sum(cached)
    assert after["tokens"]["device"] - before["tokens"]["device"] == sum(cached)
    assert after["tokens"]["computed"] - before["tokens"]["computed"] == computed
    assert cached[0] == 0
    assert cached[2] == usages[2]["prompt_tokens"] - 1
    hits = [seen["ttft_s"].get("hit", {"count": 0})["count"] for seen in (before, after)]
    misses = [seen["ttft_s"].get("miss", {"count": 0})["count"] for seen in (before, after)]
    assert (hits[1] - hits[0], misses[1] - misses[0]) == (2, 1)
    assert sum(after["blocks"].values()) == after["num_blocks"]
    assert after["bytes"]["device"] > 0
    text = desk.http.get("/metrics").text
    for name, value in (
        ('strata_prefix_tokens_total{source="device"}', after["tokens"]["device"]),
        ('strata_prefix_tokens_total{source="computed"}', after["tokens"]["computed"]),
        ('strata_prefix_blocks{state="cached"}', after["blocks"]["cached"]),
    ):
        assert f"{name} {float(value)}" in text, name
    assert metrics != text


def test_generated_text_is_reused_when_the_conversation_goes_on(desk: Desk) -> None:
    """The next turn finds prompt and answer of the one before, to the last generated token."""
    talk: list[Json] = [system(RULES), user("Say something odd.")]
    found = []
    for seed in range(3):
        answer = desk.ask(*talk, max_tokens=24, temperature=1.5, seed=seed)
        usage = answer["usage"]
        found.append((usage["prompt_tokens_details"]["cached_tokens"], usage["prompt_tokens"]))
        talk += [assistant(answer["choices"][0]["message"]["content"]), user("Go on.")]
        until(lambda: desk.stats()["running"] == 0, what="idle")
    lengths = [length for _, length in found]
    for (cached, _), before in zip(found[1:], lengths, strict=False):
        assert cached >= before + 20
