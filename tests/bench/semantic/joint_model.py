"""The verifier while it is trained: frozen lower layers read each text, upper ones read both.

Source: Precomputing Transformer Term Representations (MacAvaney et al., SIGIR 2020): joining two
texts midway keeps a cross-encoder's precision and lets the lower half be kept per text.
"""

from collections.abc import Sequence
from pathlib import Path

import torch
from tokenizers import Tokenizer
from torch import nn
from transformers import BertModel

from semantic_layer.models.joint_layers import face
from semantic_layer.models.joint_text import prepare

MOST_TOKENS = 72
_KEPT_TEXTS = 60_000

Read = tuple[list[int], torch.Tensor]


class JointModel(nn.Module):
    """Gives the logit of "same answer" for pairs of texts.

    ``join`` lower layers are e5's and stay so; the next ``upper`` ones are trained, the rest are
    left out. Tokens are told which text they stand in and whether the other text holds them too.
    """

    def __init__(self, folder: Path, join: int, upper: int) -> None:
        super().__init__()
        bert = BertModel.from_pretrained(str(folder), attn_implementation="sdpa")
        hidden = bert.config.hidden_size
        self.embeddings = bert.embeddings
        self.lower = nn.ModuleList(bert.encoder.layer[:join])
        self.upper = nn.ModuleList(bert.encoder.layer[join : join + upper])
        self.embeddings.eval()
        self.lower.eval()
        for parameter in (*self.embeddings.parameters(), *self.lower.parameters()):
            parameter.requires_grad = False
        self.marks = nn.Embedding(4, hidden)
        nn.init.normal_(self.marks.weight, std=0.1)
        self.align = nn.Linear(2 * hidden + 1, hidden)
        nn.init.normal_(self.align.weight, std=0.01)
        self.doubts = nn.Linear(hidden, 64)
        self.mix = nn.Linear(2 * hidden + 64 + 4, hidden)
        self.out = nn.Linear(hidden, 1)
        self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.tokenizer.enable_truncation(MOST_TOKENS)
        self.tokenizer.no_padding()
        self.kept: dict[str, Read] = {}

    def train(self, mode: bool = True) -> "JointModel":
        """Switch the trained part only: what is frozen has no dropout."""
        super().train(mode)
        self.embeddings.eval()
        self.lower.eval()
        return self

    def forward(self, ones: Sequence[str], others: Sequence[str]) -> torch.Tensor:
        """Return logits ``(pairs,)``."""
        one, other = [prepare(t) for t in ones], [prepare(t) for t in others]
        reads = self._read([*one, *other])
        pairs = [(reads[a], reads[b]) for a, b in zip(one, other, strict=True)]
        lengths = torch.tensor([len(a[0]) + len(b[0]) for a, b in pairs])
        longest = int(lengths.max())
        keep = torch.arange(longest) < lengths[:, None]
        states = torch.zeros(len(pairs), longest, self.marks.embedding_dim)
        kinds = torch.zeros(len(pairs), longest, dtype=torch.long)
        faced = torch.zeros(len(pairs), longest, 2 * self.marks.embedding_dim + 1)
        matched = torch.zeros(len(pairs), 4)
        for row, (a, b) in enumerate(pairs):
            states[row, : lengths[row]] = torch.cat([a[1], b[1]]).float()
            kinds[row, : lengths[row]] = torch.tensor(_kinds(a[0], b[0]))
            faced[row, : lengths[row]], matched[row] = face(a[1].float(), b[1].float())
        x = states + self.marks(kinds) + self.align(faced)
        mask = None if bool(keep.all()) else keep[:, None, None, :]
        for layer in self.upper:
            x = _first(layer(x, attention_mask=mask))
        first, second = x[:, 0], x[torch.arange(len(pairs)), [len(a[0]) for a, _ in pairs]]
        doubts = self.doubts(x).masked_fill(~keep[:, :, None], -1e4).amax(1)
        mixed = torch.cat([first + second, (first - second).abs(), doubts, matched], -1)
        return self.out(nn.functional.gelu(self.mix(mixed))).squeeze(-1).float()

    @torch.no_grad()
    def _read(self, texts: list[str]) -> dict[str, Read]:
        """Pass texts through the lower layers; those met before are kept."""
        if len(self.kept) > _KEPT_TEXTS:
            self.kept.clear()
        new = [text for text in dict.fromkeys(texts) if text not in self.kept]
        if new:
            rows = [encoding.ids for encoding in self.tokenizer.encode_batch(new)]
            longest = max(map(len, rows))
            ids = torch.tensor([row + [0] * (longest - len(row)) for row in rows])
            keep = torch.arange(longest) < torch.tensor([len(row) for row in rows])[:, None]
            states = self.embeddings(input_ids=ids)
            for layer in self.lower:
                states = _first(layer(states, attention_mask=keep[:, None, None, :]))
            for i, (text, row) in enumerate(zip(new, rows, strict=True)):
                self.kept[text] = row, states[i, : len(row)].to(torch.bfloat16)
        return {text: self.kept[text] for text in texts}


def _kinds(one: list[int], other: list[int]) -> list[int]:
    in_one, in_other = set(one), set(other)
    return [int(i in in_other) for i in one] + [2 + (i in in_one) for i in other]


def _first(result: object) -> torch.Tensor:
    return result[0] if isinstance(result, tuple) else result  # type: ignore[return-value]
