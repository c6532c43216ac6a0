"""Derive the bundled antonym pairs from WordNet's database files; run by hand, the result is kept.

usage: python -m tests.bench.derive_antonyms FOLDER_WITH_DATA_FILES > antonyms.wordnet.en.txt

FOLDER holds ``data.adj``, ``data.adv``, ``data.noun``, ``data.verb`` and ``cntlist.rev`` of WordNet
3.0 (Debian: wordnet-base, /usr/share/wordnet). Kept are direct antonyms (pointer ``!``) of single
words of three letters or more, one of which has a sense tagged in WordNet's corpora: rarer
words are left to the model. Pairs told by a prefix the guard knows ("un-") are left out.
Source: format of the files, wndb(5WN).
"""

import sys
from collections.abc import Iterator
from pathlib import Path

from semantic_layer.comparison.word_guards import is_prefixed
from semantic_layer.text.likeness import are_counterparts
from semantic_layer.text.stemming import stem

_NOTICE = """\
# Antonyms of English, derived from WordNet 3.0 by tests/bench/derive_antonyms.py: direct antonyms
# of single words, one of them with a sense tagged in its corpora. Licence: wordnet-license.txt.
# WordNet 3.0 Copyright 2006 by Princeton University. All rights reserved."""
_PARTS = ("adj", "adv", "noun", "verb")
_POINTER = 4  # fields: symbol, synset offset, part of speech, word numbers of source and target
_SHORTEST = 3
_NOT_TURNED = frozenset({  # antonyms in one sense that are no turn of a question in the usual one
    ("man", "woman"), ("be", "differ"), ("have", "lack"), ("need", "obviate"), ("person", "thing"),
    ("play", "work"), ("here", "there"),
})  # fmt: skip


def antonyms(folder: Path) -> set[tuple[str, str]]:
    """Return the pairs, each sorted."""
    words, links = {}, []
    for part in _PARTS:
        for line in (folder / f"data.{part}").read_text(encoding="ascii").splitlines():
            if not line.startswith(" "):
                key, lemmas, found = _synset(part, line)
                words[key] = lemmas
                links += found
    tagged = _tagged(folder)
    pairs = set()
    for here, there in links:
        one, other = (words[key][number - 1] for key, number in (here, there))
        if (one in tagged or other in tagged) and _is_kept(one, other):
            pairs.add((min(one, other), max(one, other)))
    return pairs


Place = tuple[tuple[str, str], int]  # (part of speech, offset), word number from 1


def _synset(part: str, line: str) -> tuple[tuple[str, str], list[str], list[tuple[Place, Place]]]:
    fields = line.split(" | ", maxsplit=1)[0].split()
    num_words = int(fields[3], 16)
    lemmas = [word.split("(")[0].lower() for word in fields[4 : 4 + 2 * num_words : 2]]
    start = 4 + 2 * num_words
    links = []
    for i in range(int(fields[start])):
        symbol, offset, pos, numbers = fields[start + 1 + i * _POINTER :][:_POINTER]
        if symbol == "!":
            target = ({"n": "noun", "v": "verb", "a": "adj", "s": "adj", "r": "adv"}[pos], offset)
            here, there = divmod(int(numbers, 16), 256)
            links.append((((part, fields[0]), here), (target, there)))
    return (part, fields[0]), lemmas, links


def _tagged(folder: Path) -> set[str]:
    lines = (folder / "cntlist.rev").read_text(encoding="ascii").splitlines()
    return {line.split("%")[0] for line in lines}


def _is_kept(one: str, other: str) -> bool:
    return (
        min(len(one), len(other)) >= _SHORTEST
        and one.isalpha()
        and other.isalpha()
        and stem(one) != stem(other)
        and (min(one, other), max(one, other)) not in _NOT_TURNED
        and not (is_prefixed(stem(one), stem(other)) or is_prefixed(stem(other), stem(one)))
        and not are_counterparts(one, other)
    )


def lines(pairs: set[tuple[str, str]]) -> Iterator[str]:
    """Yield the lines of the data file."""
    yield _NOTICE
    for one, other in sorted(pairs):
        yield f"{one} | {other}"


if __name__ == "__main__":
    print("\n".join(lines(antonyms(Path(sys.argv[1])))))
