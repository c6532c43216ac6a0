"""Fit what the bundled verifier's scores are worth between chats, and write it; run by hand.

usage: python -m tests.bench.semantic.fit_chats [--write]

Rows are pairs of chats written for Strata (even groups, which the verifier never saw) whose last
messages need their histories and that rules neither refuse nor settle: what the verifier's scores
of their parts lack of being sure. A logistic model, no weight below 0, with a ridge. Its sum is
moved to the scale of plain questions: each default threshold begins at the lowest sum above which
the wrong share among served ones stays within that threshold's budget, one near chat in ten taken
for a trap (assumed, as for the default thresholds) and the traps' served share at its upper 95%
end, and above which no more than one trap in forty is served at all: a "yes" may meet many more of
them than a question does. For both, each group is scored by a model of the other groups.
"""

import asyncio
import json
import os
import sys
from dataclasses import dataclass
from importlib.resources import files

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize

from gateway.bundled import default_models_dir, prepare
from semantic_layer import Entry, Scorer, ThreadedEmbedder, load_encoder, load_verifier
from semantic_layer.calibration.binomial import upper_bound
from semantic_layer.calibration.pooled import DATA, log_odds
from semantic_layer.chats.context_score import NAMES, Part, is_another, lacks
from semantic_layer.chats.histories import fit_of
from semantic_layer.chats.talk import BUNDLED, TalkModel
from semantic_layer.decision import Judge
from semantic_layer.models.bert_encoder import BertEncoder
from semantic_layer.models.verifier import Pair, PairScorer
from semantic_layer.resources import load_json
from semantic_layer.weighing import Found
from tests.bench.semantic.chats import ChatPair, authored, chat_of, is_fitting
from tests.bench.semantic.pooled_curve import TRAPS_IN_TRAFFIC

Array = npt.NDArray[np.float64]
_BATCH = 24
_FOLDS = 5
_MOST_TRAPS = 0.025  # of all traps, served at any threshold
_RIDGE = 0.02
_SHOWN = (0.5, 0.6, 0.7, 0.8, 0.9, 0.92, 0.95, 0.98)
_SETTLED = _SHOWN[-1]  # what rules must give for a hit without a verifier


class Talk:
    """Tells small talk as the cache does; ``learn`` reads many sentences at once."""

    def __init__(self, encoder: BertEncoder) -> None:
        data = load_json(BUNDLED)
        self._encoder = encoder
        self._model = TalkModel.of(data, encoder.encode([data["probe"]["text"]])[0])
        self._known: dict[str, bool] = {}

    def learn(self, pairs: list[ChatPair]) -> None:
        """Read all sentences that comparing these chats asks for, then their clauses."""
        for _ in range(2):
            wanted: dict[str, None] = {}

            def known(sentence: str, wanted: dict[str, None] = wanted) -> bool:
                if sentence not in self._known:
                    wanted[sentence] = None
                return self._known.get(sentence, False)

            for pair in pairs:
                fit_of(chat_of(pair.other), chat_of(pair.one), known)
            sentences = sorted(wanted, key=len)
            for start in range(0, len(sentences), _BATCH):
                chosen = sentences[start : start + _BATCH]
                for sentence, row in zip(chosen, self._encoder.encode(chosen), strict=True):
                    self._known[sentence] = self._talks(row)

    def __call__(self, sentence: str) -> bool:
        if sentence not in self._known:
            self._known[sentence] = self._talks(self._encoder.encode([sentence])[0])
        return self._known[sentence]

    def _talks(self, row: npt.NDArray[np.float32]) -> bool:
        assert self._model is not None, "the bundled embedder gives other vectors"
        return self._model.is_talk(row)


@dataclass(frozen=True, slots=True)
class Half:
    """Pairs of chats: all, those that rules serve, and those in doubt with the scores of parts."""

    pairs: list[ChatPair]
    settled: list[ChatPair]
    doubted: list[tuple[ChatPair, list[tuple[Part, float]]]]

    @property
    def x(self) -> Array:
        """What the parts lack ``(num_doubted, len(NAMES))``."""
        return np.array([lacks(parts) for _, parts in self.doubted])

    @property
    def same(self) -> Array:
        """Whether the answer is the same, 0 or 1 ``(num_doubted,)``."""
        return np.array([float(pair.same) for pair, _ in self.doubted])

    def shares(self, served: npt.NDArray[np.bool_]) -> tuple[int, int, int, int]:
        """Return how many of same and of traps are served, and how many there are of each."""
        hits = [
            *self.settled,
            *(p for (p, _), hit in zip(self.doubted, served, strict=True) if hit),
        ]
        num_same = sum(pair.same for pair in self.pairs)
        right = sum(pair.same for pair in hits)
        return right, num_same, len(hits) - right, len(self.pairs) - num_same


def judged(pairs: list[ChatPair], judge: Judge, talk: Talk, verifier: PairScorer) -> Half:
    """Let rules and verifier judge each pair, one way round, as the cache does."""
    talk.learn(pairs)
    settled: list[ChatPair] = []
    asked_of: list[tuple[ChatPair, list[tuple[Part, Pair]]]] = []
    for pair in pairs:
        stored, asked = chat_of(pair.one), chat_of(pair.other)
        fit = fit_of(asked, stored, talk)
        entry = Entry("x", "t", "", "m", "f", b"", 0.0, 1.0, text=stored.text)
        item = judge._weigh(
            asked.text, Found(1.0, entry, fit=fit), _SETTLED, judge.least_similarity
        )
        if fit.refers and item.open is not None:
            asked_of.append((pair, list(item.open.parts)))
        elif fit.refers and item.score >= _SETTLED:
            settled.append(pair)
    wanted = {pair for _, parts in asked_of for _, pair in parts}
    texts = sorted(wanted, key=lambda pair: len(pair[0]) + len(pair[1]))
    scores: dict[Pair, float] = {}
    for start in range(0, len(texts), _BATCH):
        chosen = texts[start : start + _BATCH]
        scores |= dict(zip(chosen, verifier.score(chosen), strict=True))
    told = [(pair, [(part, scores[each]) for part, each in parts]) for pair, parts in asked_of]
    doubted = [(pair, parts) for pair, parts in told if not is_another(parts)]
    referring = [p for p in pairs if not (chat_of(p.one).alone or chat_of(p.other).alone)]
    return Half(referring, settled, doubted)


