"""Raw prompts that a chat template rendered: another template is told by its markup. Pure."""

import re

from prefix_layer import first_edit

WINDOW = 400
NEAR = 2

_MARK = re.compile(
    r"<\|[^|<>]{1,40}\|>|\[/?INST\]|<</?SYS>>|</?s>|<(?:start|end)_of_turn>|<(?:bos|eos)>|"
    r"^#{2,3} ?(?:Instruction|Response|Input|System|User|Assistant|Human)s?:?|"
    r"^(?:System|User|Human|Assistant|AI):",
    re.MULTILINE,
)
_SPACE = re.compile(r"\s+")


def template_differs(here: str, cached: str) -> bool:
    """Say whether two prompts part at the markup of a template while their words agree."""
    edit = first_edit(here, cached)
    if edit is None:
        return False
    ours, theirs = (text[max(0, edit.start - NEAR) :][:WINDOW] for text in (here, cached))
    spans = (edit.here, edit.cached, ours[: NEAR * 2], theirs[: NEAR * 2])
    if not any(_MARK.search(span) for span in spans) and not _is_beside_mark(here, edit.start):
        return False
    a, b = _words(ours), _words(theirs)
    return a[: len(b)] == b[: len(a)] or _without_roles(a, b)


def _is_beside_mark(text: str, start: int) -> bool:
    return any(
        mark.start() - NEAR <= start <= mark.end() + NEAR
        for mark in _MARK.finditer(text, max(0, start - 60), start + 60)
    )


def _words(text: str) -> str:
    return _SPACE.sub("", _MARK.sub("", text))


def _without_roles(a: str, b: str) -> bool:
    """Compare texts of which one writes roles as words where the other has marks only."""
    roles = re.compile("system|user|assistant|human|model", re.IGNORECASE)
    a, b = roles.sub("", a)[: WINDOW // 4], roles.sub("", b)[: WINDOW // 4]
    length = min(len(a), len(b))
    return length > 0 and a[:length] == b[:length]
