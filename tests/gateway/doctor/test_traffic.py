"""Recorded requests in figures."""

from gateway.evidence import ReasonRow
from tests.gateway.doctor.seen import NOW, TTL_S, glance, traffic


def test_repeat_is_expired_or_gone_by_its_age() -> None:
    """From the end of the first to the begin of the second; each once."""
    late, early = 2 * TTL_S, TTL_S / 2
    seen = traffic(
        glance(NOW, entry="late"),
        glance(NOW - 1, entry="early"),
        glance(NOW - 1 - early, entry="early"),
        glance(NOW - late, entry="late"),
    ).repeats
    assert seen.expired_s == {"factual": [late - 1]}
    assert seen.gone == 1
    assert [(often.misses) for often in seen.often] == [1, 1]


def test_request_is_no_repeat_when_it_ran_beside_the_first() -> None:
    """It began before there was anything to find."""
    seen = traffic(
        glance(NOW, entry="e", seconds=5.0), glance(NOW - 3, entry="e", seconds=5.0)
    ).repeats
    assert (seen.gone, seen.expired_s) == (0, {})


def test_request_is_no_repeat_when_it_was_never_answered() -> None:
    """Those that allow cached answers only miss again and again: there was nothing to find."""
    unanswered = [glance(NOW - i, entry="e", prompt_tokens=None) for i in range(11)]
    assert traffic(*unanswered).repeats == traffic().repeats
    answered = glance(NOW - 20, entry="e")
    assert traffic(*unanswered, answered).repeats.gone == 0


def test_answers_are_apart_when_tenants_ask_the_same() -> None:
    """The same entry id under two tenants is two answers."""
    seen = traffic(
        glance(NOW, entry="e", tenant="alice"), glance(NOW - 10, entry="e", tenant="bob")
    ).repeats
    assert seen.gone == 0


def test_answer_served_by_likeness_counts_as_used_when_its_time_ran_out() -> None:
    """A semantic hit names the entry that it came from."""
    old = NOW - 2 * TTL_S
    seen = traffic(
        glance(old + 5, "semantic", entry="used"),
        glance(old, entry="used"),
        glance(old, entry="unused"),
        glance(NOW - 1, entry="alive"),
    ).repeats
    assert (seen.died, seen.unused) == ({"factual": 2}, {"factual": 1})


def test_near_miss_is_one_that_the_threshold_alone_kept_from_a_hit() -> None:
    """Not one that a guard vetoed, nor a hit that passed it."""
    veto, passed = ReasonRow("threshold", "veto"), ReasonRow("threshold", "pass")
    seen = traffic(
        glance(NOW, reasons=[ReasonRow("guards", "pass"), veto]),
        glance(NOW, reasons=[ReasonRow("number", "veto")]),
        glance(NOW, "semantic", reasons=[passed]),
    )
    assert seen.near == {"factual": 1}
    assert (seen.count("miss"), seen.count("semantic", "factual"), seen.looked_up()) == (2, 1, 3)


def test_prompt_tokens_are_those_of_the_local_models_generations() -> None:
    """Hits, upstreams' answers and those of a request in flight computed nothing here."""
    tokens = {"prompt_tokens": 100, "cached_tokens": 40}
    seen = traffic(
        glance(NOW, **tokens),
        glance(NOW, "exact", **tokens),
        glance(NOW, model="other", **tokens),
        glance(NOW, coalesced=True, **tokens),
        glance(NOW, "bypass", **tokens),
        glance(NOW, **tokens),
        prompts=2,
    ).prompts
    assert (seen.requests, seen.tokens, seen.cached) == (2, 200, 80)
