"""What a look-up comes to: a hit, a miss that can be stored, or a request left alone."""

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt

from semantic_layer.calibration.trial import Arm
from semantic_layer.entry import Entry

Verdict = Literal["pass", "veto", "skip"]


@dataclass(frozen=True, slots=True)
class Reason:
    """One check of a decision: its name, what it said, and why in words."""

    check: str
    verdict: Verdict
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A stored entry that was considered. ``similarity`` is cosine, ``score`` a probability."""

    entry_id: str
    similarity: float
    score: float
    reasons: tuple[Reason, ...] = ()
    text: str = ""  # of the stored question


@dataclass(frozen=True, slots=True)
class Judgement:
    """The numbers behind a decision, as the response headers and the admin API show them.

    ``text`` is what similarity was judged on; None when nothing was judged. ``arm`` is that of the
    intent's running trial.
    """

    intent: str | None = None
    threshold: float | None = None
    similarity: float | None = None
    score: float | None = None
    reasons: tuple[Reason, ...] = ()
    candidates: tuple[Candidate, ...] = ()
    text: str | None = None
    arm: Arm | None = None


@dataclass(frozen=True, slots=True)
class Hit:
    """A stored answer that may be served. ``age_s`` is the entry's age in seconds.

    ``stale_s`` is for how long a new answer has been due, None for one that is fresh.
    """

    layer: Literal["exact", "semantic"]
    entry: Entry
    age_s: float
    judgement: Judgement = field(default_factory=Judgement)
    stale_s: float | None = None


@dataclass(frozen=True, slots=True)
class Miss:
    """Nothing to serve. Carries all that `SemanticCache.store` needs, so nothing is done twice.

    ``key`` is the exact key (hex). ``scope`` and ``embedding`` (float32, ``(dim,)``) are None when
    the request may be stored for exact repeats only. ``may_store`` is False under ``no-store``.
    ``restated`` is the last message in a rewriter's words, "" without one. ``asked_at`` is when its
    look-up began (Unix seconds): what is withdrawn later takes its answer along.
    """

    key: str
    scope: str | None
    text: str | None
    embedding: npt.NDArray[np.float32] | None
    may_store: bool
    judgement: Judgement = field(default_factory=Judgement)
    restated: str = ""
    asked_at: float | None = None


@dataclass(frozen=True, slots=True)
class Bypass:
    """The cache takes no part in this request, neither reading nor writing."""

    reasons: tuple[Reason, ...] = ()
    intent: str | None = None

    @property
    def judgement(self) -> Judgement:
        """What is known of the request."""
        return Judgement(intent=self.intent, reasons=self.reasons)


Outcome = Hit | Miss | Bypass


@dataclass(frozen=True, slots=True)
class Inspection:
    """What a look-up would come to, with every candidate it considers and why."""

    outcome: Literal["exact", "semantic", "miss", "bypass"]
    entry: Entry | None = None
    judgement: Judgement = field(default_factory=Judgement)
