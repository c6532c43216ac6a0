"""``strata thresholds``: a gateway's, and those fitted from labelled rows."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from gateway.cli import strata
from semantic_layer import PooledThresholds, Thresholds
from semantic_layer.resources import load_json
from tests.fakes.admin import FakeAdminApi, serving


def run(*arguments: str, rows: list[Any] | None = None, **environ: str) -> Result:
    text = "".join(row if isinstance(row, str) else json.dumps(row) + "\n" for row in rows or [])
    return CliRunner().invoke(
        strata, ["thresholds", *arguments], input=text.encode(), env=dict(environ)
    )


def scored(num: int, right: bool = True, score: float = 0.9, **more: Any) -> list[dict[str, Any]]:
    return [{"score": score + i / 1e5, "right": right, **more} for i in range(num)]


def intents_of(result: Result) -> dict[str, Any]:
    return {one["intent"]: one for one in json.loads(result.stdout)["intents"]}


def test_threshold_is_fitted_when_rows_prove_it() -> None:
    """Right ones above, wrong ones below: the threshold lies between, within its budget."""
    rows = scored(600, score=0.8) + scored(60, right=False, score=0.6)
    result = run("-", "--json", rows=rows)
    assert result.exit_code == 0, result.stderr
    general = intents_of(result)["general"]
    assert general["source"] == "own"
    assert 0.6 < general["threshold"] <= 0.82
    assert general["upper"] <= 0.011
    assert (general["num_labels"], general["wrong"]) == (600, 0)


def test_budget_is_the_one_asked_for_when_given() -> None:
    """Eighty right ones prove five percent, not the settings' one."""
    rows = scored(80)
    assert intents_of(run("-", "--json", "--budget", "0.05", rows=rows))["general"]["source"] == (
        "own"
    )
    assert intents_of(run("-", "--json", rows=rows))["general"]["source"] == "prior"
    assert (
        intents_of(run("-", "--json", rows=rows, STRATA_SEMANTIC__WRONG_HIT_BUDGET="0.05"))[
            "general"
        ]["source"]
        == "own"
    )


def test_priors_are_the_gateways_when_rows_have_scores_only() -> None:
    """Those fitted to the scorer in use; where there is none to open, the user is told."""
    rows = scored(3)
    texts = [{"a": "Who wrote Emma?", "b": "Who wrote Emma?", "right": True}]
    thresholds = {
        name: one["threshold"] for name, one in intents_of(run("-", "--json", rows=texts)).items()
    }
    found = run("-", "--json", rows=rows)
    assert {name: one["threshold"] for name, one in intents_of(found).items()} == thresholds
    assert found.stderr == ""
    judged = run("-", "--json", rows=rows, STRATA_SEMANTIC__VERIFIER="judge:m")
    assert "a verifier of this machine, not by a judge" in judged.stderr
    assert intents_of(judged)["factual"]["threshold"] != thresholds["factual"]


def test_intents_are_fitted_apart_when_rows_name_them() -> None:
    """Also such as the gateway does not know."""
    rows = scored(500, intent="code") + scored(500, right=False, score=0.96, intent="support")
    intents = intents_of(run("-", "--json", rows=rows))
    assert intents["code"]["source"] == "own"
    assert intents["support"]["source"] == "tightened"
    assert intents["support"]["threshold"] > 0.96


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"score": 1.5, "right": True}, "score: must be a number of 0 to 1"),
        ({"score": True, "right": True}, "score: must be a number"),
        ('{"score": NaN, "right": true}\n', "score: must be a number"),
        ({"score": 0.5}, "right: is missing"),
        ({"score": 0.5, "right": "yes"}, "right: must be true or false"),
        ({"score": 0.5, "right": True, "same_answer": False}, "right: must be true or false"),
        ({"score": 0.5, "right": True, "weight": 0.1}, "weight: must be a number of 1 or more"),
        ({"score": 0.5, "right": True, "intent": 3}, "intent: must be a text"),
        ({"a": "x", "right": True}, "b: is missing"),
        ({"a": " ", "b": "y", "right": True}, "a: must be a text"),
        ("nonsense\n", "not JSON"),
        ("[1]\n", "not an object"),
    ],
)
def test_bad_row_is_named_when_others_are_good(row: Any, words: str) -> None:
    """Its line, its field and what is wrong; the others still count."""
    result = run("-", "--json", rows=[*scored(1), row, *scored(1)])
    assert result.exit_code == 1
    said = json.loads(result.stdout)
    (bad,) = said["bad"]
    assert bad["line"] == 2
    assert words in bad["message"]
    assert said["curve"][-1]["num"] == 2


