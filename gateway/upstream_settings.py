"""Settings of ``[[upstreams]]``. Knows no environment and no file."""

from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Literal

from msgspec import Meta

HttpUrl = Annotated[str, Meta(pattern=r"^https?://.+$", description="http://… | https://…")]
Name = Annotated[str, Meta(min_length=1)]
Seconds = Annotated[float, Meta(gt=0, le=1e9)]
Weight = Annotated[float, Meta(gt=0, le=1e6)]
Tries = Annotated[int, Meta(ge=0, le=20)]
Money = Annotated[float, Meta(ge=0, le=1e9)]
HeaderName = Annotated[
    str, Meta(pattern=r"^[!#$%&'*+.^_`|~0-9A-Za-z-]+$", description="a header's name")
]


@dataclass(frozen=True, slots=True)
class ReplicaSettings:
    """A further address of the same engine; a drained one gets no new requests."""

    SHORTHAND: ClassVar[str] = "url"

    url: HttpUrl
    weight: Weight = 1.0
    drained: bool = False


@dataclass(frozen=True, slots=True)
class PriceSettings:
    """What a million tokens cost; cached prompt tokens cost as much as others unless said."""

    input_per_million: Money
    output_per_million: Money
    cached_input_per_million: Money | None = None
    currency: Annotated[str, Meta(pattern=r"^[A-Z]{3}$", description="three capitals, as USD")] = (
        "USD"
    )


@dataclass(frozen=True, slots=True)
class UpstreamSettings:
    """An OpenAI-compatible engine; ``api_key_env`` names the variable that holds its key.

    ``models`` unset takes whatever it lists. ``fallbacks`` and ``prices`` go by model; ``*`` stands
    for every model that is not named.
    """

    name: Name
    base_url: HttpUrl
    models: list[Name] | None = None
    aliases: dict[Name, Name] = field(default_factory=dict)
    api_key_env: str | None = None
    replicas: list[ReplicaSettings] = field(default_factory=list)
    weight: Weight = 1.0
    drained: bool = False
    policy: Literal["affinity", "round_robin", "least_busy"] = "affinity"
    connect_timeout_s: Seconds = 5.0
    timeout_s: Seconds = 120.0
    retries: Tries = 2
    max_retry_wait_s: Annotated[float, Meta(ge=0, le=600)] = 5.0
    health_every_s: Seconds = 10.0
    fallbacks: dict[Name, list[Name]] = field(default_factory=dict)
    relay_headers: list[HeaderName] = field(default_factory=list)
    headers: dict[HeaderName, str] = field(default_factory=dict)
    proxy: str | None = None
    prices: dict[Name, PriceSettings] = field(default_factory=dict)
