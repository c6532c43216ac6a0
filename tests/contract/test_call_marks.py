"""Answers that carry an id of their call: right rewordings are served to the end all the same."""

import json
from hashlib import md5
from pathlib import Path

import pytest

from tests.contract.client import until
from tests.contract.conftest import StartStack
from tests.contract.stack import upstream_toml
from tests.fakes.upstream import Answer, Call, FakeUpstream, last_user_text, streamed

PAIRS = [
    line.split("\t")
    for line in Path(__file__).with_name("right_pairs.tsv").read_text("utf-8").splitlines()
]


def marked(call: Call) -> Answer:
    """Answer with a mark that no other request gets, and the question."""
    mark = md5(json.dumps(call.body["messages"]).encode(), usedforsecurity=False).hexdigest()
    return Answer(streamed([f"ANSWER[{mark[:10]}]", last_user_text(call)]))


@pytest.mark.slow
def test_right_pairs_keep_their_hits_when_every_answer_has_an_id(start_stack: StartStack) -> None:
    """Near-misses whose answers differ in such ids alone are no sign of traps."""
    with FakeUpstream(marked) as upstream:
        client = start_stack(
            toml=upstream_toml(upstream.base_url), LOCAL__MODEL="none", SEMANTIC__GRAY_SHARE="1"
        ).client
        outcomes = []
        for one, other in PAIRS:
            client.seed(one, model="stub-model")
            outcomes.append(client.answer(other, model="stub-model").headers["x-strata-cache"])
        assert outcomes.count("miss") >= 10, "what is not served must be compared"
        until(lambda: 'verdict="undecided"' in client.metrics(), what="compared")
        assert 'source="gray",verdict="wrong"' not in client.metrics()
        assert client.http.get("/admin/stats").json()["near_misses"]["trap_odds"] == 1
        parts = [outcomes[i : i + 20].count("semantic") for i in range(0, len(PAIRS), 20)]
        assert min(parts) >= 8, parts
