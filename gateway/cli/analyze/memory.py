"""``strata analyze memory``: what a token's KV takes, for any model's configuration."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import click

from gateway.cli.options import json_option, settings_of
from gateway.cli.output import print_table
from gateway.engine_config import local_model_folder
from prefix_layer import DTYPE_BYTES, CodecName, KvMemory, read_kv_memory

_GIB = 1 << 30


@click.command("memory")
@click.argument("model", required=False, type=click.Path(path_type=Path))
@click.option("--dtype", type=click.Choice(list(DTYPE_BYTES)), help="[default: the model's]")
@click.option(
    "--codec",
    type=click.Choice(get_args(CodecName)),
    default="none",
    show_default=True,
    help="How KV is kept; int8 in the host and disk tiers only.",
)
@click.option(
    "--block-size", type=click.IntRange(1, 512), default=16, show_default=True, help="In tokens."
)
@click.option(
    "--memory",
    "memory_gib",
    type=click.FloatRange(min=0, min_open=True),
    default=1.0,
    show_default=True,
    help="GiB to fill with KV.",
)
@click.option(
    "--context",
    type=click.IntRange(min=1),
    default=4096,
    show_default=True,
    help="Tokens of one long sequence.",
)
@json_option
def memory(
    model: Path | None,
    dtype: str | None,
    codec: CodecName,
    block_size: int,
    memory_gib: float,
    context: int,
    *,
    as_json: bool,
) -> None:
    """Show how much memory a model's KV takes, and how many tokens fit.

    MODEL is a folder or a config.json; without one, the local model. No weights are read.
    """
    kv = read_kv_memory(model or local_model_folder(settings_of(None)), dtype)
    figures = describe_memory(kv, Room(codec, block_size, memory_gib, context))
    if as_json:
        click.echo(json.dumps(figures))
        return
    print_memory(figures)


@dataclass(frozen=True, slots=True)
class Room:
    """How KV is kept, and what is to be filled with it: GiB, or one sequence's tokens."""

    codec: CodecName = "none"
    block_size: int = 16
    memory_gib: float = 1.0
    context_tokens: int = 4096


def describe_memory(kv: KvMemory, room: Room) -> dict[str, Any]:
    """Return the figures by name, sizes in bytes."""
    per_token = kv.bytes_per_token(room.codec)
    block_bytes, memory_bytes = per_token * room.block_size, int(room.memory_gib * _GIB)
    return {
        "kind": kv.kind,
        "dtype": kv.dtype,
        "codec": room.codec,
        "layers": len(kv.layers),
        "windowed_layers": sum(layer.window is not None for layer in kv.layers),
        "window": kv.window,
        "bytes_per_token": per_token,
        "bytes_per_block": block_bytes,
        "context_tokens": room.context_tokens,
        "bytes_of_context": per_token * room.context_tokens,
        "bytes_in_use_of_context": kv.bytes_in_use(room.context_tokens, room.codec),
        "memory_bytes": memory_bytes,
        "tokens_that_fit": memory_bytes // block_bytes * room.block_size,
    }


def print_memory(figures: dict[str, Any]) -> None:
    """Print the figures, one a line."""
    rows = [(name.replace("_", " "), _say(value)) for name, value in figures.items()]
    print_table(("KV memory", ""), rows)


def _say(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else str("-" if value is None else value)
