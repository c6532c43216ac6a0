"""What one tenant may do: limits, budgets, models, caches. Knows no counter and no file."""

from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Annotated, Any, Literal

from msgspec import Meta, to_builtins

from gateway.errors import Forbidden
from semantic_layer import CacheControl

Count = Annotated[int, Meta(ge=1)]
Pattern = Annotated[str, Meta(min_length=1)]
Namespace = Annotated[
    str, Meta(min_length=1, max_length=256, pattern=r"^[^*?\[\]]*$", description="no patterns")
]


@dataclass(frozen=True, slots=True)
class TenantRules:
    """Rules of a tenant; the defaults allow everything.

    Rates count every request, tokens only what a model processed: an answer from a cache is free.
    Days and months are UTC's. ``models`` are shell-like patterns. ``cache`` is ``on``, ``read``
    (never store) or ``off``. Where ``namespaces`` are named, a request that names none gets the
    first.
    """

    requests_per_minute: Count | None = None
    tokens_per_minute: Count | None = None
    max_concurrent: Count | None = None
    tokens_per_day: Count | None = None
    tokens_per_month: Count | None = None
    models: tuple[Pattern, ...] = ()
    namespaces: tuple[Namespace, ...] = ()
    cache: Literal["on", "read", "off"] = "on"
    semantic: bool = True
    max_ttl_s: Annotated[float, Meta(gt=0)] | None = None

    @property
    def are_limits(self) -> bool:
        """Whether anything has to be counted before a request may run."""
        return any(
            limit is not None
            for limit in (
                self.requests_per_minute,
                self.tokens_per_minute,
                self.max_concurrent,
                self.tokens_per_day,
                self.tokens_per_month,
            )
        )

    def changed(self) -> dict[str, Any]:
        """Return the rules that differ from their defaults, as plain values."""
        plain = to_builtins(UNRESTRICTED)
        return {name: v for name, v in to_builtins(self).items() if v != plain[name]}

    def allows_model(self, model: str) -> bool:
        """Say whether the tenant may ask for this model."""
        return not self.models or any(fnmatchcase(model, pattern) for pattern in self.models)

    def check_model(self, model: str) -> None:
        """Raise unless the tenant may ask for this model.

        Raises:
            Forbidden: with the code ``model_not_allowed``.
        """
        if not self.allows_model(model):
            raise Forbidden(
                f"the model {model!r} is not allowed for this key",
                param="model",
                code="model_not_allowed",
            )

    def namespace(self, asked: str) -> str:
        """Return the namespace a request works in.

        Raises:
            Forbidden: the tenant is kept to others.
        """
        if not self.namespaces or asked in self.namespaces:
            return asked
        if not asked:
            return self.namespaces[0]
        raise Forbidden(
            f"the namespace {asked!r} is not allowed for this key",
            param="namespace",
            code="namespace_not_allowed",
        )

    def permit(self, model: str, control: CacheControl, namespace: str) -> tuple[CacheControl, str]:
        """Return how a request may use the caches, and in which namespace.

        Raises:
            Forbidden: the model or the namespace is not the tenant's.
        """
        self.check_model(model)
        return self.restrict(control), self.namespace(namespace)

    def restrict(self, control: CacheControl) -> CacheControl:
        """Return what is left of a request's wishes; rules only ever make them stricter."""
        if self is UNRESTRICTED or self == UNRESTRICTED:
            return control
        return replace(
            control,
            no_cache=control.no_cache or self.cache == "off",
            no_store=control.no_store or self.cache != "on",
            semantic=control.semantic and self.semantic,
            max_ttl_s=self.max_ttl_s,
        )


UNRESTRICTED = TenantRules()
