"""The bench of streams: what it stands on, without models and without sets."""

import sys
from pathlib import Path

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from tests.bench.pair_sets import LabelledPair
from tests.bench.semantic import peers, vcache_rule
from tests.bench.semantic.kept_rows import KeptRows, digest
from tests.bench.semantic.peers import Peer
from tests.bench.semantic.stream import Stream, Tally
from tests.bench.semantic.vcache_rule import Curve, VCacheRule, published_coefficients

SEEDS = [(0.0, False), (1.0, True)]
PAIRS = [LabelledPair("a", "b", True), LabelledPair("a", "c", False), LabelledPair("d", "e", True)]


def observations(seed: int, *, separable: bool) -> list[tuple[float, bool]]:
    """Return what was seen of one stored text, the two to begin with first."""
    rng = np.random.default_rng(seed)
    similarity = rng.uniform(0.7, 1.0, int(rng.integers(4, 30)))
    right = similarity > (0.88 if separable else rng.normal(0.88, 0.08, len(similarity)))
    return SEEDS + [(float(s), bool(r)) for s, r in zip(similarity, right, strict=True)]


@pytest.mark.parametrize("separable", [True, False])
@pytest.mark.parametrize("seed", range(8))
def test_fast_fit_explores_as_the_published_one(seed: int, separable: bool) -> None:
    """On random observations, at every cosine that may be asked, for each error bound."""
    seen = observations(seed, separable=separable)
    with threadpool_limits(1, "blas"):
        fast, plain = Curve.through(seen), Curve.through(seen, published_coefficients)
    for delta in (0.01, 0.02, 0.05):
        for similarity in np.linspace(0.75, 1.0, 11):
            ours = np.clip(fast.exploration(similarity, delta), 0, 1)
            theirs = np.clip(plain.exploration(similarity, delta), 0, 1)
            assert ours == pytest.approx(theirs, abs=0.005)


async def test_curve_is_fitted_anew_only_when_something_was_seen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A look-up that serves tells nothing, so nothing is fitted for the next."""
    fitted: list[int] = []
    search = vcache_rule.fast_coefficients

    def counted(similarity: np.ndarray, right: np.ndarray) -> tuple[float, float]:
        fitted.append(len(right))
        return search(similarity, right)

    monkeypatch.setattr(vcache_rule, "fast_coefficients", counted)
    rule, near = VCacheRule(0.05), [(0, 0.95)]
    for _ in range(4):
        await rule.learn(1, near, None, lambda _: True)
    for _ in range(5):
        await rule.decide(1, near)
    await rule.learn(1, near, 0, lambda _: True)
    await rule.decide(1, near)
    assert fitted == [6]
    await rule.learn(1, near, None, lambda _: True)
    await rule.decide(1, near)
    assert fitted == [6, 7]


def test_finished_row_is_kept_until_what_it_came_of_changes(tmp_path: Path) -> None:
    """Other pairs, other vectors and another source are other rows."""
    source = tmp_path / "rule.py"
    source.write_text("one")
    stream, vectors = Stream.of(PAIRS), np.eye(5, dtype=np.float32)
    of = digest(stream, vectors, [source])
    tally = Tally("x", 5, seconds=None, falls={"general": 3})
    tally.count(1, 0, True)
    tally.count(2, 0, False)
    KeptRows(tmp_path / "rows.jsonl").keep(of, tally)
    kept = KeptRows(tmp_path / "rows.jsonl").get("x", digest(stream, vectors, [source]))
    assert kept == tally
    source.write_text("other")
    others = {
        digest(stream, vectors, [source]),
        digest(Stream.of(PAIRS[:2]), vectors[:3], [source]),
        digest(stream, 2 * vectors, [source]),
    }
    assert len(others) == 3
    assert of not in others
    assert all(KeptRows(tmp_path / "rows.jsonl").get("x", other) is None for other in others)


SERVES = 'import json; print("noise"); print(json.dumps({{"served": {}, "seconds": 0.5}}))'


@pytest.mark.parametrize(
    ("script", "limit_s", "expected"),
    [
        (SERVES.format("[None, 0, 0]"), 60.0, "1 right, 1 wrong of 3"),
        (SERVES.format("[None, 0]"), 60.0, "1 right, 0 wrong of 2"),
        ("import time; time.sleep(60)", 1.0, "not done within 1 s, nor stopped then"),
        ("raise ValueError('no store')", 60.0, "failed: ValueError: no store"),
    ],
)
def test_peer_counts_what_it_served_or_says_why_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, limit_s: float, expected: str
) -> None:
    """What a peer's own Python prints, if of the first texts alone; one that hangs is given up."""
    folder = tmp_path / "peer" / "bin"
    folder.mkdir(parents=True)
    (folder / "python").symlink_to(sys.executable)
    monkeypatch.setenv("STRATA_PEERS", str(tmp_path))
    (tmp_path / "play.py").write_text(script)
    stream, vectors = Stream.of(PAIRS[:2]), np.eye(3, dtype=np.float32)
    monkeypatch.setattr(peers, "_CLOSING_S", 0.0)
    told = Peer("p", "peer", tmp_path / "play.py").play(stream, vectors, limit_s)
    if isinstance(told, Tally):
        told = f"{told.right} right, {told.wrong} wrong of {told.num_texts}"
    assert told == expected


def test_absent_peer_is_said_to_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No venv, no row."""
    monkeypatch.setenv("STRATA_PEERS", str(tmp_path))
    monkeypatch.setattr(peers, "_CLOSING_S", 0.0)
    told = Peer("p", "peer", tmp_path / "x.py").play(Stream.of(PAIRS), np.eye(5), 1.0)
    assert isinstance(told, str)
    assert told.startswith("absent")
