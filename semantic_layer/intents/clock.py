"""Questions about the clock, whose answers are wrong a minute later. Pure."""

import re

_PLACE = r"(?: (?:in|at) [\w ,.'-]{1,40})?"
_CLOCK = re.compile(
    r"\bwhat(?:'s| is)? (?:the (?:current |exact |local )?time|(?:current|exact|local) time"
    rf"|time (?:is it|it is))(?: (?:right )?now)?{_PLACE}(?: (?:right )?now)?\W*$"
    rf"|\b(?:current|exact) time{_PLACE}\W*$"
    r"|^\W*(?:请问|你好|那)?[，, ]*(?:\w{0,8}?(?:现在|当前|此刻))?是?"
    r"(?:几点(?:了|钟)?|什么时间|的?时间是?)\W*$",
    re.IGNORECASE,
)


def asks_the_clock(text: str) -> bool:
    """Say whether a text asks what time it is."""
    return bool(_CLOCK.search(text))
