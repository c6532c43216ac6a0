"""Measure each guard by itself: what it vetoes on same-answer pairs (false) and on traps (true).

usage: python -m tests.bench.bench_guards [--sets FOLDER] [--groups FOLDER] [--guard NAME]

What is open to a verifier is no veto. A guard is judged alone, whatever the others say; ``alone``
counts the traps that no other guard vetoes. ``--guard NAME`` prints the same-answer pairs that this
guard vetoes, to be read. A folder of authored groups holds JSON lines
``{"q", "same": [...], "traps": [{"kind", "text"}]}``. Labels of Quora and LangCache are noisy: read
false vetoes there as upper bounds.
"""

import argparse
import json
import os
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from gateway.bundled import default_models_dir, prepare
from semantic_layer.comparison.edits import compare
from semantic_layer.comparison.guards import RULES, findings, ruling
from semantic_layer.models.bert_encoder import BertEncoder
from semantic_layer.text.analysis import analyse
from semantic_layer.text.likeness import KnowsWord
from tests.bench.pair_sets import (
    LabelledPair,
    lcqmc,
    pawsx_zh,
    question_pairs,
    quora_train,
    redis_langcache,
)

_LONG = 60  # words of each text that the time is measured on
_LONG_QUESTION = (
    "I bought a grey two-seater sofa from your shop in Leeds on the 3rd of March 2024 for £450 and "
    "after only four weeks one of the wooden legs broke when my brother sat down on it, so before "
    "I take it back to the store on Saturday I want to know whether I can still get a full refund "
    "or only a repair"
)


@dataclass(slots=True)
class Tally:
    """What one guard did on one set."""

    false: int = 0
    true: int = 0
    alone: int = 0
    shown: list[str] = field(default_factory=list)


def vetoes(pair: LabelledPair, knows_word: KnowsWord) -> dict[str, str]:
    """Return the detail of every guard that vetoes the pair, whatever a verifier would say."""
    comparison = compare(analyse(pair.one), analyse(pair.other), knows_word)
    return {
        name: f"{finding.detail} ({finding.agreement:.2f})"
        for name, rule, finding in findings(comparison)
        if not rule.is_open(finding)
    }


def tally(pairs: Iterable[LabelledPair], knows_word: KnowsWord) -> dict[str, Tally]:
    """Run every guard over every pair; the row "any" counts pairs that at least one vetoes."""
    tallies = {name: Tally() for name in (*RULES, "any")}
    for pair in pairs:
        found = vetoes(pair, knows_word)
        for name in [*found, "any"] if found else []:
            row = tallies[name]
            row.false += pair.same
            row.true += not pair.same
            row.alone += not pair.same and len(found) == 1
            if pair.same:
                row.shown.append(f"{found.get(name, found)}: {pair.one} | {pair.other}")
    return tallies


def authored(folder: Path, prefix: str) -> Iterator[LabelledPair]:
    """Return the pairs of authored groups: each question with its rewordings and its traps."""
    for path in sorted(folder.glob(f"{prefix}*.jsonl")):
        for line in filter(str.strip, path.read_text(encoding="utf-8").splitlines()):
            group = json.loads(line)
            same = [group["q"], *group["same"]]
            for i, one in enumerate(same):
                for other in same[i + 1 :]:
                    yield LabelledPair(one, other, same=True)
            for trap in group["traps"]:
                yield LabelledPair(group["q"], trap["text"], same=False)


def trap_kinds(folder: Path, prefix: str, knows_word: KnowsWord) -> dict[str, Counter[bool]]:
    """Count, for each kind of authored trap, how many are vetoed."""
    kinds: dict[str, Counter[bool]] = {}
    for path in sorted(folder.glob(f"{prefix}*.jsonl")):
        for line in filter(str.strip, path.read_text(encoding="utf-8").splitlines()):
            group = json.loads(line)
            for trap in group["traps"]:
                pair = LabelledPair(group["q"], trap["text"], same=False)
                is_vetoed = bool(vetoes(pair, knows_word))
                kinds.setdefault(trap["kind"], Counter())[is_vetoed] += 1
    return kinds


def table(name: str, pairs: list[LabelledPair], knows_word: KnowsWord, show: str | None) -> None:
    """Print one set's table."""
    tallies = tally(pairs, knows_word)
    num_same = sum(pair.same for pair in pairs)
    print(f"\n{name}: {num_same} same, {len(pairs) - num_same} different")
    print(f"  {'guard':12}{'false':>14}{'true':>16}{'alone':>8}{'precision':>11}")
    for guard, row in tallies.items():
        if not row.false + row.true:
            continue
        share = row.false / max(1, num_same)
        true = row.true / max(1, len(pairs) - num_same)
        precision = row.true / (row.true + row.false)
        print(
            f"  {guard:12}{row.false:6} {share:7.2%}{row.true:8} {true:7.2%}{row.alone:8}"
            f"{precision:11.1%}"
        )
    for line in tallies[show].shown if show else ():
        print("   ", line)


def time_of_long_pair(knows_word: KnowsWord) -> tuple[float, float]:
    """Return milliseconds for two 60-word texts never seen before: read, then compared."""
    words = _LONG_QUESTION.split()
    assert len(words) >= _LONG - 2, "the text is too short"
    reading, comparing = [], []
    for i in range(200):
        texts = [_LONG_QUESTION.replace("Leeds", f"Leeds{i}x{j}") for j in range(2)]
        start = time.process_time()
        one, other = (analyse(text) for text in texts)
        middle = time.process_time()
        ruling(compare(one, other, knows_word))
        comparing.append(1e3 * (time.process_time() - middle))
        reading.append(1e3 * (middle - start) / 2)
    return sorted(reading)[100], sorted(comparing)[100]


def main(options: argparse.Namespace) -> None:
    """Print a table for each set that is there."""
    encoder = BertEncoder(prepare(default_models_dir(os.environ)).embedder_path)
    sets = {
        "question_pairs_dev": question_pairs,
        "quora_train": quora_train,
        "redis_langcache": redis_langcache,
        "lcqmc": lcqmc,
        "pawsx_zh": pawsx_zh,
    }
    for name, read in sets.items():
        if options.sets.is_dir() and options.only in {None, name}:
            table(name, read(options.sets), encoder.knows_word, options.guard)
    for prefix in ("en", "zh"):
        if options.groups is not None and options.only in {None, prefix}:
            pairs = list(authored(options.groups, prefix))
            table(f"authored {prefix}", pairs, encoder.knows_word, options.guard)
            kinds = trap_kinds(options.groups, prefix, encoder.knows_word)
            for kind, seen in sorted(kinds.items()):
                print(f"  trap {kind:10} vetoed {seen[True]:4} of {seen.total():4}")
    reading, comparing = time_of_long_pair(encoder.knows_word)
    print(f"\n60 words: read {reading:.3f} ms a text (kept), compare and guard {comparing:.3f} ms")


def read_options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    sets = os.environ.get("STRATA_BENCH", "../shared/data/semantic")
    parser.add_argument("--sets", type=Path, default=Path(sets), help="folder of labelled pairs")
    parser.add_argument("--groups", type=Path, default=None, help="folder of authored groups")
    parser.add_argument("--guard", choices=[*RULES, "any"], help="print what it vetoes falsely")
    parser.add_argument("--only", help="one set")
    return parser.parse_args()


if __name__ == "__main__":
    main(read_options())
