"""Cached tokens of two replicas behind one gateway, by routing policy, at equal load.

usage: python -m tests.bench.bench_routing [--engine vllm] [--conversations 7] [--turns 5] [--json]

Starts two `strata serve`, or two vLLM on CPU where it is installed, with the bundled model and one
gateway without a model in front of them. Each replica has room for the KV of about half of the
conversations (`--kv-tokens`). Every policy gets the same load, four requests at a time, in fresh
words.
"""

import argparse
import json
import os
import random
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from gateway.bundled import default_models_dir
from tests.bench.engine_servers import peers_folder, running, vllm
from tests.contract.stack import Stack, serving

POLICIES = ("round_robin", "least_busy", "affinity")
MODEL = "smollm2-135m-instruct"
WORDS = [
    *("river", "stone", "winter", "letter", "garden", "market", "signal", "paper", "copper"),
    *("window", "engine", "valley", "morning", "harbour", "ladder", "pepper", "forest", "ocean"),
]


@dataclass
class Tally:
    """Tokens of one policy's requests."""

    prompt: int = 0
    cached: int = 0
    seconds: list[float] = field(default_factory=list)

    @property
    def share(self) -> float:
        """The share of prompt tokens that came from a replica's cache."""
        return self.cached / self.prompt if self.prompt else 0.0


def upstreams(urls: list[str], model: str) -> str:
    """Return settings of one upstream per policy over the same replicas of a model."""
    first, *others = [f"{url}/v1" for url in urls]
    return "\n".join(
        f'[[upstreams]]\nname = "{policy}"\nbase_url = "{first}"\nreplicas = {json.dumps(others)}\n'
        f'policy = "{policy}"\nmodels = []\naliases = {{"{policy}" = "{model}"}}\n'
        for policy in POLICIES
    )


def start_fleet(
    stack: ExitStack, folder: Path, models_dir: Path, kv_tokens: int, engine: str = "strata"
) -> Stack:
    """Start two replicas and the gateway in front; return the gateway."""
    model = MODEL
    if engine == "vllm":
        server = vllm(models_dir / MODEL, "float32", kv_tokens=kv_tokens)
        if not server.is_there:
            raise SystemExit(f"{server.name} is not installed in {peers_folder()}")
        model = server.model
        urls = [stack.enter_context(running(server, folder / f"vllm-{at}.log")) for at in range(2)]
    else:
        own = {"SEMANTIC__ENABLED": "false", "LOCAL__KV_TOKENS": str(kv_tokens)}
        urls = [
            stack.enter_context(serving(folder / f"replica-{at}", models_dir, **own)).url
            for at in range(2)
        ]
    toml = upstreams(urls, model)
    front = {"SEMANTIC__ENABLED": "false", "LOCAL__MODEL": "none"}
    return stack.enter_context(serving(folder / "front", models_dir, toml=toml, **front))


def converse(
    url: str,
    policy: str,
    *,
    conversations: int,
    turns: int,
    words: int,
    seed: int,
    at_once: int = 4,
) -> Tally:
    """Hold the conversations, one turn of each after the other, ``at_once`` requests at a time.

    An odd number of them meets two replicas in turn on alternate sides.
    """
    dice, tally = random.Random(seed), Tally()
    histories: list[list[dict[str, Any]]] = [
        [{"role": "system", "content": _text(dice, words)}] for _ in range(conversations)
    ]
    with httpx.Client(base_url=url, timeout=300, trust_env=False) as client:

        def say(history: list[dict[str, Any]]) -> None:
            body = {"model": policy, "temperature": 0, "max_tokens": 4, "messages": history}
            began = time.perf_counter()
            reply = client.post("/v1/chat/completions", json=body).raise_for_status().json()
            tally.seconds.append(time.perf_counter() - began)
            tally.prompt += reply["usage"]["prompt_tokens"]
            tally.cached += reply["usage"]["prompt_tokens_details"]["cached_tokens"]
            history.append(reply["choices"][0]["message"])

        for _ in range(turns):
            for history in histories:
                history.append({"role": "user", "content": _text(dice, words // 4)})
            with ThreadPoolExecutor(at_once) as pool:
                list(pool.map(say, histories))
    return tally


def _text(dice: random.Random, words: int) -> str:
    return " ".join(dice.choice(WORDS) for _ in range(words))


def main() -> None:
    """Run every policy and print its share of cached tokens."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--engine", choices=["strata", "vllm"], default="strata")
    parser.add_argument("--conversations", type=int, default=7)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--words", type=int, default=240)
    parser.add_argument("--kv-tokens", type=int, default=2560)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    models_dir = Path(os.environ.get("STRATA_MODELS_DIR") or default_models_dir(os.environ))
    found: dict[str, dict[str, float]] = {}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        front = start_fleet(stack, folder, models_dir, options.kv_tokens, options.engine)
        for seed, policy in enumerate(POLICIES):
            tally = converse(
                front.url,
                policy,
                conversations=options.conversations,
                turns=options.turns,
                words=options.words,
                seed=seed,
            )
            seconds = sorted(tally.seconds)
            found[policy] = {"cached_share": tally.share, "p50_s": seconds[len(seconds) // 2]}
    gain = found["affinity"]["cached_share"] / max(1e-9, found["round_robin"]["cached_share"])
    if options.json:
        print(json.dumps({**found, "affinity_over_round_robin": gain}))
        return
    for policy, row in found.items():
        print(f"{policy:12s} {row['cached_share']:6.1%} cached  p50 {row['p50_s']:.2f} s")
    print(f"affinity over round robin: x{gain:.2f} cached tokens")


if __name__ == "__main__":
    main()
