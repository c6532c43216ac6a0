"""KV that left a small pool comes back from the disk: over HTTP, after a kill, for all to see."""

from tests.contract.client import Client
from tests.contract.conftest import StartStack
from tests.contract.test_metrics import values

PROMPTS = [
    f"Topic {name}. " + f"Tell me about {name}, its history, its uses and its dangers. " * 12
    for name in ("iron", "salt", "wool", "glass")
]
BYPASS = {"Cache-Control": "no-cache, no-store"}


def ask(client: Client, prompt: str) -> tuple[str, int]:
    """Return the answer and how many tokens of its prompt were cached."""
    body = client.answer(prompt, headers=BYPASS, max_tokens=4).json()
    details = body["usage"]["prompt_tokens_details"]
    return body["choices"][0]["message"]["content"], details["cached_tokens"]


def source(client: Client, name: str) -> float:
    return values(client.metrics(), "strata_prefix_tokens_total", "source").get(name, 0)


def test_kv_comes_back_from_disk_when_pool_and_process_are_gone(start_stack: StartStack) -> None:
    """Same answers, cached tokens counted, a kill survived."""
    stack = start_stack(LOCAL__KV_TOKENS="448", LOCAL__DISK_KV_BYTES="500000000")
    client = stack.client
    first = [ask(client, prompt) for prompt in PROMPTS]
    assert all(cached < 64 for _, cached in first)
    again = [ask(client, prompt) for prompt in PROMPTS]
    assert [text for text, _ in again] == [text for text, _ in first]
    assert all(cached > 120 for _, cached in again)
    assert source(client, "disk") > 3 * 100
    assert values(client.metrics(), "strata_prefix_bytes", "tier")["disk"] > 0

    stack.kill()
    stack.start()
    assert [ask(client, prompt)[0] for prompt in PROMPTS] == [text for text, _ in first]
    assert source(client, "disk") > 3 * 100
