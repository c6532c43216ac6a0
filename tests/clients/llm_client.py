"""llm as its documentation shows, library and tool."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import llm
from llm.default_plugins.openai_models import Chat

from tests.clients.face import KEY, MAX_TOKENS, PARAMETERS, Call, City, OpenAIErrors

# Ctrl-C works in the tool though the tests may have been started where it is ignored (sh's `&`).
_TOOL = (
    "import runpy, signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    "runpy.run_module('llm', run_name='__main__')"
)


class LlmClient(OpenAIErrors):
    """llm with an OpenAI-compatible endpoint."""

    def __init__(self, url: str) -> None:
        self._url = url

    def _model(self, model: str) -> Any:
        return Chat(
            model,
            key=KEY,
            model_name=model,
            api_base=f"{self._url}/v1",
            supports_schema=True,
            supports_tools=True,
        )

    def ask(self, model: str, text: str) -> str:
        made = self._model(model)
        return made.prompt(text, stream=False, temperature=0, max_tokens=MAX_TOKENS).text()

    def stream(self, model: str, text: str) -> list[str]:
        made = self._model(model)
        pieces = made.prompt(text, stream=True, temperature=0, max_tokens=MAX_TOKENS)
        return [piece for piece in pieces if piece]

    def call_tool(self, model: str, text: str) -> tuple[Call, str]:
        made: list[Call] = []

        def weather(city: str) -> str:
            made.append(("weather", {"city": city}))
            return "21"

        # llm leaves the choice to the model, and a small one may just answer.
        tools = [llm.Tool("weather", "Tell the weather.", PARAMETERS, weather)]
        chain = self._model(model).chain(
            text, tools=tools, stream=False, options={"max_tokens": 80, "temperature": 0}
        )
        answer = chain.text()
        return made[0] if made else ("weather", {"city": "not called"}), answer

    def structured(self, model: str, text: str) -> dict[str, Any]:
        answer = self._model(model).prompt(text, schema=City, stream=False, temperature=0)
        return City.model_validate_json(answer.text()).model_dump()

    def leave(self, model: str, text: str) -> str:
        """Press Ctrl-C on the tool: its library keeps a connection that nobody reads."""
        with tempfile.TemporaryDirectory() as folder:
            known = {"model_id": model, "model_name": model, "api_base": f"{self._url}/v1"}
            Path(folder, "extra-openai-models.yaml").write_text(json.dumps([known]))
            with subprocess.Popen(
                [sys.executable, "-c", _TOOL, "-m", model, text, "-o", "max_tokens", "1000"],
                env={
                    **os.environ,
                    "LLM_USER_PATH": folder,
                    "LLM_LOAD_PLUGINS": "",
                    "OPENAI_API_KEY": KEY,
                },
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            ) as tool:
                assert tool.stdout is not None
                piece = tool.stdout.read(1)
                _interrupt(tool)
        return piece.decode(errors="replace")

    def close(self) -> None:
        """The client of each call goes with its model."""


def _interrupt(tool: subprocess.Popen[bytes]) -> None:
    """Press again while it runs: an interrupt inside a finalizer is lost, says Python's manual."""
    while tool.poll() is None:
        tool.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            tool.wait(2)
