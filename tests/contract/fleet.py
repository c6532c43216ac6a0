"""A gateway before two replicas of one engine and a spare engine."""

from dataclasses import dataclass
from typing import Any

from tests.contract.client import Client
from tests.contract.stack import Stack
from tests.fakes.upstream import (
    FakeUpstream,
    Script,
    echo,
)


@dataclass
class Fleet:
    """A gateway before two replicas of one engine and a spare engine."""

    stack: Stack
    one: FakeUpstream
    two: FakeUpstream
    spare: FakeUpstream

    @property
    def fakes(self) -> list[FakeUpstream]:
        return [self.one, self.two, self.spare]

    def script(self, one: Script = echo, two: Script = echo, spare: Script = echo) -> None:
        self.one.script, self.two.script, self.spare.script = one, two, spare

    @property
    def num_calls(self) -> list[int]:
        return [len(fake.calls) for fake in self.fakes]


def toml(one: str, two: str, spare: str) -> str:
    return f"""
[[upstreams]]
name = "pair"
base_url = "{one}"
models = ["stub-model", "alone"]
aliases = {{best = "stub-model"}}
replicas = ["{two}"]
policy = "round_robin"
timeout_s = 3
max_retry_wait_s = 1.0
relay_headers = ["X-Team"]
fallbacks = {{stub-model = ["spare/spare-model"]}}

[upstreams.prices."*"]
input_per_million = 1000000
output_per_million = 1000000

[[upstreams]]
name = "spare"
base_url = "{spare}"
"""


class FleetClient(Client):
    def body(self, prompt: Any, **fields: Any) -> dict[str, Any]:
        return super().body(prompt, **{"model": "stub-model", **fields})


def ups(client: Client) -> list[bool]:
    health = client.http.get("/health/ready").json()
    return [part["ok"] for part in health["upstreams"]["each"]["pair"]["each"].values()]


def views(client: Client, name: str = "pair") -> dict[str, Any]:
    listed = client.http.get("/admin/upstreams").json()["upstreams"]
    return next(view for view in listed if view["name"] == name)
