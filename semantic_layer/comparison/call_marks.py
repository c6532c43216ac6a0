"""Marks of one call in an answer: ids, hashes, reference numbers, times, URL tokens. Pure.

They differ from call to call though the question is the same, so they tell nothing of it. Knows
shapes and the names that stand before them, no question.
"""

import re

_NOT_INSIDE = r"(?<![A-Za-z0-9])"
_ENDS = r"(?![A-Za-z0-9])"
_DATE = r"\d{4}(?:[-/.]\d{1,2}[-/.]\d{1,2}|年\d{1,2}月\d{1,2}[日号])"
_TIME = r"\d{1,2}[:时点]\d{2}(?:[:分]\d{2}秒?(?:[.,]\d+)?)?"
_ZONE = r"(?:\s?(?:Z|UTC|GMT)|\s?[+-]\d{2}:?\d{2})?"
_MADE = (
    rf"{_NOT_INSIDE}(?:generated|answered|retrieved|time ?stamp|last updated)(?: (?:at|on))?"
    r"|时间戳|時間戳|生成时间|生成時間|生成于|生成於|更新时间|更新時間"
)
_NAMES = (
    r"ref(?:erence|\.)?|(?:support |trouble )?ticket|request|session|trace|correlation|span|case"
    r"|confirmation|transaction|tracking|invoice|receipt|conversation|chat|message|job|run|order"
)
_CHINESE_NAMES = (
    r"(?:工单|订单|流水|会话|请求|追踪|跟踪|跟蹤|追蹤|参考|參考|受理|查询|查詢|确认|確認|交易|凭证|憑證"
    r"|运单|運單|发票|發票|任务|任務|工單|訂單|會話|請求|案件|业务|業務)(?:编号|編號|单号|單號|号码|號碼|号|號|ID|id)"
    r"|(?:编号|編號|单号|單號|流水号|流水號)"
)
_IS = r"\s*(?:is\b|was\b|为|為|是|[:：=#])?\s*[#\"'“‘\[(（【]?\s*"
_NUMBER = r"(?:[ _-]?(?:id|number|no\.|code)|\s?[#:=])"
_VALUE = r"(?=[A-Za-z_-]{0,12}\d)[A-Za-z0-9_-]{3,40}"
_MARKS = re.compile(
    "|".join(
        (
            rf"{_DATE}[T ,，]*{_TIME}{_ZONE}",  # 2026-11-30T12:01:55Z
            rf"\d{{1,2}} [A-Z][a-z]{{2}} \d{{4}} {_TIME}{_ZONE}",
            rf"(?:{_MADE}){_IS}(?:{_DATE}[T ,，]*{_TIME}{_ZONE}|{_DATE}|{_TIME}|\d{{9,16}})",
            r"(?<=[?&])[\w.~-]{1,40}=(?=[^&\s#]*\d)[^&\s#)\"'<>]{6,}",  # of a URL
            rf"{_NOT_INSIDE}[0-9A-Fa-f]{{8}}(?:-[0-9A-Fa-f]{{4}}){{3}}-[0-9A-Fa-f]{{12}}{_ENDS}",
            rf"{_NOT_INSIDE}(?:{_NAMES}){_NUMBER}{_IS}{_VALUE}{_ENDS}",
            rf"{_NOT_INSIDE}(?:ref(?:erence|\.)?|ticket) {_VALUE}{_ENDS}",
            rf"{_NOT_INSIDE}(?:id|uuid|guid|nonce|etag)\s*[:=#]\s*{_VALUE}{_ENDS}",
            rf"(?:{_CHINESE_NAMES}){_IS}{_VALUE}{_ENDS}",
            # no word and no number is built like these
            rf"{_NOT_INSIDE}(?=[0-9a-f]*\d[0-9a-f]*\d)(?=\d*[a-f])[0-9a-f]{{7,128}}{_ENDS}",
            rf"{_NOT_INSIDE}(?=[0-9A-F]*\d[0-9A-F]*\d)(?=\d*[A-F])[0-9A-F]{{8,128}}{_ENDS}",
            rf"{_NOT_INSIDE}[A-Za-z]{{2,10}}[_-](?=[A-Za-z]*\d)(?=\d*[A-Za-z])[A-Za-z0-9]{{8,}}{_ENDS}",
            rf"{_NOT_INSIDE}(?:[A-Za-z]+\d+){{3}}[A-Za-z0-9]{{4,}}{_ENDS}",
            rf"{_NOT_INSIDE}(?:\d+[A-Za-z]+){{3}}[A-Za-z0-9]{{4,}}{_ENDS}",
            rf"(?<![\d.,])\d{{10,}}(?<!000)(?![\d,]|\.\d){_ENDS}",  # nor figures without a comma
        )
    ),
    re.IGNORECASE,
)


def without_call_marks(text: str) -> tuple[str, tuple[str, ...]]:
    """Return a text without the marks of its call, and these in order."""
    marks: list[str] = []

    def take(found: re.Match[str]) -> str:
        marks.append(found[0])
        return " "

    return _MARKS.sub(take, text), tuple(marks)
