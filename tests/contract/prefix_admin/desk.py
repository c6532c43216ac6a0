"""An operator's desk at a gateway, and the prompts that are tried at it."""

from typing import Any

from tests.contract.stack import Stack

RULES = "Answer briefly, cite the manual, never guess numbers and stay polite at all times. " * 3
REGELN = "请简短回答，引用手册，绝不猜测数字，始终保持礼貌。" * 4
OFF = {"cache-control": "no-cache, no-store"}
Json = dict[str, Any]


class Desk:
    """An operator and a user of one gateway with the tiny model."""

    def __init__(self, stack: Stack) -> None:
        self.http = stack.client.http
        self.model = self.http.get("/v1/models").json()["data"][0]["id"]

    def body(self, *messages: Json | str, **fields: Any) -> Json:
        turns = [m if isinstance(m, dict) else user(m) for m in messages]
        return {"model": self.model, "messages": turns, "max_tokens": 1, "temperature": 0, **fields}

    def ask(self, *messages: Json | str, key: str | None = None, **fields: Any) -> Json:
        headers = OFF | ({"authorization": f"Bearer {key}"} if key else {})
        body = self.body(*messages, **fields)
        answer = self.http.post("/v1/chat/completions", json=body, headers=headers)
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    def cached(self, *messages: Json | str, key: str | None = None) -> int:
        usage = self.ask(*messages, key=key)["usage"]
        return int(usage["prompt_tokens_details"]["cached_tokens"])

    def explain(self, *messages: Json | str, **more: Any) -> Json:
        return self.post("explain", {"request": self.body(*messages), **more})

    def warm(self, *requests: Json, **more: Any) -> Json:
        return self.post("warm", {"requests": list(requests), **more})

    def post(self, route: str, body: Json) -> Json:
        answer = self.http.post(f"/admin/prefix/{route}", json=body)
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    def reset(self, **query: Any) -> Json:
        answer = self.http.delete("/admin/prefix", params=query)
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    def stats(self) -> Json:
        return dict(self.http.get("/admin/prefix/stats").json())

    def tree(self, **query: Any) -> Json:
        answer = self.http.get("/admin/prefix/tree", params=query)
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    def computed(self) -> int:
        return int(self.stats()["tokens"]["computed"])


def user(text: str) -> Json:
    return {"role": "user", "content": text}


def system(text: str) -> Json:
    return {"role": "system", "content": text}


def assistant(text: str) -> Json:
    return {"role": "assistant", "content": text}
