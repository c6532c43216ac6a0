"""Fit what the bundled verifier's scores are worth between chats, and write it; run by hand.

usage: python -m tests.bench.semantic.fit_chats [--write]

Rows are pairs of chats written for Strata (odd groups) whose last messages need their histories and
that rules neither refuse nor settle: the least score the verifier gives to the texts left in doubt.
A logistic curve over its log odds, one slope and one bias; a tenth of a row of each kind is added
at the ends, so that a clean separation does not make the curve a step.
"""

import asyncio
import json
import os
import sys
from importlib.resources import files

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize

from gateway.bundled import default_models_dir, prepare
from semantic_layer import Entry, Scorer, ThreadedEmbedder, load_encoder, load_verifier
from semantic_layer.bert_encoder import BertEncoder
from semantic_layer.decision import Found, Judge
from semantic_layer.histories import fit_of
from semantic_layer.resources import load_json
from semantic_layer.talk import BUNDLED, TalkModel
from semantic_layer.verifier import Pair, PairScorer
from tests.bench.semantic.chats import ChatPair, authored, chat_of, is_fitting

Array = npt.NDArray[np.float64]
_BATCH = 24


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


def rows(
    pairs: list[ChatPair], judge: Judge, talk: Talk, verifier: PairScorer
) -> list[tuple[float, bool, str]]:
    """Return least score, label and name of each pair that is left in doubt."""
    talk.learn(pairs)
    asked_of: list[tuple[ChatPair, list[Pair]]] = []
    for pair in pairs:
        stored, asked = chat_of(pair.one), chat_of(pair.other)
        fit = fit_of(asked, stored, talk)
        entry = Entry("x", "t", "", "m", "f", b"", 0.0, 1.0, text=stored.text)
        item = judge._weigh(asked.text, Found(1.0, entry, fit=fit))
        if fit.refers and item.open is not None:
            asked_of.append((pair, list(item.open.pairs)))
    texts = sorted({p for _, open_pairs in asked_of for p in open_pairs}, key=lambda p: len(p[0]))
    scores: dict[Pair, float] = {}
    for start in range(0, len(texts), _BATCH):
        chosen = texts[start : start + _BATCH]
        scores |= dict(zip(chosen, verifier.score(chosen), strict=True))
    return [
        (min(scores[p] for p in open_pairs), pair.same, pair.pair_id)
        for pair, open_pairs in asked_of
    ]


def fitted(scores: Array, same: Array) -> tuple[float, float]:
    """Return slope and bias of the logistic curve."""
    bounded = np.clip(scores, 1e-4, 1 - 1e-4)
    x = np.concatenate([np.log(bounded / (1 - bounded)), [2.0, -4.0]])
    y = np.concatenate([same, [0.0, 1.0]])
    weight = np.concatenate([np.ones(len(same)), [0.1, 0.1]])

    def loss(parameters: Array) -> float:
        z = parameters[0] * x + parameters[1]
        return float((weight * (np.logaddexp(0, z) - y * z)).sum())

    slope, bias = minimize(loss, np.array([1.0, 0.0]), method="Nelder-Mead").x
    return float(slope), float(bias)


async def main(*, write: bool) -> None:
    """Fit, show what the curve serves of both halves, and write the data file."""
    base = prepare(default_models_dir(os.environ)).embedder_path
    encoder = load_encoder(base)
    embedder = ThreadedEmbedder(encoder)
    judge = Judge(await Scorer.matching(embedder), encoder.knows_word)
    await embedder.close()
    verifier, talk = load_verifier("bundled", base), Talk(encoder)
    halves = {
        name: rows([p for p in authored() if is_fitting(p) == wanted], judge, talk, verifier)
        for name, wanted in (("fitted on", True), ("checked on", False))
    }
    fitting = halves["fitted on"]
    slope, bias = fitted(
        np.array([r[0] for r in fitting]), np.array([float(r[1]) for r in fitting])
    )
    print(f"slope {slope:.3f}, bias {bias:.3f}")
    for threshold in (0.90, 0.92, 0.95, 0.98):
        logit = (np.log(threshold / (1 - threshold)) - bias) / slope
        print(f"  {threshold}: from a score of {1 / (1 + np.exp(-logit)):.3f}")
    for name, found in halves.items():
        same, traps = ([r[0] for r in found if r[1] == label] for label in (True, False))
        print(f"{name}: {len(same)} same, {len(traps)} traps in doubt")
        for least in (0.1, 0.15, 0.2, 0.25, 0.3, 0.4):
            above = [sum(s >= least for s in side) for side in (same, traps)]
            print(f"  from {least}: {above[0]} same, {above[1]} traps")
        print(
            "  highest traps:",
            [(round(s, 2), n) for s, label, n in sorted(found)[::-1] if not label][:6],
        )
    if write:
        data = {
            "statement": " ".join(str(__doc__).split("\n\n")[2].split()),
            "fingerprint": verifier.fingerprint,
            "slope": round(slope, 3),
            "bias": round(bias, 3),
        }
        path = files("semantic_layer") / "data" / "chat_verifier.json"
        path.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")  # type: ignore[attr-defined]


if __name__ == "__main__":
    asyncio.run(main(write="--write" in sys.argv))
