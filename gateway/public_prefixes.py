"""Prompts that the operator's settings share between all tenants, computed at the start."""

from pathlib import Path

from gateway.backends.local import LocalBackend
from gateway.errors import BadRequest, StrataError
from gateway.laid_out import lay_out
from gateway.setting_sections import LayoutSettings
from gateway.wire.openai import check_chat
from gateway.wire.validation import decode_object


class PublicPrefixesError(StrataError):
    """The file of public prompts cannot be read; the message names the line."""


async def warm_public(local: LocalBackend, path: Path, layout: LayoutSettings) -> int:
    """Compute, pin and publish the prompts of a file of JSON lines; return their tokens.

    Each line is a chat request; ``model`` may be left out.

    Raises:
        PublicPrefixesError: the file or one of its lines is wrong; names it.
    """
    num_tokens = 0
    for number, line in enumerate(_read(path), start=1):
        if not line.strip():
            continue
        try:
            (model,) = local.models()
            body = {"model": model.model_id, **decode_object(line)}
            chat = check_chat(body)
            laid_out, _ = lay_out(chat.body, chat.request.strata, layout)
            warmed = await local.prefix.warm(laid_out, b"", pin=True, public=True)
        except BadRequest as error:
            raise PublicPrefixesError(
                f"local.public_prefixes: {path} line {number}: {error.message}"
            ) from error
        num_tokens += warmed.prompt_tokens
    return num_tokens


def _read(path: Path) -> list[bytes]:
    try:
        return path.read_bytes().split(b"\n")
    except OSError as error:
        text = f"local.public_prefixes: cannot read {path}: {error.strerror}"
        raise PublicPrefixesError(text) from error
