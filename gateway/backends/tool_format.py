"""How model families write tool calls in their answers. Pure.

Sources: the chat templates of Qwen2.5-Instruct and Hermes 2 Pro, Llama-3.1-Instruct,
Mistral-7B-Instruct-v0.3 and Mistral-Small-3.2, Llama-4, DeepSeek-V3 and DeepSeek-V3.1.
"""

import os
import secrets
from dataclasses import dataclass
from typing import Literal

ToolParserName = Literal[
    "hermes", "llama3_json", "mistral", "mistral_v11", "pythonic", "deepseek_v3", "deepseek_v31"
]

_ALPHANUMERIC = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
_MISTRAL_ID_CHARS = 9


@dataclass(frozen=True, slots=True)
class ToolFormat:
    """The fixed text around names and arguments.

    ```
    opening (before_name NAME after_name ARGUMENTS after_arguments) separator (…) closing
    ```
    ``trigger`` is the beginning of it by which calls are known: ``anywhere`` in an answer, or only
    at its start. ``python`` arguments are ``key=value`` pairs with JSON values, else a JSON object.
    """

    name: ToolParserName
    trigger: str
    before_name: str
    after_name: str
    after_arguments: str
    opening: str = ""
    separator: str = ""
    closing: str = ""
    anywhere: bool = True
    python: bool = False
    short_ids: bool = False

    @property
    def behind_trigger(self) -> str:
        """What stands between the trigger and the first name."""
        return (self.opening + self.before_name).removeprefix(self.trigger)

    @property
    def markers(self) -> tuple[str, ...]:
        """Every fixed text."""
        return (
            *(self.trigger, self.behind_trigger, self.before_name, self.after_name),
            *(self.after_arguments, self.separator, self.closing),
        )

    def new_id(self) -> str:
        """Return an identity for a call, in a form that the family's template takes back."""
        if self.short_ids:
            return "".join(secrets.choice(_ALPHANUMERIC) for _ in range(_MISTRAL_ID_CHARS))
        return "call_" + os.urandom(12).hex()


FORMATS: dict[ToolParserName, ToolFormat] = {
    known.name: known
    for known in (
        ToolFormat(
            "hermes",
            "<tool_call>",
            before_name='<tool_call>\n{"name": "',
            after_name='", "arguments": ',
            after_arguments="}\n</tool_call>",
            separator="\n",
        ),
        ToolFormat(
            "llama3_json",
            "{",
            before_name='{"name": "',
            after_name='", "parameters": ',
            after_arguments="}",
            separator="; ",
            anywhere=False,
        ),
        ToolFormat(
            "mistral",
            "[TOOL_CALLS]",
            before_name='{"name": "',
            after_name='", "arguments": ',
            after_arguments="}",
            opening="[TOOL_CALLS][",
            separator=", ",
            closing="]",
            short_ids=True,
        ),
        ToolFormat(
            "mistral_v11",
            "[TOOL_CALLS]",
            before_name="[TOOL_CALLS]",
            after_name="[ARGS]",
            after_arguments="",
            short_ids=True,
        ),
        ToolFormat(
            "pythonic",
            "[",
            before_name="",
            after_name="(",
            after_arguments=")",
            opening="[",
            separator=", ",
            closing="]",
            anywhere=False,
            python=True,
        ),
        ToolFormat(
            "deepseek_v3",
            "<｜tool▁calls▁begin｜>",
            before_name="<｜tool▁call▁begin｜>function<｜tool▁sep｜>",
            after_name="\n```json\n",
            after_arguments="\n```<｜tool▁call▁end｜>",
            opening="<｜tool▁calls▁begin｜>",
            separator="\n",
            closing="<｜tool▁calls▁end｜>",
        ),
        ToolFormat(
            "deepseek_v31",
            "<｜tool▁calls▁begin｜>",
            before_name="<｜tool▁call▁begin｜>",
            after_name="<｜tool▁sep｜>",
            after_arguments="<｜tool▁call▁end｜>",
            opening="<｜tool▁calls▁begin｜>",
            closing="<｜tool▁calls▁end｜>",
        ),
    )
}


def recognise(template: str) -> ToolFormat:
    """Return the format that a chat template's text speaks of; hermes where it is silent."""
    if "tool▁calls▁begin" in template:
        return FORMATS["deepseek_v3" if "```json" in template else "deepseek_v31"]
    if "[TOOL_CALLS]" in template:
        return FORMATS["mistral_v11" if "[ARGS]" in template else "mistral"]
    if "<tool_call>" in template:
        return FORMATS["hermes"]
    if "func_name1(" in template:
        return FORMATS["pythonic"]
    if '"parameters":' in template or "<|python_tag|>" in template:
        return FORMATS["llama3_json"]
    return FORMATS["hermes"]
