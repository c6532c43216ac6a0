"""Tells small talk from facts by the embedding of a sentence, where no list of words can.

A logistic model over one embedder's vectors; it knows its embedder by the vector of a probe text.
"""

import asyncio
import math
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from semantic_layer.chats.chat import Chat
from semantic_layer.chats.histories import Fit, fit_of
from semantic_layer.errors import StoreUnavailable, TextTooLong
from semantic_layer.guarded import GuardedParts
from semantic_layer.resources import load_json
from semantic_layer.stores.vector_index import Vector

BUNDLED = "small_talk_e5.json"
_PROBE_LEAST = 0.998
_MOST_KNOWN = 20_000
_FEW_MESSAGES = 24  # of two chats that compare in less time than a thread takes to begin
_ROUNDS = 2  # whole sentences, then their clauses


@dataclass(frozen=True)
class TalkModel:
    """Gives the probability that a sentence is small talk; from ``least`` on it counts as such."""

    weights: Vector
    bias: float
    least: float

    @classmethod
    def of(cls, data: Mapping[str, Any], probe: Vector) -> "TalkModel | None":
        """Return the model of a data file, None when the probe's vector is another embedder's."""
        wanted = np.array(data["probe"]["vector"], dtype=np.float32)
        if wanted.shape != probe.shape or float(wanted @ probe) < _PROBE_LEAST:
            return None
        return cls(np.array(data["weights"], dtype=np.float32), data["bias"], data["least"])

    def is_talk(self, vector: Vector) -> bool:
        """Say whether the sentence with this vector is small talk."""
        logit = float(self.weights @ vector) + self.bias
        return 1.0 / (1.0 + math.exp(-max(-60.0, min(60.0, logit)))) >= self.least


class HistoryFitter:
    """Compares a chat's history with that of stored answers; asks the embedder where words end.

    What it has learnt of a sentence it remembers, so that a chat that goes on is cheap.
    """

    def __init__(self, parts: GuardedParts) -> None:
        self._parts = parts
        self._model: TalkModel | None = None
        self._is_probed = False
        self._known: OrderedDict[str, bool] = OrderedDict()

    async def fit(self, chat: Chat, stored: Chat) -> Fit:
        """Say how the history of a stored answer's chat fits."""
        fit = await self._compared(chat, stored)
        for _ in range(_ROUNDS):
            if not fit.unsure or not await self._learn(fit.unsure):
                break
            fit = await self._compared(chat, stored)
        return fit

    async def _compared(self, chat: Chat, stored: Chat) -> Fit:
        """Compare two chats; long ones beside the event loop, so that others have their turn."""
        if len(chat.history) + len(stored.history) <= _FEW_MESSAGES:
            return fit_of(chat, stored, self._known.get)
        return await asyncio.to_thread(fit_of, chat, stored, self._known.get)

    async def _learn(self, sentences: tuple[str, ...]) -> bool:
        """Find out which sentences are small talk; say whether that could be done."""
        try:
            model = await self._loaded()
            if model is None:
                return False
            rows = await self._parts.embed_all(sentences)
        except (StoreUnavailable, TextTooLong):
            return False
        for sentence, row in zip(sentences, rows, strict=True):
            self._known[sentence] = model.is_talk(row)
        while len(self._known) > _MOST_KNOWN:
            self._known.popitem(last=False)
        return True

    async def _loaded(self) -> TalkModel | None:
        if not self._is_probed:
            data = load_json(BUNDLED)
            self._model = TalkModel.of(data, await self._parts.embed(data["probe"]["text"]))
            self._is_probed = True
        return self._model
