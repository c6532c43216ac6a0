"""Peers that play a stream by themselves: each in a venv of its own, with our vectors.

Their venvs are folders of $STRATA_PEERS (default ~/.cache/strata-peers). The time is that of their
look-ups alone: their decision and their stores, neither embedding nor storing.
"""

import json
import os
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tests.bench.semantic.stream import Array, Stream, Tally

_HERE = Path(__file__).parent
_CLOSING_S = 60.0  # a peer that stops by itself may need to start and to end


@dataclass(frozen=True, slots=True)
class Peer:
    """A peer: the folder of its venv, and the script that its Python runs, with its options."""

    name: str
    folder: str
    script: Path
    options: Sequence[str] = ()

    @property
    def python(self) -> Path:
        """Return the Python of its venv, which need not be there."""
        home = Path(os.environ.get("STRATA_PEERS", Path.home() / ".cache/strata-peers"))
        return home / self.folder / "bin" / "python"

    def play(self, stream: Stream, vectors: Array, limit_s: float) -> Tally | str:
        """Play as much of a stream as the time lets it; where nothing comes of it, say why."""
        if not self.python.exists():
            return f"absent: no {self.folder}/bin/python among the peers"
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "vectors.npy"
            np.save(path, vectors)
            try:
                done = subprocess.run(
                    [str(self.python), str(self.script), str(path), str(limit_s), *self.options],
                    capture_output=True, text=True, check=False,
                    timeout=limit_s + _CLOSING_S, cwd=folder,
                )  # fmt: skip
            except subprocess.TimeoutExpired:
                return f"not done within {limit_s:.0f} s, nor stopped then"
        if done.returncode:
            return f"failed: {done.stderr.strip().splitlines()[-1]}"
        told = json.loads(done.stdout.splitlines()[-1])
        tally = Tally(self.name, len(told["served"]), seconds=told["seconds"])
        for asked, served in enumerate(told["served"]):
            if served is not None:
                tally.count(asked, served, stream.verdict(asked, served))
        return tally


PEERS = (
    Peer("GPTCache, its defaults", "semantic", _HERE / "peer_gptcache.py"),
    Peer("GPTCache, threshold 0.98", "semantic", _HERE / "peer_gptcache.py", ["0.98"]),
    Peer("RedisVL, its defaults", "redisvl", _HERE / "peer_redisvl.py"),
)
