"""Names of Redis keys, such that no tenant, tag or id can name another's."""

import json
from functools import lru_cache
from urllib.parse import quote, unquote

from semantic_layer.stores.response_store.base import Named, Selector


@lru_cache(maxsize=4096)
def _safe(name: str) -> str:
    return quote(name, safe="", errors="surrogatepass")


def member_name(tenant: str, entry_id: str) -> str:
    """Return the name of an entry in an index; ends with the id as it is."""
    return f"{_safe(tenant)}:{entry_id}"


def parse_member(member: str) -> tuple[str, str]:
    """Return the tenant and id that `member_name` was given."""
    tenant, _, entry_id = member.partition(":")
    return unquote(tenant, errors="surrogatepass"), entry_id


def selector_text(selector: Selector) -> str:
    """Return the names that a selector asks for, as JSON."""
    asked = {
        "tenant": selector.tenant,
        "namespace": selector.namespace,
        "model": selector.model,
        "entry_id": selector.entry_id,
        "tag": selector.tag,
    }
    return json.dumps({name: _safe(value) for name, value in asked.items() if value is not None})


def names_text(answer: Named) -> str:
    """Return an answer's names as JSON, to be compared with those of selectors."""
    return json.dumps(
        {
            "tenant": _safe(answer.tenant),
            "namespace": _safe(answer.namespace),
            "model": _safe(answer.model),
            "entry_id": _safe(answer.entry_id),
            "tags": [_safe(tag) for tag in answer.tags],
        }
    )


class Keys:
    """Keys under one prefix. Names from outside are percent-encoded, so ``:`` only separates."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self.created = f"{prefix}:created"
        self.expiry = f"{prefix}:expiry"
        self.registry = f"{prefix}:indexes"
        self.records = f"{prefix}:records"
        self.withdrawn = f"{prefix}:withdrawn"
        self.journal_heads = f"{prefix}:{{journal}}:heads"

    def entry(self, tenant: str, entry_id: str) -> str:
        """Return the key of an entry."""
        return f"{self.prefix}:{{{_safe(tenant)}}}:e:{entry_id}"

    def tenant(self, tenant: str) -> str:
        """Return the key of the index of a tenant's entries."""
        return f"{self.prefix}:{{{_safe(tenant)}}}:created"

    def tag(self, tag: str) -> str:
        """Return the key of the index of entries with this tag, of all tenants."""
        return f"{self.prefix}:t:{_safe(tag)}"

    def record(self, tenant: str, name: str) -> str:
        """Return the key of a tenant's record."""
        return f"{self.prefix}:{{{_safe(tenant)}}}:r:{_safe(name)}"

    def count(self, owner: str, name: str, slot: int) -> str:
        """Return the key of one slot of a tenant's window; a tenant's share one cluster slot."""
        return f"{self.prefix}:{{{_safe(owner)}}}:c:{name}:{slot}"

    def lease(self, name: str) -> str:
        """Return the key of a lease."""
        return f"{self.prefix}:lease:{_safe(name)}"

    def feed(self, name: str) -> str:
        """Return the key of a feed of points."""
        return f"{self.prefix}:feed:{_safe(name)}"

    def journal_order(self, name: str) -> str:
        """Return the key of a journal's ids by sequence number; journals share a cluster slot."""
        return f"{self.prefix}:{{journal}}:order:{_safe(name)}"

    def journal_rows(self, name: str) -> str:
        """Return the key of a journal's rows by id."""
        return f"{self.prefix}:{{journal}}:rows:{_safe(name)}"
