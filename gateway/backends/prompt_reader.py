"""Chat requests as the prompts that a local model gets. Knows texts and ids, no engine."""

from typing import Any

from gateway.backends.context import too_long
from gateway.backends.explanation import Prompt
from gateway.backends.generated_ids import GeneratedIds
from gateway.backends.history import read_history
from gateway.backends.plan import Plan, read_plan
from gateway.backends.recent_prompts import digest_turns
from gateway.backends.tokenizer import Tokenizer
from gateway.backends.tool_format import FORMATS, ToolParserName, recognise
from gateway.backends.tool_prompt import with_tools
from gateway.errors import BadRequest
from prefix_layer import Ready

QUICKLY_READ = 1 << 18  # characters


class PromptReader:
    """Reads requests with one model's template and tokenizer; thread-safe.

    ``form`` is how the model writes tool calls, ``markers`` are the special tokens it does so with.
    """

    def __init__(self, tokenizer: Tokenizer, tool_parser: ToolParserName | None = None) -> None:
        template = tokenizer.template
        known = recognise("" if template is None else template.source)
        self.tokenizer = tokenizer
        self.generated = GeneratedIds(tokenizer)
        self.form = known if tool_parser is None else FORMATS[tool_parser]
        self.markers = tokenizer.special_ids("".join(self.form.markers))

    def read(
        self, body: dict[str, Any], salt: bytes, ready: Ready | None = None
    ) -> tuple[Plan, Prompt]:
        """Return how the answer is to be made, and the prompt.

        What is huge and can't fit the engine's context is refused unread, if it is ``ready``.

        Raises:
            BadRequest: the request cannot be served as it is; names the field.
            ContextTooLong: the prompt can't fit.
        """
        plan = read_plan(body, self.form, self.markers)
        template = self.tokenizer.template
        knows_tools = template is not None and template.knows_tools
        history = read_history(body.get("messages"), knows_tools=knows_tools)
        if ready is not None:
            self._refuse_huge(history, ready)
        if plan.tools and not (template is not None and template.shows_tools):
            history = with_tools(history, plan.tools)
        text = self.tokenizer.render(history, plan.tools, continued=_is_continued(body, history))
        token_ids = self.generated.encode(salt, text)
        roles = tuple(str(message["role"]) for message in history)
        return plan, Prompt(text, token_ids, roles, digest_turns(history))

    def _refuse_huge(self, history: list[dict[str, Any]], ready: Ready) -> None:
        """Count what a template surely shows: of what an assistant said some leave parts out."""
        said = [message["content"] for message in history if message["role"] != "assistant"]
        if sum(map(len, said)) > QUICKLY_READ or len(said) >= ready.context_length:
            least = sum(map(self.tokenizer.least_tokens, said))
            if least >= ready.context_length:
                raise too_long(f"at least {least}", ready)


def _is_continued(body: dict[str, Any], history: list[dict[str, Any]]) -> bool:
    """Say whether the answer goes on with the last message, as vLLM and SGLang name it."""
    if body.get("continue_final_message") is not True:
        return False
    last = history[-1]
    if last["role"] != "assistant" or last.get("tool_calls") or not last["content"].strip():
        raise BadRequest(
            "continue_final_message needs a text of the assistant as the last message",
            param="continue_final_message",
        )
    return True
