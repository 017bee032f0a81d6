"""Take out of a frame what its lines beside the data say: event types, ids, comments, lines of no known field.

No client shows them, and every client that keeps them has them. So they pass as members of a chunk do: by what they are.
"""

from __future__ import annotations

import re

from truthlens.api.members.filter import Members

_NAME = re.compile(rb"(data|event|id|retry)(?::|$)")

# The members of a chunk that are as each of them.
_MEMBERS = {"event": "object", "id": "id", "retry": "usage", "": "name"}


def without_asides(raw: bytes, members: Members, *, lead: int = 0) -> bytes:
    """Return frames without the text that stands beside their data, as ``members`` let it through; ``raw`` itself where all of it may leave.

    A comment stays as a line, for it keeps a connection alive.

    Args:
        raw: Whole frames, or the end of one.
        members: Of the stream.
        lead: Bytes before the first line.
    """
    if raw.startswith(b"data:", lead) and raw.find(b"\n", lead) >= len(raw) - 2:
        # Nearly all frames: one line of data.
        return raw
    lines = raw[lead:].splitlines(keepends=True)
    kept = [_kept(line, members) for line in lines]
    return raw if kept == lines else raw[:lead] + b"".join(kept)


def _kept(line: bytes, members: Members) -> bytes:
    bare = line.rstrip(b"\r\n")
    known = _NAME.match(bare)
    name = known[1].decode() if known is not None else ""
    if not bare or name == "data":
        return line
    value = bare[known.end() :] if known is not None else bare.lstrip(b":")
    text = value.decode(errors="replace").strip()
    if not text or members.leaves_beside(_MEMBERS[name], text):
        return line
    return b":" + line[len(bare) :] if bare.startswith(b":") else b""
