"""Read the labelled pair sets that the semantic decision is fitted and measured on.

The sets are not part of the repository; the folder that holds them is an argument. Quora's text is
for training and measuring only, LCQMC's for measuring only: neither is ever written anywhere.
"""

import csv
import json
import random
import tarfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class LabelledPair:
    """Two texts and whether one answer is right for both."""

    one: str
    other: str
    same: bool


def question_pairs(folder: Path) -> list[LabelledPair]:
    """Return question_pairs_dev (CC BY 4.0): everyday questions, paraphrases and traps."""
    lines = (folder / "question_pairs_dev.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    return [LabelledPair(row["a"], row["b"], row["same_answer"]) for row in rows]


def question_kinds(folder: Path) -> list[str]:
    """Return the category of each of `question_pairs`, in the same order."""
    lines = (folder / "question_pairs_dev.jsonl").read_text(encoding="utf-8").splitlines()
    return [str(json.loads(line)["category"]) for line in lines]


def quora(folder: Path) -> list[LabelledPair]:
    """Return the Quora pairs in a fixed shuffled order; about one label in twelve is wrong."""
    with tarfile.open(folder / "gptcache" / "similiar_qqp_full.json.gz") as archive:
        member = archive.extractfile(archive.getmembers()[0])
        assert member is not None, "the archive holds one file"
        rows = json.load(member)
    random.Random(7).shuffle(rows)
    return [LabelledPair(row["text_a"], row["text_b"], int(row["label"]) == 1) for row in rows]


def quora_train(folder: Path) -> list[LabelledPair]:
    """Return the pairs the scorer is fitted on."""
    return quora(folder)[:16_000]


def quora_held_out(folder: Path) -> list[LabelledPair]:
    """Return pairs that nothing was fitted on."""
    return quora(folder)[70_000:]


def redis_langcache(folder: Path) -> list[LabelledPair]:
    """Return Redis' LangCache pairs (MIT), without the emphasis that gives labels away."""
    path = folder / "redis_langcache_eval" / "chatgpt.csv"
    with path.open(encoding="utf-8", newline="") as file:
        return [
            LabelledPair(
                row["sentence1"].replace("**", ""),
                row["sentence2"].replace("**", ""),
                float(row["label"]) == 1,
            )
            for row in csv.DictReader(file)
        ]


def lcqmc(folder: Path) -> list[LabelledPair]:
    """Return LCQMC's development pairs (research use): Chinese questions; for measuring only."""
    return _tabbed(folder / "lcqmc_eval_only" / "dev.txt", first_column=0, skip_lines=0)


def pawsx_zh(folder: Path) -> list[LabelledPair]:
    """Return PAWS-X's Chinese development pairs: statements of the same words in other orders."""
    return _tabbed(folder / "pawsx_zh" / "dev_2k.tsv", first_column=1, skip_lines=1)


MEASURED: dict[str, Callable[[Path], list[LabelledPair]]] = {
    "question_pairs_dev": question_pairs,
    "quora_held_out": quora_held_out,
    "redis_langcache": redis_langcache,
    "lcqmc": lcqmc,
    "pawsx_zh": pawsx_zh,
}


def _tabbed(path: Path, *, first_column: int, skip_lines: int) -> list[LabelledPair]:
    lines = path.read_text(encoding="utf-8").splitlines()[skip_lines:]
    rows = [line.split("\t")[first_column:] for line in lines]
    return [LabelledPair(one, other, label == "1") for one, other, label in rows]
