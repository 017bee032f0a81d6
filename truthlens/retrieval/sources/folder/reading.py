"""Read documents in a process of its own, which may be ended: no file holds this one up or takes its memory.

The two talk by lines of JSON over pipes; a request is followed by the bytes of its file. The other process is
given bytes and opens no file.
"""

from __future__ import annotations

import json
import logging
import os
import resource
import subprocess
import sys
import threading
from dataclasses import asdict
from types import TracebackType
from typing import Any, BinaryIO, Self

from truthlens.retrieval.sources.folder.documents import (
    DocumentPiece,
    TitledDocument,
    UnreadableError,
    cut_document,
)
from truthlens.retrieval.sources.folder.formats import read_blocks

_FILE_S = 30.0
_MOST_MEMORY = 2 * 1024**3


class DocumentReader:
    """Reads one document after the other; for one thread, and to be closed.

    Args:
        piece_chars: as in ``cut_document``.
        file_s: seconds after which the reading of a file is given up.
    """

    def __init__(self, piece_chars: int, *, file_s: float = _FILE_S) -> None:
        self._piece_chars, self._file_s = piece_chars, file_s
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._end()

    def read(self, kind: str, data: bytes) -> TitledDocument:
        """Return the document that the bytes of a file are.

        Raises:
            UnreadableError: it cannot be read, within the limits of time and memory.
        """
        process = self._process or self._begin()
        assert process.stdin is not None
        assert process.stdout is not None
        request = {"kind": kind, "bytes": len(data), "piece_chars": self._piece_chars}
        timer = threading.Timer(self._file_s, process.kill)
        timer.start()
        try:
            process.stdin.write(json.dumps(request).encode() + b"\n" + data)
            process.stdin.flush()
            reply = process.stdout.readline()
        except BrokenPipeError:
            reply = b""
        finally:
            timer.cancel()
        if not reply.endswith(b"\n"):
            self._end()
            raise UnreadableError("reading it takes too much time or memory")
        told = json.loads(reply)
        if "reason" in told:
            raise UnreadableError(told["reason"])
        pieces = (DocumentPiece(tuple(each["headings"]), each["text"]) for each in told["pieces"])
        return TitledDocument(told["title"], tuple(pieces))

    def _begin(self) -> subprocess.Popen[bytes]:
        # The same code as this process's, and nothing of the folder that it was started in.
        path = os.pathsep.join(each for each in sys.path if each)
        self._process = subprocess.Popen(  # noqa: S603 - this interpreter, this module
            [sys.executable, "-P", "-m", __name__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": path},
        )
        return self._process

    def _end(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None


def answer(request: dict[str, Any], data: bytes) -> dict[str, Any]:
    """Return the document of a request as JSON, or the ``reason`` why it is none."""
    try:
        blocks, title = read_blocks(request["kind"], data)
        document = asdict(cut_document(blocks, title, request["piece_chars"]))
    except UnreadableError as error:
        return {"reason": str(error)}
    except MemoryError:
        return {"reason": "reading it takes too much time or memory"}
    except RecursionError:
        return {"reason": "it is nested too deeply"}
    except Exception:  # noqa: BLE001 - whatever a library says of a broken file, which may quote it
        return {"reason": "it is broken, or not what its name says"}
    return document


def serve(incoming: BinaryIO, outgoing: BinaryIO) -> None:
    """Answer requests until there are no more."""
    while line := incoming.readline():
        request = json.loads(line)
        reply = answer(request, incoming.read(request["bytes"]))
        outgoing.write(json.dumps(reply).encode() + b"\n")
        outgoing.flush()


if __name__ == "__main__":
    if sys.platform == "linux":  # others refuse this limit
        resource.setrlimit(resource.RLIMIT_AS, (_MOST_MEMORY, _MOST_MEMORY))
    # Libraries warn of broken files and quote them.
    logging.disable()
    serve(sys.stdin.buffer, sys.stdout.buffer)
