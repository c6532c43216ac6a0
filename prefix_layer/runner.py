"""Runs chunks of sequences through the model as one flattened batch. Knows no queues or hashes."""

import torch
from torch import Tensor

from prefix_layer import prompt_logprobs
from prefix_layer.attention import Span, bind_cache
from prefix_layer.block import Block, BlockCopy
from prefix_layer.kv_cache import PagedKVCache, StepPlan
from prefix_layer.model import LoadedModel
from prefix_layer.scheduler import Chunk


class Runner:
    """The model bound to its cache."""

    def __init__(self, model: LoadedModel, cache: PagedKVCache, block_size: int) -> None:
        self._model = model
        self._cache = cache
        self._block_size = block_size
        bind_cache(model.module, cache)

    @torch.inference_mode()
    def copy(self, copies: list[BlockCopy]) -> None:
        """Copy KV between blocks; no block is both a source and a target."""
        if not copies:
            return
        sources = [slot for copy in copies for slot in self._slots(copy.source, copy.num_tokens)]
        targets = [slot for copy in copies for slot in self._slots(copy.target, copy.num_tokens)]
        self._cache.copy(self._tensor(sources), self._tensor(targets))

    @torch.inference_mode()
    def run(self, chunks: list[Chunk]) -> Tensor:
        """Compute the chunks' KV; return logits of each last row, (num_chunks, vocab_size).

        Of sequences that ask for their prompt's log-probabilities, those are added to them.
        """
        token_ids: list[int] = []
        positions: list[int] = []
        slots: list[int] = []
        spans: list[Span] = []
        for chunk in chunks:
            sequence, first_row = chunk.sequence, len(token_ids)
            start = sequence.num_computed_tokens
            end = start + chunk.num_tokens
            token_ids += sequence.token_ids[start:end]
            positions += range(start, end)
            runs = self._runs(sequence.block_table, end)
            span = Span(first_row, len(token_ids), start, runs)
            for begin, stop in span.runs_between(start, end):
                slots += range(begin, stop)
            spans.append(span)
        asked = any(chunk.sequence.wants_prompt_logits for chunk in chunks)
        self._cache.begin(StepPlan(self._tensor(slots), spans, only_ends=not asked))
        wanted = [_rows(chunk, span) for chunk, span in zip(chunks, spans, strict=True)]
        logits = self._forward(token_ids, positions, [row for rows in wanted for row in rows])
        if not asked:
            return logits
        each = torch.split(logits, [len(rows) for rows in wanted])
        for chunk, rows in zip(chunks, each, strict=True):
            if chunk.sequence.wants_prompt_logits:
                prompt_logprobs.take(chunk.sequence, rows)
        return torch.stack([rows[-1] for rows in each])

    def _forward(self, token_ids: list[int], positions: list[int], rows: list[int]) -> Tensor:
        arguments = {
            "input_ids": self._tensor(token_ids)[None],
            "position_ids": self._tensor(positions)[None],
            "use_cache": True,
            "logits_to_keep": self._tensor(rows),
            self._model.cache_argument: self._cache,
        }
        logits: Tensor = self._model.module(**arguments).logits[0]
        return logits

    def _slots(self, block: Block, num_tokens: int) -> range:
        first = block.block_id * self._block_size
        return range(first, first + num_tokens)

    def _runs(self, block_table: list[Block], end: int) -> list[tuple[int, int]]:
        """Join blocks with consecutive ids to runs of slots that hold positions 0 to ``end``."""
        size = self._block_size
        runs: list[tuple[int, int]] = []
        for i in range(-(-end // size)):
            first = block_table[i].block_id * size
            last = first + min(size, end - i * size)
            if runs and runs[-1][1] == first:
                runs[-1] = (runs[-1][0], last)
            else:
                runs.append((first, last))
        return runs

    def _tensor(self, values: list[int]) -> Tensor:
        return torch.tensor(values, dtype=torch.long, device=self._model.device)


def _rows(chunk: Chunk, span: Span) -> range:
    """Return the rows of the batch whose logits are needed."""
    first = span.first_row if chunk.sequence.wants_prompt_logits else span.last_row - 1
    return range(first, span.last_row)
