"""What the upstream backend says of its models."""

from typing import Any

from gateway.backends.upstream import UpstreamBackend
from tests.gateway.upstream_calls import Backends, nowhere


async def test_fingerprint_changes_when_model_or_address_changes() -> None:
    """The same upstream keeps its fingerprint over restarts; replicas are no part of it."""

    async def fingerprints(*args: Any, **settings: Any) -> set[str]:
        backend = UpstreamBackend(*args, **settings)
        await backend.close()
        return {info.fingerprint for info in backend.models()}

    one = await fingerprints("a", "http://x/v1", ["m"])
    assert one == await fingerprints("a", "http://x/v1/", ["m"], replicas=["http://y/v1"])
    others = [
        await fingerprints("b", "http://x/v1", ["m"]),
        await fingerprints("a", "http://z/v1", ["m"]),
        await fingerprints("a", "http://x/v1", ["n"]),
    ]
    assert len(one.union(*others)) == 4


async def test_models_are_listed_once_when_settings_repeat_them(backends: Backends) -> None:
    """Each model of the settings, owned by the upstream."""
    backend = UpstreamBackend("up", nowhere(), ["a", "b", "a"])
    assert [(info.model_id, info.owned_by) for info in backend.models()] == [
        ("a", "up"),
        ("b", "up"),
    ]
    await backend.close()
    await backend.close()