def fitted(x: Array, same: Array) -> Array:
    """Return the weights of what is lacking, none below 0, and the bias behind them."""

    def loss(parameters: Array) -> float:
        weights, bias = parameters[:-1], parameters[-1]
        z = bias - x @ weights
        return float((np.logaddexp(0, z) - same * z).mean() + _RIDGE * (weights**2).sum())

    bounds = [(0.0, None)] * x.shape[1] + [(None, None)]
    found: Array = minimize(
        loss, np.append(np.full(x.shape[1], 0.3), 1.0), bounds=bounds, method="L-BFGS-B"
    ).x
    return found


def logits(x: Array, parameters: Array) -> Array:
    """Return the log odds of the same answer."""
    z: Array = parameters[-1] - x @ parameters[:-1]
    return z


def crossed(half: Half) -> Array:
    """Return each doubted pair's log odds by a model of the other groups."""
    groups = [pair.pair_id.split("/")[0] for pair, _ in half.doubted]
    folds = np.array([sum(map(ord, group)) % _FOLDS for group in groups])
    found = np.zeros(len(groups))
    for fold in range(_FOLDS):
        out = folds == fold
        found[out] = logits(half.x[out], fitted(half.x[~out], half.same[~out]))
    return found


def wrong_share(half: Half, z: Array, cut: float) -> float:
    """Return the upper bound of the wrong share among served chats, in traffic's mix.

    It is 1 where too many traps are served, whatever the share.
    """
    right, num_same, wrong, num_traps = half.shares(z >= cut)
    if wrong > _MOST_TRAPS * num_traps:
        return 1.0
    traps = TRAPS_IN_TRAFFIC * upper_bound(wrong, num_traps)
    rights = (1 - TRAPS_IN_TRAFFIC) * right / num_same
    return traps / (traps + rights)


def knots_of(half: Half, z: Array, pooled: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return (log odds here, log odds of the score): each threshold begins where it may.

    That is the lowest cut above which the bound never passes the budget of the threshold.
    """
    cuts = sorted({round(float(each), 3) for each in z}, reverse=True)
    bounds = [wrong_share(half, z, cut - 5e-4) for cut in cuts]
    start = int(np.argmin(bounds))
    running = np.maximum.accumulate(bounds[start:])
    found: list[tuple[float, float]] = []
    for budget, threshold in pooled:
        within = [cut for cut, bound in zip(cuts[start:], running, strict=True) if bound <= budget]
        cut, odds = (within or cuts[start:])[-1 if within else 0], log_odds(threshold)
        if not found or cut < found[-1][0]:
            found.append((cut, round(odds, 3)))
    return found[::-1]


def show(name: str, half: Half, z: Array, knots: list[tuple[float, float]]) -> None:
    """Print what thresholds serve, and with what bound of the wrong share."""
    totals, odds = zip(*knots, strict=True)
    print(f"{name}: {len(half.doubted)} in doubt, {len(half.settled)} served by rules")
    for threshold in _SHOWN:
        cut = float(np.interp(log_odds(threshold), odds, totals))
        cut += log_odds(threshold) - float(np.clip(log_odds(threshold), odds[0], odds[-1]))
        right, num_same, wrong, num_traps = half.shares(z >= cut)
        bound = wrong_share(half, z, cut)
        print(f"  {threshold}: {right}/{num_same} same, {wrong}/{num_traps} traps, {bound:.2%}")
    ranked = sorted(zip(z, half.doubted, strict=True), key=lambda row: -row[0])
    traps = [(round(float(v), 2), pair.pair_id) for v, (pair, _) in ranked if not pair.same]
    print("  highest traps:", traps[:8])


async def main(*, write: bool) -> None:
    """Fit, show what the model serves, and write the data file."""
    base = prepare(default_models_dir(os.environ)).embedder_path
    encoder = load_encoder(base)
    embedder = ThreadedEmbedder(encoder)
    judge = Judge(await Scorer.matching(embedder), encoder.knows_word)
    await embedder.close()
    verifier = load_verifier("bundled", base)
    half = judged([p for p in authored() if not is_fitting(p)], judge, Talk(encoder), verifier)
    parameters, z = fitted(half.x, half.same), crossed(half)
    knots = knots_of(half, z, [(budget, least) for budget, least in load_json(DATA)["knots"]])
    weights = {name: round(float(w), 3) for name, w in zip(NAMES, parameters, strict=False)}
    print(f"weights {weights}, knots {knots}")
    show("each by the other groups", half, z, knots)
    show("all", half, logits(half.x, parameters), knots)
    if write:
        data = {
            "statement": " ".join(str(__doc__).split("\n\n")[2].split()),
            "fingerprint": verifier.fingerprint,
            "weights": weights,
            "knots": [(round(z - float(parameters[-1]), 3), odds) for z, odds in knots],
        }
        path = files("semantic_layer") / "data" / "chat_verifier.json"
        path.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")  # type: ignore[attr-defined]


if __name__ == "__main__":
    asyncio.run(main(write="--write" in sys.argv))
