"""Why two texts may need different answers: each guard finds a difference, or is silent. Pure.

A difference is *certain* to matter when nearly all else agrees: "fly to Rome" and "fly to Oslo" are
two questions, whereas of two texts that share few words one may only say it otherwise. Some of the
latter are *open*: a verifier that is sure may serve them. The shares are read off labelled pairs:
see ``tests/bench/bench_guards.py``.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from semantic_layer.comparison import (
    asked_parts,
    asked_units,
    bounds,
    case_guards,
    chinese_asked,
    chinese_order,
    chinese_verbs,
    compounds,
    english_asked,
    letters,
    literal,
    measured,
    places,
    sentence_guards,
    word_guards,
    writing,
)
from semantic_layer.comparison.edits import Comparison
from semantic_layer.comparison.finding import Finding, Guard
from semantic_layer.comparison.word_guards import is_undone
from semantic_layer.comparison.wording import added_phrase, exchanged_word
from semantic_layer.outcome import Reason

_NEVER = 2.0  # an agreement nothing reaches: such a finding is never certain
_ALL = 2.0  # an agreement everything is under
# Log odds off a verifier's score. Source: pairs that differ in one word are wrong as often as
# others with 1.9 less (authored held out; 1.2 of those trained on, LangCache 2.2, Quora none).
_ONE_WORD = 2.0
_DOUBT = 1.0  # of each open finding; .5 let half as many traps more pass


@dataclass(frozen=True, slots=True)
class Rule:
    """A guard, and the least agreement, 0..1, at which its findings are certain.

    Others are open to a verifier under the agreements ``open_*`` (0 for none), and those that may
    mean nothing wherever any are.
    """

    guard: Guard
    exchanged: float
    added: float = _NEVER
    open_exchanged: float = 0.0
    open_added: float = 0.0

    def is_certain(self, finding: Finding) -> bool:
        """Say whether a rewording hardly ever gives this finding."""
        least = self.exchanged if finding.exchanged else self.added
        return finding.agreement >= least and not finding.may_mean_nothing

    def is_open(self, finding: Finding) -> bool:
        """Say whether a verifier may know better."""
        most = self.open_exchanged if finding.exchanged else self.open_added
        if finding.is_firm or not most or self.is_certain(finding):
            return False
        return finding.may_mean_nothing or finding.agreement < most


RULES: dict[str, Rule] = {
    "language": Rule(writing.language, 0.0),
    "payload": Rule(writing.payload, 0.6, 0.95, open_added=0.9),
    "literal": Rule(literal.literal, 0.9),
    "accents": Rule(letters.accents, 0.9),
    "forms": Rule(letters.forms, 0.9),
    "spacing": Rule(literal.spacing, 0.9),
    "numbers": Rule(word_guards.numbers, 0.7, 0.95, open_added=0.75),
    "bounds": Rule(bounds.bounds, 0.7, 0.95, open_exchanged=0.7, open_added=_ALL),
    "quantity": Rule(bounds.quantity, 0.8, open_exchanged=0.8),
    "aspect": Rule(bounds.aspect, 0.9, open_exchanged=0.9),
    "signs": Rule(writing.signs, 0.9, 0.95, open_added=_ALL),
    "capitals": Rule(writing.capitals, 0.95),
    "whose": Rule(writing.whose, 0.95, 0.95, open_added=_ALL),
    "negation": Rule(word_guards.negation, 0.95, 0.95, open_added=0.9),
    "polarity": Rule(word_guards.polarity, 0.8, open_exchanged=0.52),
    "exclusive": Rule(word_guards.exclusive, 0.8, 0.95, open_exchanged=0.6, open_added=_ALL),
    "person": Rule(sentence_guards.person, 0.95, open_exchanged=_ALL),
    "roles": Rule(sentence_guards.roles, 0.8),
    "tense": Rule(sentence_guards.tense, 0.95, open_exchanged=_ALL),
    "scope": Rule(sentence_guards.scope, _NEVER),
    "names": Rule(word_guards.names, 0.95, 0.95, open_exchanged=0.6),
    "qualified": Rule(places.qualified, _NEVER, 0.8),
    "modality": Rule(bounds.modality, 0.9, open_exchanged=0.9),
    "asked": Rule(sentence_guards.asked, 0.85, open_exchanged=0.3),
    "unit": Rule(asked_units.asked_unit, 0.0, open_exchanged=_ALL),
    "denial": Rule(chinese_verbs.denial, 0.0, open_exchanged=_ALL),
    "permission": Rule(chinese_verbs.permission, 0.9),
    "sequence": Rule(chinese_verbs.sequence, 0.9),
    "facet": Rule(chinese_asked.facet, 0.7),
    "superlative": Rule(chinese_asked.superlative, _NEVER, 0.7),
    "count": Rule(chinese_asked.count, 0.0),
    "coded": Rule(chinese_asked.coding_language, 0.0),
    "command": Rule(asked_parts.command, 0.0),
    "change": Rule(measured.change, 0.7),
    "extent": Rule(measured.extent, 0.5),
    "seat": Rule(measured.seat, 0.0),
    "model": Rule(measured.model, 0.7),
    "term": Rule(measured.term, 0.7, open_exchanged=0.7),
    "example": Rule(measured.example, _NEVER, 0.8, open_added=0.8),
    "rank": Rule(asked_parts.rank, 0.0),
    "sign": Rule(chinese_order.sign, 0.7, 0.7),
    "turned": Rule(chinese_order.turned_word, 0.9),
    "direction": Rule(sentence_guards.direction, 0.95, open_exchanged=_ALL),
    "cases": Rule(case_guards.cases, 0.95),
    "counted": Rule(case_guards.counted, 0.95),
    "links": Rule(case_guards.links, 0.95),
    "narrowed": Rule(case_guards.narrowed, _NEVER),
    "article": Rule(case_guards.article, 0.95),
    "moment": Rule(case_guards.moment, 0.95),
    "possessive": Rule(literal.possessive, 0.95),
    "degree": Rule(english_asked.degree, _NEVER, 0.9, open_added=0.9),
    "specimen": Rule(english_asked.specimen, 0.0),
    "identifier": Rule(english_asked.identifier, 0.8),
    "named": Rule(english_asked.named, 0.0),
    "vessel": Rule(compounds.vessel, 0.9),
    "suffered": Rule(english_asked.suffered, 0.9, 0.9),
    "lookalikes": Rule(word_guards.lookalikes, 0.8),
    "known": Rule(english_asked.known, _NEVER, 0.0),
}


def findings(comparison: Comparison) -> Iterator[tuple[str, Rule, Finding]]:
    """Yield what each guard finds, with the guard's name; of two languages no more than that."""
    for name, rule in RULES.items():
        finding = rule.guard(comparison)
        if finding is not None:
            yield name, rule, finding
            if name == "language":
                return


