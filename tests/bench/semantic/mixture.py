"""The stream of training pairs: authored groups, labelled sets, and edits of their texts."""

import csv
import json
import random
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from zlib import crc32

import numpy as np
from tokenizers import Tokenizer

from semantic_layer.models.bert_encoder import BertEncoder
from tests.bench import pair_sets
from tests.bench.minimal_edits import Neighbours
from tests.bench.pair_sets import LabelledPair
from tests.bench.semantic import chinese_edits, english_edits
from tests.bench.semantic.authored import Group
from tests.bench.semantic.chats import authored, is_fitting, requests_of

_HAN = re.compile(r"[\u4e00-\u9fff]")
_QUORA_TRAINED = 70_000
_MOST_WORDS = 14_000
QUORA_SAME, QUORA_DIFFERENT = 0.95, 0.07  # what Quora's noisy labels are worth as probabilities
EDIT_DIFFERENT, EDIT_SAME = 0.05, 0.97
SURE_DIFFERENT, SURE_SAME = 0.01, 0.99


@dataclass(frozen=True, slots=True)
class Sample:
    """Two texts and the probability (0..1) that one answer is right for both.

    ``is_needed`` ones are trained on however long they are.
    """

    one: str
    other: str
    same: float
    is_needed: bool = False


Draw = Callable[[], Sample | None]


def is_even(text: str) -> bool:
    """Split a set in two fixed halves: even ones are trained on, odd ones measured."""
    return crc32(text.encode()) % 2 == 0


def langcache_half(folder: Path, *, trained: bool) -> list[LabelledPair]:
    """Return the half of Redis' LangCache pairs for training or for measuring."""
    return [p for p in pair_sets.redis_langcache(folder) if is_even(min(p.one, p.other)) == trained]


def paws_half(folder: Path, *, trained: bool) -> list[LabelledPair]:
    """Return the half of PAWS-X's Chinese pairs for training or for measuring."""
    return [p for p in pair_sets.pawsx_zh(folder) if is_even(min(p.one, p.other)) == trained]


def quora_trained(folder: Path) -> list[LabelledPair]:
    """Return Quora's training pairs without any text that the held-out pairs hold."""
    held = {t for p in pair_sets.quora(folder)[_QUORA_TRAINED:] for t in (p.one, p.other)}
    pairs = pair_sets.quora(folder)[:_QUORA_TRAINED]
    return [p for p in pairs if p.one not in held and p.other not in held and _is_usual(p)]


