"""Keep the replies of models in a file, and answer from it: for commands that are run more than once on the same answers."""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path

import httpx

from truthlens.core.errors import TruthLensError


class RecordingError(TruthLensError):
    """A file of recorded replies cannot be used; the message names it."""


class RecordedTransport(httpx.AsyncBaseTransport):
    """Answers what was asked before from a file, and keeps what is asked for the first time.

    A reply is known by the path and the body of its request, not by the host. Only replies with status 200 are kept:
    a refusal or a failure is asked again.

    Args:
        file: JSON lines ``{"key", "body"}``; made where it is missing.
        network: what sends new requests; ``None``: they fail, as to a server that is not there.

    Raises:
        RecordingError: the file is no such file.
    """

    def __init__(self, file: Path, network: httpx.AsyncBaseTransport | None) -> None:
        self._file = file
        self._network = network
        self._replies = _read(file)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Return the reply that is kept, or the network's."""
        content = await request.aread()
        key = hashlib.sha256(request.url.raw_path + b"\n" + content).hexdigest()
        kept = self._replies.get(key)
        if kept is not None:
            return _reply(kept)
        if self._network is None:
            raise httpx.ConnectError(f"no reply is recorded in {self._file}", request=request)
        response = await self._network.handle_async_request(request)
        if response.status_code != httpx.codes.OK or request.method != "POST":
            return response
        body = await response.aread()
        await response.aclose()
        self._replies[key] = body
        with self._file.open("a", encoding="ascii") as out:
            out.write(json.dumps({"key": key, "body": base64.b64encode(body).decode("ascii")}) + "\n")
        return _reply(body)

    async def aclose(self) -> None:
        """Close the network's connections."""
        if self._network is not None:
            await self._network.aclose()


def _reply(body: bytes) -> httpx.Response:
    return httpx.Response(httpx.codes.OK, headers={"content-type": "application/json"}, content=body)


def _read(file: Path) -> dict[str, bytes]:
    if not file.exists():
        return {}
    found: dict[str, bytes] = {}
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), start=1):
        try:
            row = json.loads(line)
            found[row["key"]] = base64.b64decode(row["body"], validate=True)
        except (ValueError, TypeError, KeyError) as error:
            raise RecordingError(f"{file}, line {number}: not a recorded reply; name another file") from error
    return found
