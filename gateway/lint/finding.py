"""What the linter found, gathered over a log: one finding per cause and place."""

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

MAX_FINDINGS = 2000

MENDS = {
    "timestamp": "move the line to the end of the prompt, or cut the time to what the task needs",
    "uuid": "leave the id out of the prompt, or put it at the end of the last message",
    "identifier": "leave the id out of the prompt, or put it at the end of the last message",
    "number": "leave it out of the prompt, or put it at the end of the last message",
    "json_key_order": "write JSON with sorted keys",
    "json_format": "write JSON with one separator and one escape style everywhere",
    "tool_order": "list the tools in one order, by name",
    "list_order": "write the list in one order",
    "line_order": "write the lines in one order",
    "retrieval_order": (
        "put the chunks in one order, such as by id, and the question last; "
        "number them by what they are, not by their rank"
    ),
    "few_shot_order": "give the examples in one order",
    "whitespace": "build the text from one template; strip and join white space in one way",
    "unicode_form": "normalise the text (NFC, one width of punctuation) before it is put in",
    "letter_case": "write the text in one way",
    "template_change": "render all prompts with one chat template and tokenizer version",
    "edited_history": "only append to a conversation; trim or sum up rarely and in large steps",
    "edited_text": (
        "put what differs behind what is the same for all requests; "
        "two versions on purpose are computed once each"
    ),
}


class Position(msgspec.Struct, frozen=True):
    """Where a prompt parts: the field of the request, the character in it, and the token.

    ``token`` counts in the rendered prompt; None when the prompt cannot be rendered.
    """

    file: str
    line: int
    field: str
    message: int | None
    char: int
    token: int | None


class Finding(msgspec.Struct, kw_only=True):
    """One fault: how many requests it split, and what that cost.

    ``name`` tells more of the cause where words before it do, as ``session id``; ``label`` is what
    stands before a value that changes, in its line, digits as ``#``; ``seen`` is the
    place of the prompt that was met first. ``lost_chars`` stand behind the split and could have
    been reused, in all requests; of what stands behind several faults each has an equal part.
    ``lost_tokens`` are as many, by the tokens of some of the prompts, and ``lost_per_1000`` those
    for each thousand requests of the log.
    """

    cause: str
    name: str
    detail: str
    mend: str
    role: str
    label: str
    position: Position
    seen: str
    requests: int = 0
    num_measured: int = 0
    lost_chars: int = 0
    measured_chars: int = 0
    measured_tokens: int = 0
    own_tokens: int = 0
    lost_tokens: int = 0
    lost_per_1000: int = 0


class BadRow(msgspec.Struct, frozen=True):
    """A row that is no request."""

    file: str
    line: int
    message: str


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """A linted log. ``hit_share`` is what a prefix cache finds of its tokens, by replay.

    Without the faults it would be about ``reachable_share``, and up to ``reachable_most`` where
    prompts that share more no longer push each other out.
    """

    requests: int
    prompt_tokens: int
    hit_share: float
    reachable_share: float
    reachable_most: float
    findings: list[Finding]
    bad: list[BadRow]


@dataclass(frozen=True, slots=True)
class Site:
    """What makes two splits one finding."""

    cause: str
    role: str
    label: str


class Findings:
    """Gathers splits by their site; those beyond `MAX_FINDINGS` are put to the last."""

    def __init__(self) -> None:
        self._found: dict[Site, Finding] = {}

    def get(self, site: Site) -> Finding | None:
        """Return what was found at a site."""
        return self._found.get(site)

    def add(self, site: Site, finding: Finding) -> None:
        """Begin a finding."""
        if len(self._found) < MAX_FINDINGS:
            self._found[site] = finding

    def ranked(self, num_requests: int) -> list[Finding]:
        """Return the findings that cost tokens, dearest first."""
        found = [finding for finding in self._found.values() if finding.requests]
        for finding in found:
            rate = finding.measured_tokens / max(finding.measured_chars, 1)
            own = finding.own_tokens * finding.requests / max(finding.num_measured, 1)
            finding.lost_tokens = max(0, round(finding.lost_chars * rate - own))
            finding.lost_per_1000 = round(finding.lost_tokens * 1000 / max(num_requests, 1))
        return sorted((finding for finding in found if finding.lost_tokens), key=_rank)


def reachable_tokens(num_cached: int, findings: Sequence[Finding], block_size: int) -> float:
    """Estimate what would be cached without the faults, which is no less than now.

    Blocks are whole: half of one is lost where prompts part, and less where they part in the first.
    """
    first = (f for f in findings if f.position.token is not None and f.position.token < block_size)
    less = (f.requests * max(0.0, block_size / 2 - (f.position.token or 0)) for f in first)
    return num_cached + max(0.0, sum(found.lost_tokens for found in findings) - sum(less))


def _rank(finding: Finding) -> tuple[int, str]:
    return -finding.lost_tokens, finding.cause