class Mixture:
    """Draws samples from all sources by fixed shares; groups can be renewed while training."""

    def __init__(self, folder: Path, encoder: BertEncoder, tokenizer: Tokenizer, seed: int) -> None:
        self._rng = random.Random(seed)
        self._quora = quora_trained(folder)
        self._small = langcache_half(folder, trained=True) + _reworded(folder) + _sts_en(folder)
        self._small_zh = _sts_zh(folder)
        self._paws = paws_half(folder, trained=True)
        self._asked = [t for p in self._quora for t in (p.one, p.other)] + _intents(folder) * 3
        self._zh_texts = [p.one for p in self._small_zh + self._paws]
        self._tokenizer = tokenizer
        self._similar = _english_neighbours(self._asked, encoder)
        self._similar_zh = _chinese_neighbours(tokenizer, encoder)
        self._groups: list[Group] = []
        requests = list(requests_of([pair for pair in authored() if is_fitting(pair)]))
        self._chats = {
            same: [request for request in requests if request.same == same]
            for same in (True, False)
        }

    def renew(self, groups: Sequence[Group]) -> int:
        """Use these groups (their training part) from now on; return how many."""
        self._groups = [g for g in groups if not g.is_held_out]
        return len(self._groups)

    def draw(self) -> Sample:
        """Return the next sample, its sides in random order."""
        sample = None
        while sample is None:
            sample = self._rng.choices(*self._sources())[0]()
        if self._rng.random() < 0.5:
            return replace(sample, one=sample.other, other=sample.one)
        return sample

    def _sources(self) -> tuple[list[Draw], list[float]]:
        shares: list[tuple[Draw, float]] = [
            (self._labelled, 0.20),
            (self._edited, 0.11),
            (self._retyped, 0.06),
            (self._small_set, 0.05),
            (self._small_zh_set, 0.02),
            (self._paws_pair, 0.025),
            (self._edited_zh, 0.02),
            (self._chat_same, 0.045),
            (self._chat_trap, 0.055),
        ]
        if self._groups:
            shares += [
                (self._authored_same, 0.21),
                (self._authored_trap, 0.22),
                (self._authored_edited, 0.07),
                (self._authored_retyped, 0.06),
            ]
        return [draw for draw, _ in shares], [share for _, share in shares]

    def _labelled(self) -> Sample:
        pair = self._rng.choice(self._quora)
        return Sample(pair.one, pair.other, QUORA_SAME if pair.same else QUORA_DIFFERENT)

    def _small_set(self) -> Sample:
        return _sure(self._rng.choice(self._small))

    def _small_zh_set(self) -> Sample:
        return _sure(self._rng.choice(self._small_zh))

    def _paws_pair(self) -> Sample:
        pair = self._rng.choice(self._paws)
        return Sample(pair.one, pair.other, QUORA_SAME if pair.same else QUORA_DIFFERENT)

    def _chat_same(self) -> Sample:
        return self._chat(same=True)

    def _chat_trap(self) -> Sample:
        return self._chat(same=False)

    def _chat(self, *, same: bool) -> Sample:
        pair = self._rng.choice(self._chats[same])
        one, other = self._maybe_retyped(pair.one), self._maybe_retyped(pair.other)
        return Sample(one, other, SURE_SAME if same else SURE_DIFFERENT, is_needed=True)

    def _edited(self) -> Sample | None:
        return self._edit(self._rng.choice(self._asked))

    def _edited_zh(self) -> Sample | None:
        return self._edit(self._rng.choice(self._zh_texts))

    def _retyped(self) -> Sample | None:
        return self._retype(self._rng.choice(self._asked))

    def _authored_same(self) -> Sample:
        one, other = self._rng.sample(self._rng.choice(self._groups).same, 2)
        return Sample(self._maybe_retyped(one), self._maybe_retyped(other), SURE_SAME)

    def _authored_trap(self) -> Sample:
        group = self._rng.choice(self._groups)
        one = self._rng.choice(group.same if self._rng.random() < 0.5 else group.same[:1])
        trap = self._rng.choice(group.traps).text
        return Sample(self._maybe_retyped(one), self._maybe_retyped(trap), SURE_DIFFERENT)

    def _authored_edited(self) -> Sample | None:
        return self._edit(self._authored_text())

    def _authored_retyped(self) -> Sample | None:
        return self._retype(self._authored_text())

    def _authored_text(self) -> str:
        group = self._rng.choice(self._groups)
        return self._rng.choice([*group.same, *(trap.text for trap in group.traps)])

    def _maybe_retyped(self, text: str) -> str:
        return self.retype(text) if self._rng.random() < 0.25 else text

    def _edit(self, text: str) -> Sample | None:
        other = self.change(text)
        if other is None:
            return None
        if self._rng.random() < 0.3:
            other = self.retype(other)
        return Sample(text, other, EDIT_DIFFERENT)

    def _retype(self, text: str) -> Sample | None:
        other = self.retype(text)
        return None if other == text else Sample(text, other, EDIT_SAME)

    def change(self, text: str) -> str | None:
        """Return the text with one change that matters."""
        if _HAN.search(text):
            return chinese_edits.changed(text, self._similar_zh, self.split, self._rng)
        return english_edits.changed(text, self._similar, self._rng)

    def retype(self, text: str) -> str:
        """Return the text typed differently."""
        edits = chinese_edits if _HAN.search(text) else english_edits
        return edits.retyped(text, self._rng)

    def split(self, text: str) -> list[str]:
        """Cut a Chinese text into the vocabulary's pieces."""
        words, done = [], 0
        for start, end in self._tokenizer.encode(text, add_special_tokens=False).offsets:
            words.append(text[max(start, done) : end])
            done = max(done, end)
        return words