def test_table_is_printed_when_no_json_is_asked_for() -> None:
    """Intents, then the curve; counts go to standard error."""
    result = run("-", rows=scored(50, score=0.7))
    assert "general" in result.stdout
    assert "0.00% to" in result.stdout
    assert "50 labels, 0 bad rows" in result.stderr


def test_gateway_is_asked_when_no_file_is_named() -> None:
    """Its intents as they are in force, with what labels say of them where there are any."""
    with serving(FakeAdminApi()) as api:
        common = {"mode": "auto", "budget": 0.01, "ttl": 1.0, "version": 0, "prior": 0.95}
        api.intents = [
            {"name": "factual", "threshold": 0.91, "source": "own", **common, "labels": {
                "count": 700, "wrong": 2, "wrong_share": 0.003, "low": 0.001, "high": 0.009,
                "drifted": False}},
            {"name": "code", "threshold": 0.93, "source": "prior", **common},
        ]  # fmt: skip
        table = run("--url", api.url).stdout.splitlines()
        whole = json.loads(run("--url", api.url, "--json").stdout)
    assert table[1].split() == [
        "factual", "0.9100", "own", "1.00%", "700", "2", "0.10%", "to", "0.90%",
    ]  # fmt: skip
    assert table[2].split()[-3:] == ["-", "-", "-"]
    assert whole["intents"] == api.intents


def test_gateway_is_taught_in_batches_when_asked_to() -> None:
    """Scores given elsewhere are taken at their word; intents and weights go along."""
    with serving(FakeAdminApi()) as api:
        rows = scored(600, intent="code", weight=2.0)
        result = run("-", "--json", "--teach", "--url", api.url, rows=rows)
    assert result.exit_code == 0, result.stderr
    assert "600 labels given" in result.stderr
    assert [len(batch["labels"]) for batch in api.taught] == [500, 100]
    first = api.taught[0]
    assert first["scorer"] is None
    assert first["labels"][0] == {
        "score": 0.9, "right": True, "a": "", "b": "", "intent": "code", "weight": 2.0,
    }  # fmt: skip


def test_budget_is_refused_when_there_is_nothing_to_fit() -> None:
    """A running gateway's budget is set by its settings or its admin API."""
    result = run("--budget", "0.05")
    assert result.exit_code == 2
    assert "--budget" in result.stderr


def test_one_line_says_so_when_no_gateway_answers() -> None:
    """And how to start one."""
    result = CliRunner().invoke(strata, ["thresholds", "--url", "http://127.0.0.1:1"])
    assert result.exit_code == 1
    assert "no gateway answers" in result.stderr


@pytest.mark.slow
def test_pairs_are_scored_as_the_gateway_would_when_they_come_as_texts(
    models_dir: Path,
) -> None:
    """A rewording scores high, a pair that a guard vetoes scores nothing."""
    rows = [
        {"a": "How do I bake bread?", "b": "how do i bake bread", "same_answer": True},
        {"a": "How do I bake bread?", "b": "How do I not bake bread?", "same_answer": False},
    ]
    result = run("-", "--json", rows=rows, STRATA_MODELS_DIR=str(models_dir))
    assert result.exit_code == 0, result.stderr
    points = {point["threshold"]: point for point in json.loads(result.stdout)["curve"]}
    assert (points[0.97]["num"], points[0.97]["wrong_share"]) == (1, 0)
    pooled = PooledThresholds.matching(load_json("thresholds.json")["fingerprint"])
    assert pooled is not None
    gateways = Thresholds.within(0.01, pooled=pooled)
    fitted = intents_of(result)
    assert fitted
    for name, intent in fitted.items():
        assert intent["threshold"] == pytest.approx(gateways.prior(name))
