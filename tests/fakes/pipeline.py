"""A pipeline that gives a prepared answer, for tests of what stands in front of it."""

from typing import Self

from gateway.answer import Answer, Choice
from gateway.backends.base import Usage
from gateway.call import CacheReport, Call
from gateway.record import RequestRecord
from gateway.reply import Reply
from semantic_layer import CacheQuery, Judgement


def answer(text: str = "Paris.", reason: str = "stop") -> Answer:
    return Answer([Choice(0, reason, text)], Usage(12, 2, 4))


class _Unwatched:
    """Stands where the pipeline keeps its clock."""

    def saw(self, event: object) -> None:
        return

    def completed(self, usage: Usage) -> None:
        return

    def aborted(self) -> None:
        return

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return


class FakePipeline:
    """Answers every call alike and remembers the calls; raises `error` instead when it is set."""

    def __init__(
        self,
        given: Answer | None = None,
        report: CacheReport | None = None,
        error: Exception | None = None,
    ) -> None:
        self.given = given or answer()
        self.report = report or CacheReport("miss", Judgement())
        self.error = error
        self.calls: list[Call] = []
        self.records: list[RequestRecord] = []

    @property
    def call(self) -> Call:
        return self.calls[-1]

    async def run(self, call: Call) -> Reply:
        self.calls.append(call)
        if self.error is not None:
            raise self.error
        return Reply(self.report, self.given, _Unwatched())  # type: ignore[arg-type]

    def query(self, call: Call) -> CacheQuery:
        return CacheQuery(call.tenant.name, call.model, "", call.body, namespace=call.namespace)