def _sure(pair: LabelledPair) -> Sample:
    return Sample(pair.one, pair.other, SURE_SAME if pair.same else 2 * SURE_DIFFERENT)


def _is_usual(pair: LabelledPair) -> bool:
    return all(10 < len(t) < 160 for t in (pair.one, pair.other)) and pair.one != pair.other


def _reworded(folder: Path) -> list[LabelledPair]:
    rows = json.loads((folder / "gptcache" / "mock_data.json").read_text(encoding="utf-8"))
    return [LabelledPair(row["origin"], row["similar"], same=True) for row in rows]


def _sts_en(folder: Path) -> list[LabelledPair]:
    lines = (folder / "stsb_en" / "sts-dev.csv").read_text(encoding="utf-8").splitlines()
    rows = [line.split("\t") for line in lines]
    return _extremes([(float(r[4]), r[5], r[6]) for r in rows if len(r) > 6])


def _sts_zh(folder: Path) -> list[LabelledPair]:
    lines = (folder / "stsb_zh" / "sts-b-dev.txt").read_text(encoding="utf-8").splitlines()
    rows = [line.split("\t") for line in lines]
    return _extremes([(float(r[2]), r[0], r[1]) for r in rows if len(r) == 3])


def _extremes(rows: list[tuple[float, str, str]]) -> list[LabelledPair]:
    kept = [(score, a, b) for score, a, b in rows if (score >= 4.8 or score <= 3.0) and a != b]
    return [LabelledPair(a, b, same=score > 4) for score, a, b in kept]


def _intents(folder: Path) -> list[str]:
    with (folder / "banking77" / "train.csv").open(encoding="utf-8", newline="") as file:
        banking = [row["text"].strip() for row in csv.DictReader(file)]
    clinc = json.loads((folder / "clinc150" / "data_full.json").read_text(encoding="utf-8"))
    return [t for t in banking if len(t) < 160] + [text for text, _ in clinc["train"]]


def _english_neighbours(texts: list[str], encoder: BertEncoder) -> Neighbours:
    counts = Counter(w for t in texts for w in re.findall(r"[a-z]{4,}", t.casefold()))
    known = [w for w, n in counts.most_common() if n > 3 and encoder.knows_word(w)][:_MOST_WORDS]
    return Neighbours(known, _rows(known, encoder))


def _chinese_neighbours(tokenizer: Tokenizer, encoder: BertEncoder) -> Callable[[str], list[str]]:
    pieces = [piece.removeprefix("▁") for piece in tokenizer.get_vocab()]
    words = sorted({p for p in pieces if 2 <= len(p) <= 4 and len(_HAN.findall(p)) == len(p)})
    rng = random.Random(5)
    words = sorted(rng.sample(words, min(len(words), _MOST_WORDS)))
    rows = _rows(words, encoder)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    place = {word: i for i, word in enumerate(words)}
    found: dict[str, list[str]] = {}

    def similar(word: str) -> list[str]:
        if word not in place:
            return []
        if word not in found:
            near = [words[i] for i in np.argsort(-(rows @ rows[place[word]]))[3:40]]
            found[word] = [w for w in near if w not in word and word not in w]
        return found[word]

    return similar


def _rows(words: list[str], encoder: BertEncoder) -> np.ndarray:
    order = sorted(range(len(words)), key=lambda i: encoder.count_tokens(words[i]))
    rows = np.zeros((len(words), encoder.dim), np.float32)
    for start in range(0, len(order), 64):
        chosen = order[start : start + 64]
        rows[chosen] = encoder.encode([words[i] for i in chosen])
    return rows
