"""What the trainer makes of labels: here, of near-misses that show more traps than expected."""

from gateway.evidence.trainer import Trainer
from gateway.evidence.tuner import Tuner
from semantic_layer import IntentPolicies, Label, LabelBook, PooledThresholds, Thresholds
from semantic_layer.calibration.label_book import encode_label
from semantic_layer.calibration.pooled import Expected
from semantic_layer.stores.journal import Row

POOLED = PooledThresholds("s", ((0.008, 0.9), (0.05, 0.6)), Expected(-2.4, -1.2))


def near_miss(i: int, *, right: bool, scorer: str = "s") -> Label:
    return Label(
        label_id=str(i), intent="general", score=0.5, right=right, source="gray", served=False,
        at=1e12 + i, entry_id=str(i), scorer=scorer,
    )  # fmt: skip


class Learning:
    """A trainer and its tuner over a book of labels, and the thresholds they put in force."""

    def __init__(self) -> None:
        self.book = LabelBook(clock=lambda: 1e12)
        self.tuner = Tuner(0.01, self._retune, pooled=POOLED)
        self.trainer = Trainer(self.book, self.tuner, lambda: "s")
        self.thresholds = self.tuner.base()

    def _retune(self, thresholds: Thresholds, _: object) -> None:
        self.thresholds = thresholds

    async def learn(self, *labels: Label) -> float:
        """Take labels; return the threshold of an intent that has none."""
        rows = [Row(label.label_id, i, encode_label(label)) for i, label in enumerate(labels, 1)]
        self.book.take(rows)
        await self.trainer.learn()
        return self.thresholds.of("factual")


async def test_priors_give_way_when_near_misses_are_wrong() -> None:
    """Every intent without proof serves only what rules find no difference in, all at once."""
    learning = Learning()
    proven = Thresholds.unproven(0.01).of("factual")
    assert await learning.learn() < proven
    assert await learning.learn(*(near_miss(i, right=False) for i in range(20))) == proven
    assert learning.tuner.trap_odds > 10


async def test_priors_stay_when_near_misses_are_as_expected() -> None:
    """One in ten wrong at a score of .5 is what was fitted for; another scorer's say nothing."""
    learning = Learning()
    before = await learning.learn()
    labels = [near_miss(i, right=i % 10 > 0) for i in range(60)]
    others = [near_miss(100 + i, right=False, scorer="another") for i in range(60)]
    assert await learning.learn(*labels, *others) == before
    assert learning.tuner.trap_odds == 1


async def test_doubts_hold_when_the_budget_is_changed() -> None:
    """A larger budget brings back no more than it allows with that many traps."""
    learning = Learning()
    await learning.learn(*(near_miss(i, right=False) for i in range(20)))
    learning.tuner.use_settings(0.02, IntentPolicies(), "fitted")
    assert learning.thresholds.of("factual") == Thresholds.unproven(0.02).of("factual")
