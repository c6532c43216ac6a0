"""What splits the prompts of late, tenant by tenant: the linter, run over live traffic.

Says where a span should stand instead; nothing here, nor elsewhere, moves it.
"""

from collections.abc import Mapping, Sequence

import msgspec

from gateway.backends.recent_requests import RecentRequest
from gateway.backends.tokenizer import Tokenizer
from gateway.lint.finding import Finding
from gateway.lint.linter import Linter


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
    would find if all of these spans were mended.
    """

    requests: int
    prompt_tokens: int
    hit_share: float
    reachable_share: float
    spans: list[VolatileSpan]


def find_volatile(
    tokenizer: Tokenizer,
    requests: Sequence[RecentRequest],
    names: Mapping[bytes, str],
    block_size: int,
) -> VolatileReport:
    """Compare each tenant's requests with each other; ``names`` are those of their salts."""
    num_blocks = 1 + sum(len(str(request.messages)) for request in requests)
    spans: list[VolatileSpan] = []
    num_requests = num_tokens = 0
    hits = reachable = 0.0
    for salt in dict.fromkeys(request.salt for request in requests):
        linter = Linter(tokenizer, block_size, num_blocks)
        for at, request in enumerate(requests):
            if request.salt == salt:
                row = {"messages": request.messages, "tools": request.tools}
                linter.read("recent", at, row)
        report = linter.report()
        num_requests += report.requests
        num_tokens += report.prompt_tokens
        hits += report.hit_share * report.prompt_tokens
        reachable += report.reachable_share * report.prompt_tokens
        spans += [_span(names.get(salt, "(unknown)"), found) for found in report.findings]
    return VolatileReport(
        requests=num_requests,
        prompt_tokens=num_tokens,
        hit_share=hits / num_tokens if num_tokens else 0.0,
        reachable_share=reachable / num_tokens if num_tokens else 0.0,
        spans=sorted(spans, key=lambda span: -span.lost_tokens),
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
