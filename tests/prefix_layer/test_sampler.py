"""The next token is chosen as the request asks."""

import math
from collections import Counter

import pytest
import torch
from torch import Tensor

from prefix_layer.messages import Generate, Sampling, TokenLogprob
from prefix_layer.sampler import LOWEST_LOGPROB, sample
from prefix_layer.sequence import Sequence

LOGITS = torch.tensor([0.1, 2.0, 1.0, -1.0, 1.9])


def make(**sampling: object) -> Sequence:
    settings = {"max_tokens": 1000, "temperature": 0.0} | sampling
    return Sequence(Generate("r", [1], Sampling(**settings)), 10_000)


def choose(sequence: Sequence, logits: Tensor = LOGITS) -> int:
    (choice,) = sample([sequence], logits[None])
    assert choice is not None
    return choice.token_id


def draws(sequence: Sequence, count: int = 400, logits: Tensor = LOGITS) -> Counter[int]:
    return Counter(choose(sequence, logits) for _ in range(count))


def logprob_of(sequence: Sequence, logits: Tensor) -> TokenLogprob:
    (choice,) = sample([sequence], logits[None])
    assert choice is not None
    assert choice.logprob is not None
    return choice.logprob


def test_greedy_takes_the_highest_when_rows_differ() -> None:
    """A batch of greedy rows is chosen row by row."""
    rows = torch.stack([LOGITS, -LOGITS, LOGITS.roll(1)])
    choices = sample([make(), make(), make()], rows)
    assert [c.token_id for c in choices if c] == [1, 3, 2]


def test_frequencies_follow_softmax_when_nothing_is_filtered() -> None:
    """Draws have the distribution that temperature makes of the logits."""
    counts = draws(make(temperature=0.7, seed=1), 4000)
    expected = torch.softmax(LOGITS / 0.7, -1)
    for token_id, share in enumerate(expected.tolist()):
        sigma = math.sqrt(share * (1 - share) / 4000)
        assert abs(counts[token_id] / 4000 - share) < 5 * sigma


def test_only_the_best_are_drawn_when_top_k_is_set() -> None:
    """top_k cuts by rank."""
    assert set(draws(make(temperature=5.0, top_k=2, seed=2))) == {1, 4}


def test_smallest_sufficient_set_is_drawn_when_top_p_is_set() -> None:
    """top_p keeps tokens until their mass reaches p, the one that crosses it included."""
    shares = torch.softmax(LOGITS, -1)
    just_two = float(shares[1] + shares[4])
    assert set(draws(make(temperature=1.0, top_p=just_two - 0.01, seed=3))) == {1, 4}
    assert set(draws(make(temperature=1.0, top_p=just_two + 0.01, seed=3))) == {1, 4, 2}
    assert set(draws(make(temperature=1.0, top_p=0.0, seed=3), 50)) == {1}


@pytest.mark.parametrize(("top_k", "top_p"), [(0, 0.9), (40, 1.0), (300, 0.95), (0, 0.99999)])
@pytest.mark.parametrize("spread", [0.01, 4.0])
def test_draws_are_those_of_the_whole_vocabulary_when_it_is_large(
    top_k: int, top_p: float, spread: float
) -> None:
    """Sharp or flat, what is drawn is what sorting every token would give."""
    logits = torch.randn(2000, generator=torch.Generator().manual_seed(7)) * spread
    sequence = make(temperature=1.0, seed=5, top_k=top_k, top_p=top_p)
    probs, ids = torch.softmax(logits.double(), -1).sort(descending=True)
    probs = probs[: top_k or None]
    kept = max(int((probs.cumsum(0) - probs < top_p * probs.sum()).sum()), 1)
    uniform = torch.rand(200, generator=torch.Generator().manual_seed(5), dtype=torch.float64)
    mass = probs[:kept].cumsum(0)
    expected = ids[torch.searchsorted(mass, uniform * mass[-1], right=True)].tolist()
    assert [choose(sequence, logits) for _ in range(200)] == expected


def test_same_draws_when_the_seed_is_the_same() -> None:
    """A seed fixes the text, also beside other sequences; no seed does not."""
    alone = make(temperature=1.0, seed=5)
    expected = [choose(alone) for _ in range(50)]
    batched = make(temperature=1.0, seed=5)
    actual = []
    for _ in range(50):
        choices = sample([make(temperature=1.0), batched], torch.stack([LOGITS, LOGITS]))
        actual.append(choices[1].token_id if choices[1] else None)
    assert actual == expected
    free = [[choose(s) for _ in range(50)] for s in (make(temperature=1.0), make(temperature=1.0))]
    assert free[0] != free[1]


def test_greedy_and_finite_when_temperature_is_tiny() -> None:
    """Dividing by a tiny temperature neither overflows nor changes the winner."""
    assert set(draws(make(temperature=1e-30, seed=1), 50, LOGITS * 1e4)) == {1}


def test_penalties_count_generated_tokens_when_set() -> None:
    """Presence is subtracted once, frequency per occurrence; the prompt does not count."""
    sequence = make(presence_penalty=0.5)
    sequence.append(1)
    assert choose(sequence) == 4
    sequence = make(frequency_penalty=0.08)
    assert choose(sequence) == 1
    sequence.append(1)
    assert choose(sequence) == 1
    sequence.append(1)
    assert choose(sequence) == 4


def test_bias_moves_logits_when_set() -> None:
    """logit_bias adds to logits, before greedy choice and draws alike."""
    assert choose(make(logit_bias={3: 100.0})) == 3
    assert 1 not in draws(make(temperature=1.0, seed=1, logit_bias={1: -100.0}))


def test_logprobs_are_those_of_the_raw_logits_when_sampling_is_bent() -> None:
    """Bias, temperature and filters don't change what is reported."""
    sequence = make(temperature=3.0, top_k=1, logit_bias={3: 100.0}, num_logprobs=2)
    logprob = logprob_of(sequence, LOGITS)
    expected = torch.log_softmax(LOGITS, -1)
    assert logprob.token_id == 3
    assert math.isclose(logprob.logprob, float(expected[3]), abs_tol=1e-5)
    assert [token_id for token_id, _ in logprob.top] == [1, 4]
    assert math.isclose(logprob.top[0][1], float(expected[1]), abs_tol=1e-5)


def test_logprobs_are_finite_when_logits_are_minus_infinity() -> None:
    """Impossible tokens are reported as OpenAI does, and JSON can carry it."""
    logits = LOGITS.clone()
    logits[3:] = -math.inf
    logprob = logprob_of(make(num_logprobs=20), logits)
    assert len(logprob.top) == len(LOGITS)
    assert [value for _, value in logprob.top][-2:] == [LOWEST_LOGPROB] * 2


def test_no_choice_is_made_when_logits_are_not_finite() -> None:
    """A row of NaN or nothing but -inf fails alone; its neighbours go on."""
    rows = torch.stack([torch.full((5,), math.nan), LOGITS, torch.full((5,), -math.inf)])
    choices = sample([make(), make(temperature=1.0, seed=1), make()], rows)
    assert choices[0] is None
    assert choices[1] is not None
    assert choices[2] is None
