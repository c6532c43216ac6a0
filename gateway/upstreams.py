"""The upstreams that the settings name, built and kept up to date."""

from collections.abc import Callable, Mapping, Sequence

from gateway.backends.prices import Prices
from gateway.backends.upstream import POLICIES, Retries, Timeouts, UpstreamBackend
from gateway.settings import Settings
from gateway.upstream_settings import PriceSettings, UpstreamSettings

Upstreams = Mapping[str, UpstreamBackend]
OnAnswer = Callable[[str, str], None]


def fallbacks_of(settings: Settings) -> Mapping[str, Mapping[str, Sequence[str]]]:
    """Return by upstream and its model what stands in for it."""
    return {each.name: each.fallbacks for each in settings.upstreams}


def relayed_headers(upstreams: Sequence[UpstreamSettings]) -> frozenset[bytes]:
    """Return the client's headers that some upstream relays, in lower case."""
    return frozenset(name.lower().encode() for each in upstreams for name in each.relay_headers)


def build_upstream(
    upstream: UpstreamSettings, settings: Settings, on_answer: OnAnswer
) -> UpstreamBackend:
    """Return the backend of one of ``[[upstreams]]``; nothing is connected yet."""
    own = {upstream.base_url: (upstream.weight, upstream.drained)}
    others = {each.url: (each.weight, each.drained) for each in upstream.replicas}
    replicas = {url.rstrip("/"): row for url, row in {**own, **others}.items()}
    return UpstreamBackend(
        upstream.name,
        upstream.base_url,
        upstream.models,
        replicas=[each.url for each in upstream.replicas],
        weights={url: weight for url, (weight, _) in replicas.items()},
        drained={url for url, (_, is_drained) in replicas.items() if is_drained},
        aliases=upstream.aliases,
        api_key=settings.upstream_keys.get(upstream.name),
        headers=upstream.headers,
        relay_headers=upstream.relay_headers,
        proxy=upstream.proxy,
        prices={model: _prices(each) for model, each in upstream.prices.items()},
        timeouts=Timeouts(upstream.connect_timeout_s, upstream.timeout_s, upstream.timeout_s),
        retries=Retries(upstream.retries, max_wait_s=upstream.max_retry_wait_s),
        policy=POLICIES[upstream.policy](),
        on_answer=on_answer,
    )


def _prices(each: PriceSettings) -> Prices:
    return Prices(
        each.input_per_million,
        each.output_per_million,
        each.cached_input_per_million,
        each.currency,
    )
