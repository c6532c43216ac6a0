"""The scores our judge gives pairs of texts, the verifier asked in batches and once for each pair.

What the verifier said is kept in a file named by its fingerprint, a line a pair, so a run that was
cut goes on where it ended. Rules are applied anew in every run.
"""

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from semantic_layer.decision import Judge
from semantic_layer.models.verifier import Pair
from semantic_layer.verifying import Verify
from semantic_layer.weighing import Found
from tests.semantic_layer.entries import entry_of

BATCH = 32
_NEVER = 1.01  # a threshold that no score reaches

Asked = tuple[str, str, float]  # asked text, stored text, cosine


class KeptVerifier:
    """A verifier that remembers in a file. What it can't recall it notes, and says 0."""

    asks_model = False

    def __init__(self, verifier: Verify, folder: Path) -> None:
        self.fingerprint = verifier.fingerprint
        self._verifier = verifier
        self._path = folder / f"verifier-{verifier.fingerprint}.tsv"
        folder.mkdir(parents=True, exist_ok=True)
        self._known = _read(self._path)
        self.missing: dict[Pair, None] = {}

    def fits(self, text: str) -> bool:
        """Say whether a text is short enough to be read whole."""
        return self._verifier.fits(text)

    async def scores(self, pairs: Sequence[Pair]) -> list[float]:
        """Return what is known of each pair, 0 of the others."""
        found = [self._known.get(_key(pair)) for pair in pairs]
        self.missing |= {p: None for p, score in zip(pairs, found, strict=True) if score is None}
        return [score or 0.0 for score in found]

    def known(self, pair: Pair) -> float:
        """Return what was said of a pair."""
        return self._known[_key(pair)]

    async def ask(self, told: Callable[[int], None] = lambda _: None) -> None:
        """Score what was missing, a batch at a time, and keep it."""
        waiting = iter(sorted(self.missing, key=lambda pair: len(pair[0]) + len(pair[1])))
        self.missing = {}
        with self._path.open("a", encoding="ascii") as file:
            while batch := list(islice(waiting, BATCH)):
                for pair, score in zip(batch, await self._verifier.scores(batch), strict=True):
                    self._known[_key(pair)] = score
                    file.write(f"{_key(pair)}\t{score:.6f}\n")
                file.flush()
                told(len(batch))


@dataclass(frozen=True, slots=True)
class PairScore:
    """A pair's score: by ``rules`` where they reach the threshold, else the ``verified`` one."""

    rules: float
    verified: float

    def at(self, threshold: float) -> float:
        """Return the score as the judge gives it when this is the threshold."""
        return self.rules if self.rules >= threshold else self.verified


@dataclass(slots=True)
class PairScores:
    """Scores by (asked, stored) text, each judged once."""

    judge: Judge
    verifier: KeptVerifier
    _found: dict[Pair, PairScore] = field(default_factory=dict)

    async def prepare(self, pairs: Iterable[Asked], told: Callable[[str], None] = print) -> None:
        """Score all these pairs."""
        wanted = list(pairs)
        open_pairs = {each[:2]: await self._rules(*each) for each in wanted}
        left = len(self.verifier.missing)
        told(f"  {len(wanted)} pairs, {left} of them new to the verifier")
        done = 0

        def count(num: int) -> None:
            nonlocal done
            done += num
            if done % (BATCH * 32) < num:
                told(f"  {done} of {left} verified")

        await self.verifier.ask(count)
        for pair, rules in open_pairs.items():
            if pair not in self._found:
                verified = self.verifier.known(pair)
                self._found[pair] = PairScore(verified if rules is None else rules, verified)

    async def of(self, asked: str, stored: str, similarity: float) -> PairScore:
        """Return one pair's score."""
        if (asked, stored) not in self._found:
            await self.prepare([(asked, stored, similarity)], told=lambda _: None)
        return self._found[asked, stored]

    async def _rules(self, asked: str, stored: str, similarity: float) -> float | None:
        """Judge by rules; what the verifier need not be asked of is found then."""
        score, is_open = await self._judged(asked, stored, similarity, threshold=0.0)
        if is_open:
            return None
        again = score
        if score:
            again, is_open = await self._judged(asked, stored, similarity, threshold=_NEVER)
        if not is_open:
            self._found[asked, stored] = PairScore(score, again)
        return score

    async def _judged(
        self, asked: str, stored: str, similarity: float, *, threshold: float
    ) -> tuple[float, bool]:
        """Return the score, and whether the verifier gives it."""
        found = [Found(similarity, entry_of(stored))]
        judgement = (await self.judge.decide(asked, threshold, found)).judgement
        is_open = any(r.check == "verify" and r.verdict == "pass" for r in judgement.reasons)
        return judgement.score or 0.0, is_open


def _key(pair: Pair) -> str:
    one, other = sorted(pair)
    return hashlib.blake2b(f"{one}\0{other}".encode(), digest_size=10).hexdigest()


def _read(path: Path) -> dict[str, float]:
    if not path.exists():
        return {}
    rows = [line.split("\t") for line in path.read_text(encoding="ascii").splitlines()]
    return {row[0]: float(row[1]) for row in rows if len(row) == 2}
