"""Fit what tells small talk from facts by an embedding, and write its numbers; run by hand.

usage: python -m tests.bench.semantic.fit_small_talk [--write]

A logistic model over the bundled embedder's vectors. Fitted on sentences written for Strata: the
small talk and the facts of ``authored/small-talk.json``, and what the odd groups of chats add as
chatter or tell; the even groups are measured only.
"""

import json
import os
import sys
from collections.abc import Iterator
from importlib.resources import files

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize

from gateway.bundled import default_models_dir, prepare
from semantic_layer import load_encoder
from semantic_layer.chats.small_talk import is_empty, sentences
from tests.bench.semantic.chats import AUTHORED, ChatPair, authored, is_fitting

Array = npt.NDArray[np.float64]
SCALE = 20.0
RIDGE = 3e-3
LEAST = 0.8  # the probability from which a sentence counts as small talk
PROBE = "How do I bake bread?"
OWN_WEIGHT = 1.0


def said(chat: tuple[dict[str, str], ...]) -> list[str]:
    """Return the sentences before the last message that no list of words knows as small talk."""
    texts = (message["content"] for message in chat[:-1])
    return [s for text in texts for s in sentences(text) if not is_empty(s)]


def labelled(pairs: list[ChatPair]) -> Iterator[tuple[str, bool]]:
    """Give sentences and whether they are small talk: what chatter adds is, the rest is not."""
    for pair in pairs:
        base = said(pair.one)
        yield from ((sentence, False) for sentence in base)
        added = [s for s in said(pair.other) if not any(b in s or s in b for b in base)]
        if pair.kind in {"same:chatter", "same:reworded", "traps:extra"}:
            yield from ((sentence, pair.kind == "same:chatter") for sentence in added)


def fitted(x: Array, is_talk: Array) -> tuple[Array, float]:
    """Return weights and bias of a ridge logistic model, both kinds weighing the same."""
    mean = x.mean(axis=0)
    z = (x - mean) * SCALE
    weight = np.where(is_talk == 1, 0.5 / is_talk.mean(), 0.5 / (1 - is_talk.mean()))

    def loss(parameters: Array) -> tuple[float, Array]:
        w, b = parameters[:-1], parameters[-1]
        logit = z @ w + b
        error = weight * (1 / (1 + np.exp(-logit)) - is_talk) / len(z)
        value = float((weight * (np.logaddexp(0, logit) - is_talk * logit)).mean())
        gradient = np.append(z.T @ error + RIDGE * w, error.sum())
        return value + RIDGE * float(w @ w) / 2, gradient

    found = minimize(loss, np.zeros(x.shape[1] + 1), jac=True, method="L-BFGS-B").x
    weights = found[:-1] * SCALE
    return weights, float(found[-1] - weights @ mean)


def main(*, write: bool) -> None:
    """Fit, tell recall and false alarms on what was not fitted, and write the data file."""
    encoder = load_encoder(prepare(default_models_dir(os.environ)).embedder_path)

    def rows(items: dict[str, bool]) -> tuple[Array, Array]:
        texts = sorted(items, key=len)
        parts = [encoder.encode(texts[i : i + 16]) for i in range(0, len(texts), 16)]
        return np.concatenate(parts).astype(float), np.array([float(items[t]) for t in texts])

    own = json.loads((AUTHORED / "small-talk.json").read_text(encoding="utf-8"))
    pairs = authored()
    fitting = dict(labelled([pair for pair in pairs if is_fitting(pair)]))
    for language in own.values():
        fitting |= dict.fromkeys(language["talk"], True) | dict.fromkeys(language["fact"], False)
    checking = dict(labelled([pair for pair in pairs if not is_fitting(pair)]))
    x, y = rows(fitting)
    weights, bias = fitted(x, y)
    for name, items in (("fitted", fitting), ("checked", checking)):
        x, y = rows(items)
        p = 1 / (1 + np.exp(-(x @ weights + bias)))
        print(f"{name}: {int(y.sum())} of small talk, {int((1 - y).sum())} facts")
        for least in (0.5, 0.7, 0.8, 0.9, 0.95):
            found, alarm = (p[y == 1] >= least).mean(), (p[y == 0] >= least).mean()
            print(f"  from {least}: {found:.1%} of small talk, {alarm:.1%} of facts")
    wrong = sorted(
        (-v, t) for v, t, is_talk in zip(p, sorted(items, key=len), y, strict=True) if not is_talk
    )
    print("facts most like small talk:", *(f"{-v:.2f} {t}" for v, t in wrong[:12]), sep="\n  ")
    if write:
        data = {
            "statement": str(__doc__).split("\n\n")[2],
            "least": LEAST,
            "probe": {
                "text": PROBE,
                "vector": [round(float(v), 4) for v in encoder.encode([PROBE])[0]],
            },
            "bias": round(bias, 4),
            "weights": [round(float(w), 3) for w in weights],
        }
        path = files("semantic_layer") / "data" / "small_talk_e5.json"
        path.write_text(json.dumps(data, ensure_ascii=False) + "\n", encoding="utf-8")  # type: ignore[attr-defined]


if __name__ == "__main__":
    main(write="--write" in sys.argv)
