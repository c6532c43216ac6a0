"""Retrieved documents as text of a user message: in front of the question, each under its id."""

import re
from collections.abc import Iterable
from html import escape

from gateway.layout.chunks import Chunk

_TAGS = re.compile(r"<(?=\s*/?\s*documents?\b)", re.IGNORECASE)


def documents_text(chunks: Iterable[Chunk]) -> str:
    """Write documents in the order given; empty without any.

    A tag of ours in a text is written so that it ends or begins no document.

    Source: Anthropic's prompting guide, "Long context prompting tips": documents first, each in
    tags of its own with its source, the question last.
    """
    blocks = [
        f'<document id="{escape(c.chunk_id)}">\n{_TAGS.sub("&lt;", c.text)}\n</document>\n'
        for c in chunks
    ]
    return f"<documents>\n{''.join(blocks)}</documents>\n\n" if blocks else ""
