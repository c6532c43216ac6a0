"""A prompt that is too long for the local model, told with what limits it. Pure."""

from gateway.errors import ContextTooLong
from prefix_layer import Ready


def limit_of(ready: Ready) -> str:
    """Say how many tokens fit, and whether it is the model or its KV pool that allows no more."""
    if ready.context_length < ready.model_context_length:
        return (
            f"the KV pool (local.kv_tokens) holds {ready.context_length} tokens of the "
            f"{ready.model_context_length} that the model could read"
        )
    return f"the model's maximum context length is {ready.context_length} tokens"


def too_long(num_tokens: str, ready: Ready, field: str = "messages") -> ContextTooLong:
    """Return the error of a prompt that leaves no room for an answer; ``field`` is its name."""
    where = "the prompt" if field == "messages" else field
    return ContextTooLong(
        f"{limit_of(ready)}, but {where} has {num_tokens}; an answer needs room beside it",
        param=field,
    )
