"""GPTCache over a stream, run by the Python of its own venv; prints a JSON list of what was served.

usage: PYTHON peer_gptcache.py VECTORS.npy

Its own decision and stores (FAISS and SQLite, the library's defaults: a similarity threshold of
0.8), our vectors. Texts are their numbers; the answer stored for a text is its number.
"""

import json
import sys
import tempfile
from pathlib import Path

import numpy as np
from gptcache import Cache, Config
from gptcache.adapter.api import get, put
from gptcache.manager import CacheBase, VectorBase, get_data_manager
from gptcache.processor.pre import get_prompt
from gptcache.similarity_evaluation.distance import SearchDistanceEvaluation


def main(path: Path) -> None:
    vectors = np.load(path).astype("float32")
    served: list[int | None] = []
    with tempfile.TemporaryDirectory() as folder:
        manager = get_data_manager(
            CacheBase("sqlite", sql_url=f"sqlite:///{folder}/cache.db"),
            VectorBase("faiss", dimension=vectors.shape[1], index_path=f"{folder}/index"),
        )
        cache = Cache()
        cache.init(
            pre_embedding_func=get_prompt,
            embedding_func=lambda text, **_: vectors[int(text)],
            data_manager=manager,
            similarity_evaluation=SearchDistanceEvaluation(),
            config=Config(),
        )
        for number in range(len(vectors)):
            found = get(str(number), cache_obj=cache)
            served.append(None if found is None else int(found))
            if found is None:
                put(str(number), str(number), cache_obj=cache)
    print("\n" + json.dumps(served))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
