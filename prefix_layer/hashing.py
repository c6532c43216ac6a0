"""Names of blocks: a hash over everything that a block's KV depends on. Pure, knows no tensors.

A block's hash chains over its parent's, so equal hashes mean equal whole prefixes; the chain starts
from a root that holds the model fingerprint and the tenant's salt. The bytes hashed are fixed
(little-endian int32), so hashes are stable across processes, machines and Python versions.
"""

import sys
from array import array
from collections.abc import Sequence
from hashlib import blake2b

HASH_BYTES = 32
PUBLIC_SALT = b"public"  # of prefixes that all tenants share; a tenant's own salt is longer

_LITTLE = sys.byteorder == "little"
_BLOCK = blake2b(digest_size=HASH_BYTES, person=b"strata.block")  # copying is faster than making


def root_hash(model_fingerprint: str, salt: bytes = b"") -> bytes:
    """Hash what all blocks of one tenant and one model descend from."""
    digest = blake2b(digest_size=HASH_BYTES, person=b"strata.root")
    for part in (model_fingerprint.encode(), salt):
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(part)
    return digest.digest()


def private_root(public_hash: bytes, salt: bytes) -> bytes:
    """Hash what a tenant's blocks descend from that continue a public block."""
    digest = blake2b(public_hash, digest_size=HASH_BYTES, person=b"strata.private")
    digest.update(salt)
    return digest.digest()


def block_hash(parent_hash: bytes, token_ids: Sequence[int]) -> bytes:
    """Hash the tokens of one block on top of its parent's hash.

    Raises:
        OverflowError: a token id does not fit in 32 bits.
    """
    digest = _BLOCK.copy()
    digest.update(parent_hash)
    digest.update(as_words(token_ids) if _LITTLE else _swapped(token_ids))
    return digest.digest()


def as_words(token_ids: Sequence[int]) -> "array[int]":
    """Return token ids as what is hashed; slices of it take a third of a list's time.

    Raises:
        OverflowError: a token id does not fit in 32 bits.
    """
    return token_ids if isinstance(token_ids, array) else array("i", token_ids)


def _swapped(token_ids: Sequence[int]) -> "array[int]":
    words = array("i", token_ids)
    words.byteswap()
    return words
