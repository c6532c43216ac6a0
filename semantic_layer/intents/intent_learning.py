"""Teaches an `IntentClassifier` for one embedder: the shipped weights, or a fit to examples."""

import asyncio
import logging
from base64 import b64decode
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from semantic_layer.errors import EmbedderFailed
from semantic_layer.intents.intent import CUES
from semantic_layer.intents.intent_classifier import IntentClassifier, LinearIntents, Rows, features
from semantic_layer.models.embedding import Embedder
from semantic_layer.resources import LANGUAGES, load_json

BUNDLED = "intents_e5.json"
Examples = tuple[list[str], list[str]]  # labels, texts

_TOLERANCE = 0.05  # of a probe's probabilities
_BATCH = 16
_PAUSE_S = 30.0
_OWN_SHARE = 3.0  # users give few examples, and mean them
_log = logging.getLogger(__name__)


class IntentTeacher:
    """Knows the examples of all intents, and what is shipped for the bundled embedder.

    ``own`` are the users' examples by intent; vectors made of the shipped examples are kept in
    ``folder``.
    """

    def __init__(self, embedder: Embedder, own: Mapping[str, Sequence[str]], folder: Path) -> None:
        self._embedder = embedder
        self._own = own
        self._folder = folder

    async def teach_bundled(self, classifier: IntentClassifier) -> bool:
        """Give the shipped weights where they fit the embedder; say whether they do.

        Raises:
            TextTooLong: one of the users' examples.
        """
        data: dict[str, Any] = load_json(BUNDLED)
        seed = LinearIntents(
            tuple(data["names"]), _rows(data["weights"], "<f2"), _rows(data["bias"], "<f4")[0]
        )
        try:
            if not await self._fits(seed, data["probes"]):
                return False
            classifier.learn(seed, None)
            if self._own:
                shipped = _rows(data["examples"], "i1") / np.float32(data["examples_scale"])
                classifier.learn(seed, await self._fit_own(shipped))
        except EmbedderFailed:
            return False
        return True

    async def teach(self, classifier: IntentClassifier) -> None:
        """Fit to the examples, embedded once; tries until the embedder answers."""
        while True:
            try:
                shipped = await self._kept_rows()
                labels, texts = shipped_examples()
                rows = await asyncio.to_thread(_featured, texts, shipped)
                seed = await asyncio.to_thread(LinearIntents.fit, rows, labels)
                classifier.learn(seed, await self._fit_own(shipped) if self._own else None)
            except EmbedderFailed as error:
                _log.warning("intents are told by words alone: %s", error)
                await asyncio.sleep(_PAUSE_S)
            else:
                return

    async def _fits(self, seed: LinearIntents, probes: Sequence[Mapping[str, Any]]) -> bool:
        if self._embedder.dim + len(CUES) != len(seed.weights):
            return False
        vectors = await self._embedder.embed([probe["text"] for probe in probes])
        for probe, vector in zip(probes, vectors, strict=True):
            scores = seed.scores(features(probe["text"], vector))
            if any(abs(scores[name] - p) > _TOLERANCE for name, p in probe["scores"].items()):
                return False
        return True

    async def _fit_own(self, shipped: Rows) -> LinearIntents:
        labels, texts = shipped_examples()
        own = [(name, text) for name, group in self._own.items() for text in group]
        vectors = await self._embedded([text for _, text in own])
        rows = await asyncio.to_thread(
            _featured, [*texts, *(text for _, text in own)], np.vstack([shipped, vectors])
        )
        shares = [1.0] * len(texts) + [_OWN_SHARE] * len(own)
        all_labels = [*labels, *(name for name, _ in own)]
        return await asyncio.to_thread(LinearIntents.fit, rows, all_labels, shares)

    async def _kept_rows(self) -> Rows:
        """Return the vectors of the shipped examples, from the folder where they are there."""
        _, texts = shipped_examples()
        name = "\0".join([self._embedder.fingerprint, *texts]).encode()
        path = self._folder / f"{blake2b(name, digest_size=12).hexdigest()}.npy"
        try:
            return np.asarray(np.load(path), np.float32)
        except (OSError, ValueError):
            rows = await self._embedded(texts)
        draft = path.with_suffix(".draft.npy")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            np.save(draft, rows)
            draft.replace(path)
        except OSError as error:
            _log.warning("vectors of intent examples are not kept: %s", error)
        return rows

    async def _embedded(self, texts: Sequence[str]) -> Rows:
        batches = [
            await self._embedder.embed(texts[start : start + _BATCH])
            for start in range(0, len(texts), _BATCH)
        ]
        return np.vstack(batches)


def shipped_examples() -> Examples:
    """Return the labels and texts of the examples that ship with us, in a fixed order."""
    pairs = [
        (intent, text)
        for language in LANGUAGES
        for intent, texts in load_json(f"intent_examples.{language}.json").items()
        for text in texts
    ]
    return [intent for intent, _ in pairs], [text for _, text in pairs]


def _featured(texts: Sequence[str], vectors: Rows) -> Rows:
    return np.stack([features(text, row) for text, row in zip(texts, vectors, strict=True)])


def _rows(encoded: Mapping[str, Any], kind: str) -> Rows:
    flat = np.frombuffer(b64decode(encoded["base64"]), kind)
    return flat.reshape(encoded["shape"]).astype(np.float32)
