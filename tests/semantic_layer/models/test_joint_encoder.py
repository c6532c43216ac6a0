"""The bundled verifier with its real weights: order, symmetry, calibration, and what it keeps."""

import json
import shutil
from importlib.resources import as_file, files
from pathlib import Path

import pytest

from semantic_layer.calibration.pooled import DATA, PooledThresholds
from semantic_layer.calibration.thresholds import PRIORS, Thresholds
from semantic_layer.errors import VerifierFailed
from semantic_layer.models import compiled_layers
from semantic_layer.models.joint_encoder import JointEncoder
from semantic_layer.models.verifier import ThreadedVerifier, load_verifier
from semantic_layer.resources import load_json

SAME = (
    ("How do I reset my password?", "I forgot my password, what do I do to set a new one?"),
    (
        "What time does the library open on Saturday?",
        "what are the saturday opening hours of library",
    ),
    ("怎么申请退款？", "我想把钱退回来，要走什么流程"),
    ("高铁票可以改签几次", "火车票改签有次数限制吗，高铁的"),
)
TRAPS = (
    ("How do I reset my password?", "How do I change my username?"),
    (
        "What time does the library open on Saturday?",
        "What time does the library close on Saturday?",
    ),
    ("怎么申请退款？", "怎么取消退款申请？"),
    ("高铁票可以改签几次", "飞机票可以改签几次"),
)


@pytest.fixture(scope="module")
def encoder(bundled_embedder: Path) -> JointEncoder:
    loaded = load_verifier("bundled", bundled_embedder)
    assert isinstance(loaded, JointEncoder)
    return loaded


def test_rewordings_score_over_traps_when_both_stem_from_the_same_questions(
    encoder: JointEncoder,
) -> None:
    """A guard against drift: three of four rightly ranked, and no trap at a default threshold."""
    right, wrong = encoder.score(SAME), encoder.score(TRAPS)
    assert sum(r > w for r, w in zip(right, wrong, strict=True)) >= len(SAME) - 1
    pooled = PooledThresholds.matching(load_json(DATA)["fingerprint"])
    assert pooled is not None
    thresholds = Thresholds.within(0.05, pooled=pooled)
    assert max(wrong) < min(map(thresholds.of, PRIORS))


def test_score_stays_near_when_torch_takes_the_place_of_compiled_loops(
    encoder: JointEncoder, bundled_embedder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Thresholds hold on every machine: rounding moves a score by less than rewordings differ."""
    monkeypatch.setattr(compiled_layers, "load_library", lambda: None)
    torch_encoder = load_verifier("bundled", bundled_embedder)
    pairs = [*SAME, *TRAPS]
    assert encoder.score(pairs) == pytest.approx(torch_encoder.score(pairs), abs=0.12)


def test_score_is_the_same_when_texts_change_places(encoder: JointEncoder) -> None:
    """Which text was stored first makes no difference."""
    pairs = [*SAME, *TRAPS]
    there, back = encoder.score(pairs), encoder.score([(b, a) for a, b in pairs])
    assert there == pytest.approx(back, abs=1e-6)


def test_score_is_the_same_when_marks_are_repeated(encoder: JointEncoder) -> None:
    """Impatience changes no answer."""
    one, other = SAME[0]
    plain, urged = encoder.score([(one, other), (f"{one}????", f"{other}??")])
    assert plain == pytest.approx(urged, abs=1e-6)


def test_score_is_the_same_when_pairs_share_a_batch(encoder: JointEncoder) -> None:
    """Padding and kept halves change nothing: alone, together, and asked again."""
    together = encoder.score([*SAME, *TRAPS])
    alone = [encoder.score([pair])[0] for pair in (*SAME, *TRAPS)]
    assert together == pytest.approx(alone, abs=2e-3)
    assert encoder.score([*SAME, *TRAPS]) == pytest.approx(together, abs=1e-6)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("HOW DO I RESET MY PASSWORD", "how do i reset my password"),
        ("如何申請退款", "如何申请退款"),
        ("room for ２ people", "room for 2 people"),
    ],
)
def test_score_is_the_same_when_only_writing_differs(
    encoder: JointEncoder, one: str, other: str
) -> None:
    """Case, full width and traditional script are taken out before anything is compared."""
    probe = "Who painted the ceiling?"
    first, second = encoder.score([(one, probe), (other, probe)])
    assert first == pytest.approx(second, abs=1e-6)


def test_score_is_a_probability_that_never_claims_certainty(encoder: JointEncoder) -> None:
    """Whatever is asked, the score stays inside what calibration could show."""
    texts = ["a", "a" * 60, "?", "🙂", "SELECT 1", *(t for pair in SAME for t in pair)]
    scores = encoder.score([(one, other) for one in texts for other in texts])
    assert all(0 <= score < 1 for score in scores)


def test_text_does_not_fit_when_it_is_long(encoder: JointEncoder) -> None:
    """A text past the trained length is told, never cut."""
    assert encoder.fits("How do I reset my password?")
    assert not encoder.fits("word " * 200)
    assert not encoder.fits("字" * 2000)


def test_loading_fails_by_name_when_a_file_is_broken(
    bundled_embedder: Path, tmp_path: Path
) -> None:
    """Broken weights are one clear error."""
    with as_file(files("semantic_layer") / "data") as data:
        shutil.copy(data / "verifier.json", tmp_path)
    (tmp_path / "verifier.safetensors").write_bytes(b"no weights")
    with pytest.raises(VerifierFailed, match="verifier"):
        JointEncoder(bundled_embedder, tmp_path / "verifier.safetensors")
    with pytest.raises(VerifierFailed):
        JointEncoder(tmp_path / "missing", tmp_path / "verifier.safetensors")


def test_package_states_what_the_weights_were_trained_on() -> None:
    """The data statement ships beside the weights."""
    with as_file(files("semantic_layer") / "data" / "verifier.json") as path:
        data = json.loads(path.read_text(encoding="utf-8"))
    assert "Quora" in data["data_statement"]
    probabilities = [p for _, p in data["calibration"]]
    assert probabilities == sorted(probabilities)


async def test_verifier_fails_by_name_when_its_model_breaks(encoder: JointEncoder) -> None:
    """An error of the model's library becomes the layer's own."""

    class Broken:
        fingerprint = "broken"
        fits = staticmethod(encoder.fits)

        def score(self, pairs: object) -> list[float]:
            raise RuntimeError("no memory")

    verifier = ThreadedVerifier(Broken())
    with pytest.raises(VerifierFailed, match="no memory"):
        await verifier.scores([SAME[0]])
    await verifier.close()
