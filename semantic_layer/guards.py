"""Why two texts may need different answers: each guard finds a difference, or is silent. Pure.

A difference is *certain* to matter when nearly all else agrees: "fly to Rome" and "fly to Oslo" are
two questions, whereas of two texts that share few words one may only say it otherwise. The shares
are read off labelled pairs: see ``tests/bench/bench_guards.py``.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from semantic_layer import sentence_guards, word_guards, writing
from semantic_layer.edits import Comparison
from semantic_layer.finding import Finding, Guard
from semantic_layer.outcome import Reason

_NEVER = 2.0  # an agreement nothing reaches: such a finding is always left to a verifier


@dataclass(frozen=True, slots=True)
class Rule:
    """A guard, and the least agreement, 0..1, at which its findings are certain."""

    guard: Guard
    exchanged: float
    added: float = _NEVER

    def is_certain(self, finding: Finding) -> bool:
        """Say whether a rewording hardly ever gives this finding."""
        least = self.exchanged if finding.exchanged else self.added
        return finding.agreement >= least and not finding.may_mean_nothing


RULES: dict[str, Rule] = {
    "language": Rule(writing.language, 0.0),
    "payload": Rule(writing.payload, 0.6, 0.95),
    "numbers": Rule(word_guards.numbers, 0.7, 0.95),
    "signs": Rule(writing.signs, 0.9),
    "capitals": Rule(writing.capitals, 0.95),
    "whose": Rule(writing.whose, 0.95, 0.95),
    "negation": Rule(word_guards.negation, 0.95, 0.95),
    "polarity": Rule(word_guards.polarity, 0.8),
    "exclusive": Rule(word_guards.exclusive, 0.8, 0.95),
    "person": Rule(sentence_guards.person, 0.95),
    "roles": Rule(sentence_guards.roles, 0.8),
    "tense": Rule(sentence_guards.tense, 0.95),
    "scope": Rule(sentence_guards.scope, _NEVER),
    "names": Rule(word_guards.names, 0.95),
    "asked": Rule(sentence_guards.asked, 0.85),
    "direction": Rule(sentence_guards.direction, 0.95),
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


def certain_veto(comparison: Comparison) -> Reason | None:
    """Return the first certain veto; what is doubtful is left to a verifier."""
    for found in findings(comparison):
        if found[1].is_certain(found[2]):
            return _veto(found)
    return None


def _veto(found: tuple[str, Rule, Finding]) -> Reason:
    name, _, finding = found
    return Reason(name, "veto", finding.detail)
