"""What ``strata analyze`` shows when no part is named."""

import json
from pathlib import Path

import click

from gateway.cli.analyze.memory import Room, describe_memory, print_memory
from gateway.cli.analyze.speed import HIT_SHARES, PROMPTS, analyze_speed
from gateway.cli.options import settings_of
from gateway.engine_config import local_model_folder
from prefix_layer import read_kv_memory

_OUTPUT_TOKENS = 128


def show_overview(config: Path | None, *, as_json: bool) -> None:
    """Measure the local model's speed, and show it with the memory of its KV."""
    settings = settings_of(config)
    speed = analyze_speed(settings, PROMPTS, HIT_SHARES, _OUTPUT_TOKENS)
    memory = describe_memory(read_kv_memory(local_model_folder(settings)), Room())
    if as_json:
        click.echo(json.dumps({**speed.as_json(), "memory": memory}))
        return
    speed.show()
    click.echo()
    print_memory(memory)
