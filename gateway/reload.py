"""New settings for a running gateway: what can be taken over is, the rest is named.

No request and no stream is lost: what is under way ends as it began.
"""

import asyncio
import contextlib
import dataclasses
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import structlog

from gateway.auth import check_exposure
from gateway.errors import BadRequest
from gateway.settings import Settings, SettingsError

LIVE_SECTIONS = frozenset({"dashboard", "layout", "log", "requests"})
LIVE_KEYS = frozenset(
    {"admin_key", "api_keys_file", "max_body_bytes", "upstreams"}
    | {f"cache.{key}" for key in ("ttl_s", "stale_while_revalidate_s", "max_entries")}
    | {f"cache.{key}" for key in ("max_temperature", "responses_ttl_s", "replay_tokens_per_s")}
    | {f"semantic.{key}" for key in ("wrong_hit_budget", "shadow_share", "gray_share", "top_k")}
    | {
        f"semantic.{key}"
        for key in ("max_evidence_per_minute", "evidence_judge", "intents", "start")
    }
)

_log = structlog.get_logger(__name__)


class Reloaded(msgspec.Struct, frozen=True):
    """Keys that changed and are in force, and those that wait for a restart."""

    changed: list[str]
    restart_needed: list[str]


class Reloader:
    """Reads the settings again and has them taken over, one reading after the other.

    Args:
        settings: those in force.
        load: reads them anew.
        take: puts settings in force, whole; raises only while nothing has changed.
    """

    def __init__(
        self,
        settings: Settings,
        load: Callable[[], Settings],
        take: Callable[[Settings], Awaitable[None]],
    ) -> None:
        self._settings = settings
        self._load = load
        self._take = take
        self._taking = asyncio.Lock()
        self._hangups: set[asyncio.Task[None]] = set()

    def hang_up(self) -> None:
        """Reload in the background, as SIGHUP asks; the log tells what came of it."""
        task = asyncio.get_running_loop().create_task(self._reload_quietly())
        self._hangups.add(task)
        task.add_done_callback(self._hangups.discard)

    async def _reload_quietly(self) -> None:
        with contextlib.suppress(BadRequest):
            await self.reload()

    async def reload(self) -> Reloaded:
        """Take over what can be changed while requests go on.

        Raises:
            BadRequest: the settings or the keys file are wrong; everything is as before.
        """
        async with self._taking:
            try:
                settings, reloaded = merged(self._settings, self._load())
                check_exposure(settings)
                await self._take(settings)
            except SettingsError as error:
                _log.error("settings_not_reloaded", error=str(error))
                raise BadRequest(str(error), code="invalid_settings") from error
            self._settings = settings
        _log.info("settings_reloaded", **msgspec.to_builtins(reloaded))
        return reloaded


def merged(old: Settings, new: Settings) -> tuple[Settings, Reloaded]:
    """Return the new settings as far as they can be taken over, and what that changed."""
    changed: list[str] = []
    held: list[str] = []
    taken = {
        spec.name: _merged(
            spec.name, getattr(old, spec.name), getattr(new, spec.name), changed, held
        )
        for spec in dataclasses.fields(old)
    }
    _hold_examples(old, taken, changed, held)
    _hold_embedder(old, taken, changed, held)
    return Settings(**taken), Reloaded(sorted(changed), sorted(held))


def _merged(name: str, old: Any, new: Any, changed: list[str], held: list[str]) -> Any:
    """Return what of one key is in force; a section is gone through key by key."""
    if name == "upstream_keys":
        if old != new and "upstreams" not in changed:
            changed.append("upstreams")
        return new
    if not dataclasses.is_dataclass(old):
        if old == new:
            return new
        is_live = name in LIVE_KEYS or name.partition(".")[0] in LIVE_SECTIONS
        if is_live:
            changed.append(name)
        else:
            held.append(name)
        return new if is_live else old
    assert not isinstance(old, type)
    inner = {
        spec.name: _merged(
            f"{name}.{spec.name}", getattr(old, spec.name), getattr(new, spec.name), changed, held
        )
        for spec in dataclasses.fields(old)
    }
    return dataclasses.replace(old, **inner)


def _hold_examples(
    old: Settings, taken: dict[str, Any], changed: list[str], held: list[str]
) -> None:
    """Leave the intents as they are where the classifier would have to learn anew."""
    before, after = (
        {each.name: each.examples for each in semantic.intents}
        for semantic in (old.semantic, taken["semantic"])
    )
    if before != after:
        taken["semantic"] = dataclasses.replace(taken["semantic"], intents=old.semantic.intents)
        _move("semantic.intents", changed, held)


def _hold_embedder(
    old: Settings, taken: dict[str, Any], changed: list[str], held: list[str]
) -> None:
    """Leave the upstreams as they are where the embedder's own would change."""
    named = old.embedder.upstream
    if named is None or "upstreams" not in changed:
        return
    before, after = (
        next((each for each in upstreams if each.name == named[0]), None)
        for upstreams in (old.upstreams, taken["upstreams"])
    )
    keys = (old.upstream_keys.get(named[0]), taken["upstream_keys"].get(named[0]))
    if before != after or keys[0] != keys[1]:
        taken["upstreams"], taken["upstream_keys"] = old.upstreams, old.upstream_keys
        _move("upstreams", changed, held)


def _move(name: str, changed: list[str], held: list[str]) -> None:
    if name in changed:
        changed.remove(name)
    held.append(name)
