"""Clocks one server over HTTP: time to first token and tokens a second of streamed chats."""

import http.client
import itertools
import json
import random
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tokenizers import Tokenizer

ANSWER_TOKENS = 12
TURNS = 6
BURST = 4
BATCH = 8
BYPASS = {"Content-Type": "application/json", "Cache-Control": "no-cache, no-store"}


@dataclass(frozen=True, slots=True)
class Timing:
    """One answer: seconds to its first and to its last token, how many there were, the text."""

    first_s: float
    last_s: float
    num_tokens: int
    text: str
    cached_tokens: int | None

    @property
    def tokens_per_s(self) -> float:
        return (self.num_tokens - 1) / (self.last_s - self.first_s)


class Words:
    """Texts of a wanted length in tokens, never the same twice unless asked for by name."""

    def __init__(self, folder: Path) -> None:
        tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        words = {tokenizer.decode([i]) for i in range(2000, tokenizer.get_vocab_size())}
        self._words = sorted(w for w in words if w[:1] == " " and w[1:].isalpha() and w.isascii())
        self._counter = itertools.count()

    def text(self, num_tokens: int, seed: str | None = None) -> str:
        chosen = random.Random(seed or f"{time.time_ns()}-{next(self._counter)}")
        return "".join(chosen.choices(self._words, k=num_tokens)).strip()


def chat(question: str, system: str | None = None) -> list[dict[str, str]]:
    messages = [{"role": "user", "content": question}]
    return messages if system is None else [{"role": "system", "content": system}, *messages]


class EngineClient:
    """Asks one server, each request on its own connection."""

    def __init__(self, url: str, model: str, words: Words) -> None:
        self._host = urlsplit(url).netloc
        self._model = model
        self._words = words

    def ask(self, messages: list[dict[str, str]], max_tokens: int) -> Timing:
        """Stream one greedy answer.

        Raises:
            RuntimeError: the server refused, or broke off.
        """
        body = {
            "model": self._model,
            "messages": messages,
            "max_tokens": max_tokens,
            "temperature": 0,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        connection = http.client.HTTPConnection(self._host, timeout=120)
        try:
            begin = time.perf_counter()
            connection.request("POST", "/v1/chat/completions", json.dumps(body), BYPASS)
            response = connection.getresponse()
            if response.status != http.client.OK:
                raise RuntimeError(f"{response.status}: {response.read(300)!r}")
            return self._read(response, begin)
        finally:
            connection.close()

    def _read(self, response: http.client.HTTPResponse, begin: float) -> Timing:
        pieces: list[str] = []
        times: list[float] = []
        usage: dict[str, Any] = {}
        for line in response:
            if not line.startswith(b"data: {"):
                continue
            now = time.perf_counter() - begin
            chunk = json.loads(line[6:])
            usage = chunk.get("usage") or usage
            for choice in chunk.get("choices") or ():
                text = choice["delta"].get("content")
                if text or (choice.get("finish_reason") and not times):
                    pieces.append(text or "")
                    times.append(now)
        if not times:
            raise RuntimeError("an answer without an end")
        cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens")
        count = usage.get("completion_tokens") or len(times)
        return Timing(times[0], times[-1], count, "".join(pieces), cached)

    def cold_s(self, prompt_tokens: int) -> float:
        """Return the TTFT of a prompt that was never seen."""
        return self.ask(chat(self._words.text(24), self._words.text(prompt_tokens - 40)), 1).first_s

    def warm_s(self, prompt_tokens: int) -> float:
        """Return the TTFT of a prompt of which all but a short question was seen."""
        system = self._words.text(prompt_tokens - 24, "the shared system prompt")
        return self.ask(chat(self._words.text(8), system), 1).first_s

    def turn_s(self) -> float:
        """Return the TTFT of a chat's sixth turn, each turn some 120 tokens."""
        messages: list[dict[str, str]] = []
        for turn in range(TURNS):
            messages += chat(self._words.text(110))
            timing = self.ask(messages, 1 if turn == TURNS - 1 else ANSWER_TOKENS)
            messages.append({"role": "assistant", "content": timing.text})
        return timing.first_s

    def burst_s(self, prompt_tokens: int) -> float:
        """Return the last TTFT of several requests at once that share one new prefix."""
        system = self._words.text(prompt_tokens - 24)
        asked = [chat(self._words.text(8), system) for _ in range(BURST)]
        return max(timing.first_s for timing in self.at_once(asked, 1))

    def decode_rate(self, num_tokens: int) -> float:
        """Return tokens a second of one answer after a short prompt."""
        question = f"Write a very long story about {self._words.text(2)}."
        return self.ask(chat(question), num_tokens).tokens_per_s

    def batch_rate(self, num_tokens: int) -> float:
        """Return tokens a second of several answers at once, their short prompts included."""
        asked = [chat(f"Write a long story about {self._words.text(2)}.") for _ in range(BATCH)]
        timings = self.at_once(asked, num_tokens)
        return sum(t.num_tokens for t in timings) / max(t.last_s for t in timings)

    def at_once(self, asked: list[list[dict[str, str]]], max_tokens: int) -> list[Timing]:
        """Ask everything at the same moment.

        Raises:
            RuntimeError: any of the requests failed.
        """
        with ThreadPoolExecutor(len(asked)) as threads:
            return list(threads.map(lambda messages: self.ask(messages, max_tokens), asked))
