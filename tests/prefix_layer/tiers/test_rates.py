"""Loading is chosen by what it was measured to take beside computing."""

from prefix_layer.tiers.rates import Rates


def rates(compute_ms: float, read_ms: float, **settings: bool) -> Rates:
    measured = Rates(16, **settings)
    for _ in range(4):
        measured.saw_step(64, 64 * compute_ms / 16 / 1000)
        measured.saw_load("read", read_ms / 1000)
        measured.saw_load("copy", 0.0005)
    return measured


def test_loading_pays_when_it_is_faster() -> None:
    """A block in 5 ms beats computing it in 20 ms, and not the other way round."""
    assert rates(compute_ms=20, read_ms=5).pays("read", "copy")
    assert not rates(compute_ms=5, read_ms=20).pays("read", "copy")
    assert rates(compute_ms=5, read_ms=20).pays("copy")


def test_loading_is_tried_when_nothing_was_measured() -> None:
    """An engine that has just started and finds its old blocks takes them."""
    assert Rates(16).pays("read", "copy")
    assert Rates(16).compute_s(4) is None


def test_small_steps_are_ignored_when_they_are_mostly_overhead() -> None:
    """A decode step says nothing about the cost of a prompt."""
    measured = Rates(16)
    measured.saw_step(1, 0.04)
    assert measured.compute_s(1) is None


def test_an_outlier_changes_nothing_when_the_rest_is_fast() -> None:
    """One page fault does not switch a tier off."""
    measured = rates(compute_ms=20, read_ms=5)
    measured.saw_load("read", 5.0)
    assert measured.pays("read", "copy")


def test_a_slow_way_is_tried_again_when_some_have_been_refused() -> None:
    """A disk that was slow for a while is found to be fast again."""
    measured = rates(compute_ms=5, read_ms=20)
    assert [measured.should_try() for _ in range(64)].count(True) == 2


def test_loading_always_pays_when_it_was_asked_for() -> None:
    """The setting goes before the measurement."""
    assert rates(compute_ms=5, read_ms=20, always=True).pays("read", "copy")
