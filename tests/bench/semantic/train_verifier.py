"""Train the verifier's upper layers; run by hand.

usage: python -m tests.bench.semantic.train_verifier SETS_FOLDER EMBEDDER_FOLDER RUN_FOLDER
           [--minutes M] [--join N] [--groups FOLDER] [--threads N] [--from CHECKPOINT]
"""

import argparse
import json
import random
import time
from pathlib import Path

import torch
from torch.nn import functional

from semantic_layer.models.bert_encoder import BertEncoder
from tests.bench import pair_sets
from tests.bench.pair_sets import LabelledPair
from tests.bench.semantic.authored import read_groups
from tests.bench.semantic.joint_model import JointModel
from tests.bench.semantic.mixture import Mixture, Sample, langcache_half, paws_half

BATCH = 32
POOL = 16  # batches drawn at once and sorted by length
WARM_SHARE = 0.03
FRESH_TIMES = 6.0  # learning rate of what starts from nothing, over that of e5's layers
USUAL_WIDTH = 200  # letters of both texts; a Chinese character counts as three
LONG_SHARE = 0.15  # of the longer ones are trained on: they cost most


def batches(mixture: Mixture, rng: random.Random) -> list[list[Sample]]:
    """Return batches of texts of like length."""
    drawn: list[Sample] = []
    while len(drawn) < BATCH * POOL:
        sample = mixture.draw()
        usual = sample.is_needed or _width(sample) <= USUAL_WIDTH
        if usual or rng.random() < LONG_SHARE:
            drawn.append(sample)
    drawn.sort(key=_width)
    cut = [drawn[i : i + BATCH] for i in range(0, len(drawn), BATCH)]
    rng.shuffle(cut)
    return cut


def _width(sample: Sample) -> int:
    return sum(len(t) * (1 if t.isascii() else 3) for t in (sample.one, sample.other))


@torch.inference_mode()
def score(model: JointModel, pairs: list[LabelledPair]) -> list[float]:
    """Return the logits of pairs, in their order."""
    order = sorted(range(len(pairs)), key=lambda i: len(pairs[i].one) + len(pairs[i].other))
    scores = [0.0] * len(pairs)
    for start in range(0, len(order), 64):
        chosen = order[start : start + 64]
        with torch.autocast("cpu", torch.bfloat16):
            got = model([pairs[i].one for i in chosen], [pairs[i].other for i in chosen])
        for i, value in zip(chosen, got.tolist(), strict=True):
            scores[i] = value
    return scores


def served_at(scores: list[float], pairs: list[LabelledPair], share: float) -> float:
    """Return the share of same pairs above the score that lets this share of others through."""
    traps = sorted((s for s, p in zip(scores, pairs, strict=True) if not p.same), reverse=True)
    good = [s for s, p in zip(scores, pairs, strict=True) if p.same]
    return sum(s > traps[int(share * len(traps))] for s in good) / max(1, len(good))


def main(options: argparse.Namespace) -> None:
    """Train until the time is over; write a checkpoint every few minutes."""
    torch.manual_seed(1)
    torch.set_num_threads(options.threads)
    options.run.mkdir(parents=True, exist_ok=True)
    encoder = BertEncoder(options.embedder)
    model = JointModel(options.embedder, options.join, options.upper)
    mixture = Mixture(options.sets, encoder, model.tokenizer, seed=options.seed)
    if options.start:
        model.load_state_dict(torch.load(options.start), strict=False)
    trained = [p for p in model.parameters() if p.requires_grad]
    fresh = [p for n, p in model.named_parameters() if p.requires_grad and "upper" not in n]
    optimizer = torch.optim.AdamW(
        [
            {"params": list(model.upper.parameters()), "times": 1.0},
            {"params": fresh, "times": FRESH_TIMES},
        ],
        weight_decay=0.01,
    )
    measured = {
        "dev": pair_sets.question_pairs(options.sets),
        "langcache": langcache_half(options.sets, trained=False),
        "paws": paws_half(options.sets, trained=False)[:200],
        "quora": pair_sets.quora_held_out(options.sets)[:250],
        "lcqmc": pair_sets.lcqmc(options.sets)[:250],
    }
    rng, started, step, total, examples = random.Random(3), time.time(), 0, 0.0, 0
    recent = 0.0
    wanted = 60 * options.minutes
    reported = started
    while time.time() - started < wanted:
        groups = read_groups(options.groups)
        num_groups = mixture.renew(groups)
        for batch in batches(mixture, rng):
            share = min(1.0, (time.time() - started) / wanted)
            rate = options.rate * min(share / WARM_SHARE, (1 - share) / (1 - WARM_SHARE))
            for group in optimizer.param_groups:
                group["lr"] = max(rate, 1e-7) * group["times"]
            with torch.autocast("cpu", torch.bfloat16):
                logits = model([s.one for s in batch], [s.other for s in batch])
            wanted_same = torch.tensor([s.same for s in batch])
            loss = functional.binary_cross_entropy_with_logits(logits, wanted_same)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(trained, 1.0)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            step, total, examples = step + 1, total + loss.item(), examples + 1
            recent = 0.97 * (recent or loss.item()) + 0.03 * loss.item()
            if step % 50 == 0:
                print(step, round((time.time() - started) / 60, 1), round(recent, 4), flush=True)
        if time.time() - reported > 60 * options.report or time.time() - started >= wanted:
            reported = time.time()
            save(model, options.run / "last.pt")
            kept, model.kept = model.kept, {}
            model.eval()
            held = [p for g in groups if g.is_held_out for p, _ in g.pairs()]
            line: dict[str, object] = {
                "step": step,
                "minutes": round((reported - started) / 60, 1),
                "groups": num_groups,
                "loss": round(total / examples, 4),
            }
            for name, pairs in {"held": held[:800], **measured}.items():
                if pairs:
                    scores = score(model, pairs)
                    line[name] = [round(served_at(scores, pairs, w), 3) for w in (0.01, 0.02, 0.05)]
            model.train()
            model.kept = kept
            total, examples = 0.0, 0
            print(json.dumps(line), flush=True)


def save(model: JointModel, path: Path) -> None:
    """Write what was trained; the frozen part is the embedder's own."""
    kept = {
        name: tensor
        for name, tensor in model.state_dict().items()
        if not name.startswith(("embeddings.", "lower."))
    }
    torch.save(kept, path.with_suffix(".tmp"))
    path.with_suffix(".tmp").rename(path)


def read_options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sets", type=Path)
    parser.add_argument("embedder", type=Path)
    parser.add_argument("run", type=Path)
    parser.add_argument("--groups", type=Path, default=Path(__file__).parent / "authored")
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--join", type=int, default=6, help="layers that read one text alone")
    parser.add_argument("--upper", type=int, default=4, help="layers that read both")
    parser.add_argument("--rate", type=float, default=1.6e-4)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--report", type=float, default=5.0, help="minutes between reports")
    parser.add_argument("--start", type=Path, default=None, help="a checkpoint to go on from")
    return parser.parse_args()


if __name__ == "__main__":
    main(read_options())
