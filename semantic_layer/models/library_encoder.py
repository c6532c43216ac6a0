"""Any sentence-transformers model, through that library."""

from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from semantic_layer.errors import EmbedderFailed
from semantic_layer.models.bert_encoder import fingerprint_of, is_piece
from semantic_layer.models.embedding import Vectors

_FALLBACK_WINDOW_TOKENS = 512


class LibraryEncoder:
    """Embeds with `sentence_transformers.SentenceTransformer`; see `Encoder`.

    Raises:
        EmbedderFailed: there is no such model, or it does not load.
    """

    def __init__(self, name: str, *, device: str = "cpu") -> None:
        try:
            from sentence_transformers import SentenceTransformer  # noqa: PLC0415

            self._model: Any = SentenceTransformer(name, device=device)
        except (ImportError, OSError, ValueError, KeyError, RuntimeError, TypeError) as error:
            line = str(error).strip().splitlines()[0] if str(error).strip() else repr(error)
            raise EmbedderFailed(f"embedder {name} does not load: {line}") from error
        self._prompt = self._choose_prompt()
        limit = self._model.max_seq_length or _FALLBACK_WINDOW_TOKENS
        self.window_tokens = int(limit)
        self.dim = int(self._model.encode([""], show_progress_bar=False).shape[1])
        self.fingerprint = self._fingerprint(name)

    def count_tokens(self, text: str) -> int:
        """Return the tokens of prompt, text and the special ones around them."""
        ids = self._model.tokenizer(self._prompt + text, truncation=False)["input_ids"]
        return len(ids)

    def knows_word(self, word: str) -> bool:
        """Say whether a lower-case word is a whole piece of the vocabulary."""
        tokenizer = getattr(self._model.tokenizer, "backend_tokenizer", None)
        return tokenizer is not None and is_piece(tokenizer, word)

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Embed a batch to unit rows ``(len(texts), dim)``."""
        rows: Vectors = self._model.encode(
            list(texts),
            prompt=self._prompt,
            normalize_embeddings=True,
            convert_to_numpy=True,
            show_progress_bar=False,
        )
        return rows.astype(np.float32, copy=False)

    def _choose_prompt(self) -> str:
        prompts: dict[str, str] = self._model.prompts or {}
        return prompts.get(self._model.default_prompt_name or "query") or ""

    def _fingerprint(self, name: str) -> str:
        if Path(name).is_dir():
            return fingerprint_of(Path(name))
        probe = self.encode(["strata", "相似"])
        return blake2b(name.encode() + np.round(probe, 3).tobytes(), digest_size=16).hexdigest()
