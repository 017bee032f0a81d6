"""Measure the cost of requests without a model's answer: past the sidecar, and passed by the sidecar.

``python -m bench.gateway.passing``: milliseconds from the client's side, one request after the other on one
connection.
"""

from __future__ import annotations

import argparse
import http.client
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tests.integration.support.backend import http as reply
from tests.integration.support.stack import Stack

MODELS = b'{"object": "list", "data": []}'


def asking(port: int, method: str, path: str) -> Callable[[], float]:
    """Return a function that sends a request and returns the milliseconds that it took."""
    connection = http.client.HTTPConnection("127.0.0.1", port)

    def ask() -> float:
        began = time.perf_counter()
        connection.request(method, path, b"{}" if method == "POST" else None)
        response = connection.getresponse()
        assert (response.status, response.read()) == (200, MODELS)
        return (time.perf_counter() - began) * 1000

    return ask


def main() -> None:
    """Measure all ways in turn, so that they share the machine's other load."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--requests", type=int, default=200, help="of each way in a round")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        stack = Stack(Path(folder), "hallucination: {enabled: true}\n")
        stack.backend.reply = lambda _request: reply(MODELS)
        try:
            stack.start()
            gateway, backend = stack.listen.port, stack.backend.port
            ways = {
                "GET /v1/models, backend alone": asking(backend, "GET", "/v1/models"),
                "GET /v1/models, Envoy asks nobody": asking(gateway, "GET", "/v1/models"),
                "POST /v1/embeddings, Envoy asks nobody": asking(gateway, "POST", "/v1/embeddings"),
                "POST /x/embeddings, the sidecar lets it pass": asking(gateway, "POST", "/x/embeddings"),
                "POST /v1/responses, marked unchecked": asking(gateway, "POST", "/v1/responses"),
            }
            taken: dict[str, list[float]] = {name: [] for name in ways}
            for _ in range(options.rounds):
                for name, ask in ways.items():
                    ask()
                    taken[name] += [ask() for _ in range(options.requests)]
        finally:
            stack.stop()
    for name, times in taken.items():
        times.sort()
        print(f"{name:46} p50 {times[len(times) // 2]:.2f} ms   p99 {times[len(times) * 99 // 100]:.2f} ms")


if __name__ == "__main__":
    main()
