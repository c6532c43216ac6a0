"""GPTCache over a stream, run by the Python of its own venv; prints what was served and the time.

usage: PYTHON peer_gptcache.py VECTORS.npy SECONDS [THRESHOLD] (in an empty folder)

Its own decision and stores (FAISS and SQLite, the library's defaults), our vectors. Its similarity
is that of squared distances, 1 - (1 - cosine) / 2: the default threshold of 0.8 serves from a
cosine of 0.6, 0.98 from 0.96. Texts are their numbers; the answer stored for a text is its number.
The last line is JSON: ``served``, by text the number of the one whose answer it got or null, and
``seconds``, what the look-ups took (storing left out). After SECONDS it tells of the texts so far.
"""

import json
import sys
import time
from pathlib import Path

import numpy as np
from gptcache import Cache, Config
from gptcache.adapter.api import get, put
from gptcache.manager import CacheBase, VectorBase, get_data_manager
from gptcache.processor.pre import get_prompt
from gptcache.similarity_evaluation.distance import SearchDistanceEvaluation


def main(path: Path, limit_s: float, threshold: float) -> None:
    until = time.monotonic() + limit_s
    vectors = np.load(path).astype("float32")
    served: list[int | None] = []
    seconds = 0.0
    manager = get_data_manager(
        CacheBase("sqlite", sql_url="sqlite:///cache.db"),
        VectorBase("faiss", dimension=vectors.shape[1], index_path="index"),
    )
    cache = Cache()
    cache.init(
        pre_embedding_func=get_prompt,
        embedding_func=lambda text, **_: vectors[int(text)],
        data_manager=manager,
        similarity_evaluation=SearchDistanceEvaluation(),
        config=Config(similarity_threshold=threshold),
    )
    for number in range(len(vectors)):
        if time.monotonic() > until:
            break
        began = time.perf_counter()
        found = get(str(number), cache_obj=cache)
        seconds += time.perf_counter() - began
        served.append(None if found is None else int(found))
        if found is None:
            put(str(number), str(number), cache_obj=cache)
    print("\n" + json.dumps({"served": served, "seconds": seconds}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3]) if sys.argv[3:] else 0.8)