def first_veto(comparison: Comparison) -> Reason | None:
    """Return the first guard's veto, doubtful ones too; for where nothing else judges the pair."""
    found = next(findings(comparison), None)
    return None if found is None else _veto(found)


@dataclass(frozen=True, slots=True)
class Ruling:
    """A veto, or else what a verifier may overrule, at a ``cost`` in log odds."""

    veto: Reason | None = None
    doubts: tuple[Reason, ...] = ()
    cost: float = 0.0


def ruling(comparison: Comparison, *, goes_on: bool = False) -> Ruling:
    """Return what guards say where a verifier is to be asked.

    In texts that ``goes_on`` from a history a phrase may repeat what was said there.
    """
    doubts = []
    for found in findings(comparison):
        name, rule, finding = found
        if not rule.is_open(finding):
            return Ruling(_veto(found))
        doubts.append(Reason(name, "pass", f"{finding.detail}: left to the verifier"))
    cost = _DOUBT * len(doubts)
    if _cancel_out(comparison, doubts):
        cost -= 2 * _DOUBT
    word = exchanged_word(comparison)
    if word is not None:
        doubts.append(Reason("word", "pass", f"{' / '.join(word)}: left to the verifier"))
        cost += _ONE_WORD
    phrase = None if goes_on else added_phrase(comparison)
    if phrase is not None:
        doubts.append(Reason("phrase", "pass", f"{phrase}, once only: left to the verifier"))
        cost += _ONE_WORD
    return Ruling(doubts=tuple(doubts), cost=cost)


def _cancel_out(c: Comparison, doubts: list[Reason]) -> bool:
    """Say whether a denial and an opposite are open that take each other back."""
    return {doubt.check for doubt in doubts} >= {"negation", "polarity"} and is_undone(c)


def _veto(found: tuple[str, Rule, Finding]) -> Reason:
    name, _, finding = found
    return Reason(name, "veto", finding.detail)
