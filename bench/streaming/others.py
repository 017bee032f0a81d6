"""Another client beside the streams: short JSON exchanges, one after the other, from a process of its own."""

from __future__ import annotations

import http.client
import json
import select
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

from bench.streaming.report import spread
from bench.streaming.texts import REQUEST, SENTENCE_WORDS

_EVERY_S = 0.1
_PATIENCE_S = 60.0


class Others:
    """Sends exchanges to a gateway until left."""

    def __init__(self, url: str) -> None:
        self._command = [sys.executable, "-m", "bench.streaming.others", url]
        self._process: subprocess.Popen[str] | None = None
        self._taken: list[dict[str, Any]] = []

    @property
    def count(self) -> int:
        """How many exchanges there were."""
        return len(self._taken)

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[2],
        )
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process is not None
        said, _ = self._process.communicate("\n", timeout=2 * _PATIENCE_S)
        self._taken = [json.loads(line) for line in said.splitlines()]

    def figures(self) -> dict[str, Any]:
        """Return the times in milliseconds, and how many had which end."""
        return {
            "ms": spread([each["ms"] for each in self._taken]),
            "ends": dict(Counter(each["end"] for each in self._taken)),
        }


def main(url: str) -> None:
    """Exchange until a line comes on standard input."""
    place = urlsplit(url)
    headers = {
        "content-type": "application/json",
        "x-domain": "json",
        "x-bench": json.dumps({"tokens": SENTENCE_WORDS}),
    }
    connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=_PATIENCE_S)
    while True:
        began = time.monotonic()
        connection.request("POST", "/v1/chat/completions", json.dumps(REQUEST), headers)
        response = connection.getresponse()
        response.read()
        took = time.monotonic() - began
        said = [response.getheader(f"x-truthlens-{name}") for name in ("status", "reason")]
        end = " ".join(each for each in (str(response.status), *said) if each)
        print(json.dumps({"ms": took * 1000, "end": end}), flush=True)
        if select.select([sys.stdin], [], [], max(0.0, _EVERY_S - took))[0]:
            return


if __name__ == "__main__":
    main(sys.argv[1])
