"""What splits the prompts of late, tenant by tenant: the linter, run over live traffic.

Says where a span should stand instead; nothing here, nor elsewhere, moves it.
"""

from collections.abc import Mapping, Sequence

import msgspec

from gateway.backends.prompt_kinds import KindTally, PromptKind
from gateway.backends.recent_requests import RecentRequest
from gateway.backends.tokenizer import Tokenizer
from gateway.lint.finding import Finding, reachable_tokens
from gateway.lint.hits import PrefixReplay
from gateway.lint.linter import Linter
from gateway.lint.tokens import PromptTokens

MAX_BLOCKS = 1 << 22  # more than all of them have
UNKNOWN = "(unknown)"


class VolatileSpan(msgspec.Struct, frozen=True):
    """A span of a prompt that differs where the text behind it does not.

    ``message``, ``char`` and ``token`` are its place when it was first met. ``lost_tokens`` stand
    behind it and could have been reused, over all ``requests`` that it split.
    """

    tenant: str
    cause: str
    name: str
    role: str
    field: str
    message: int | None
    char: int
    token: int | None
    requests: int
    lost_tokens: int
    lost_per_1000: int
    detail: str
    mend: str


class VolatileReport(msgspec.Struct, frozen=True):
    """The dearest spans first. Shares are of the prompt tokens of all ``requests``.

    ``hit_share`` is what an unbounded cache finds as the prompts are, ``reachable_share`` what it
    would find if all of these spans were mended; ``kinds`` are the same by kind of traffic.
    """

    requests: int
    prompt_tokens: int
    hit_share: float
    reachable_share: float
    spans: list[VolatileSpan]
    kinds: list[PromptKind] = []


def find_volatile(
    tokenizer: Tokenizer,
    requests: Sequence[RecentRequest],
    names: Mapping[bytes, str],
    block_size: int,
) -> VolatileReport:
    """Compare each tenant's requests with each other; ``names`` are those of their salts."""
    tokens = PromptTokens(tokenizer)
    replay = PrefixReplay(block_size, MAX_BLOCKS)
    kinds = KindTally()
    findings: list[Finding] = []
    spans: list[VolatileSpan] = []
    for salt in dict.fromkeys(request.salt for request in requests):
        linter = Linter(tokens)
        for at, request in enumerate(requests):
            if request.salt == salt:
                linter.read("recent", at, {"messages": request.messages, "tools": request.tools})
                rendered = tokens.render(request.messages, request.tools)
                before = replay.num_tokens
                cached = replay.visit(salt.hex(), tokens.encode(rendered))
                num = replay.num_tokens - before
                kinds.add(request.messages, request.tools, num, cached)
        found = linter.findings()
        findings += found
        spans += [_span(names.get(salt, UNKNOWN), one) for one in found]
    reachable = reachable_tokens(replay.num_cached, findings, block_size)
    return VolatileReport(
        requests=len(requests),
        prompt_tokens=replay.num_tokens,
        hit_share=replay.num_cached / max(replay.num_tokens, 1),
        reachable_share=min(1.0, reachable / max(replay.num_tokens, 1)),
        spans=sorted(spans, key=lambda span: -span.lost_tokens),
        kinds=kinds.kinds(),
    )


def _span(tenant: str, found: Finding) -> VolatileSpan:
    place = found.position
    return VolatileSpan(
        tenant=tenant,
        cause=found.cause,
        name=found.name,
        role=found.role,
        field=place.field,
        message=place.message,
        char=place.char,
        token=place.token,
        requests=found.requests,
        lost_tokens=found.lost_tokens,
        lost_per_1000=found.lost_per_1000,
        detail=found.detail,
        mend=found.mend,
    )
