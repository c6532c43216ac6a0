"""Block hashes separate everything that KV depends on (field case E01)."""

import subprocess
import sys

from hypothesis import given
from hypothesis import strategies as st

from prefix_layer.hashing import HASH_BYTES, block_hash, root_hash

ROOT = root_hash("model")
TOKENS = st.lists(st.integers(0, 49_151), max_size=20)


def test_hashes_differ_when_token_ids_differ_by_256() -> None:
    """More than the low byte of a token id counts."""
    assert block_hash(ROOT, [65] * 16) != block_hash(ROOT, [321] * 16)


def test_hashes_differ_when_digits_move_between_tokens() -> None:
    """Borders between tokens count."""
    assert block_hash(ROOT, [1, 23] + [0] * 14) != block_hash(ROOT, [12, 3] + [0] * 14)


def test_zeros_are_told_from_nothing() -> None:
    """A block of zeros is not an empty block and neither is the root."""
    assert len({block_hash(ROOT, [0] * 16), block_hash(ROOT, []), ROOT}) == 3


@given(TOKENS, TOKENS, TOKENS, TOKENS)
def test_hashes_are_equal_only_when_parent_and_tokens_are(
    parent_a: list[int], parent_b: list[int], a: list[int], b: list[int]
) -> None:
    """The same tokens under another parent are another block."""
    hash_a = block_hash(block_hash(ROOT, parent_a), a)
    hash_b = block_hash(block_hash(ROOT, parent_b), b)
    assert (hash_a == hash_b) == ((parent_a, a) == (parent_b, b))
    assert len(hash_a) == HASH_BYTES


def test_roots_differ_when_salt_or_model_differs() -> None:
    """Tenants and models never share a chain, also where their names run into each other."""
    pairs = [("m", b""), ("m", b"a"), ("ma", b""), ("m", b"b"), ("n", b"a")]
    assert len({root_hash(*pair) for pair in pairs}) == len(pairs)


def test_hash_is_the_same_when_another_process_makes_it() -> None:
    """Hashes may be kept on disk: they depend on no per-process seed."""
    code = (
        "from prefix_layer.hashing import *;"
        "print(block_hash(root_hash('m', b's'), [7, 49151]).hex())"
    )
    other = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert other.stdout.strip() == block_hash(root_hash("m", b"s"), [7, 49_151]).hex()
