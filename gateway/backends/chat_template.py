"""A model's chat template: messages in, prompt text out. Templates are untrusted code.

Renders as transformers' ``apply_chat_template(tokenize=False, add_generation_prompt=True)`` does.
Source: transformers 5.24, utils/chat_template_utils.py (environment and what templates may call).
"""

import datetime as dt
import hashlib
import json
from typing import Any, NoReturn

import jinja2
import jinja2.ext
import jinja2.meta
import jinja2.nodes
import jinja2.parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

from gateway.errors import BadRequest

_FAULTS = (
    jinja2.TemplateError,
    TypeError,
    ValueError,
    LookupError,
    AttributeError,
    ArithmeticError,
    RecursionError,
)


class ChatTemplate:
    """One compiled template. ``special_tokens`` are its variables ``bos_token``, ``eos_token``….

    ``knows_tools`` says whether it renders tool calls by itself, ``shows_tools`` whether it tells
    the model of tools; ``digest`` changes with the text.

    Raises:
        jinja2.TemplateSyntaxError: the source is no template.
    """

    def __init__(self, source: str, special_tokens: dict[str, str]) -> None:
        self.knows_tools = "tool_calls" in source
        self.digest = hashlib.blake2b(
            json.dumps([source, special_tokens], sort_keys=True).encode(), digest_size=8
        ).hexdigest()
        self.source = source
        self._special_tokens = special_tokens
        environment = _environment()
        self._template = environment.from_string(source)
        variables = jinja2.meta.find_undeclared_variables(environment.parse(source))
        self.shows_tools = self.knows_tools and "tools" in variables

    def render(
        self,
        messages: list[dict[str, Any]],
        tools: list[dict[str, Any]] | None = None,
        *,
        continued: bool = False,
    ) -> str:
        """Write the prompt up to where the assistant speaks, or goes on if ``continued``.

        Raises:
            BadRequest: the template refuses these messages.
        """
        try:
            text = self._template.render(
                messages=messages,
                tools=tools or None,
                documents=None,
                add_generation_prompt=not continued,
                **self._special_tokens,
            )
        except _FAULTS as error:
            raise BadRequest(
                f"the model's chat template cannot render these messages: {error}",
                param="messages",
            ) from error
        return _open_ended(text, messages[-1]["content"]) if continued else text


def _open_ended(text: str, last: str) -> str:
    """Cut a rendered chat behind the text of its last message."""
    kept = last.rstrip() or last
    start = text.rfind(kept.lstrip())
    if not kept or start < 0:
        raise BadRequest("the model's chat template cannot be continued here", param="messages")
    return text[: start + len(kept.lstrip())] + last[len(kept) :]


class _Generation(jinja2.ext.Extension):
    """Lets ``{% generation %}…{% endgeneration %}`` through, which marks text for training."""

    tags = {"generation"}  # noqa: RUF012  jinja2 declares it so

    def parse(self, parser: jinja2.parser.Parser) -> list[jinja2.nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


def _environment() -> ImmutableSandboxedEnvironment:
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[_Generation, jinja2.ext.loopcontrols]
    )
    environment.filters["tojson"] = _to_json
    environment.globals["raise_exception"] = _raise_exception
    environment.globals["strftime_now"] = _strftime_now
    return environment


def _to_json(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    return json.dumps(
        value,
        ensure_ascii=ensure_ascii,
        indent=indent,
        separators=separators,
        sort_keys=sort_keys,
    )


def _raise_exception(message: str) -> NoReturn:
    raise jinja2.TemplateError(message)


def _strftime_now(pattern: str) -> str:
    return dt.datetime.now().astimezone().strftime(pattern)
