"""The backend of the soak, a process of its own: answers clients by the case that they name, and models by lot.

    python -m bench.soak.backend PORT SEED

``POST /weather`` with ``good``, ``storm`` or ``down`` says how the models of the modes are: all well, by lot, or refusing.
"""

from __future__ import annotations

import sys
import threading

from bench.soak.exchanges import CASE, FAMILY, KIND, KINDS, NUMBER, marked
from tests.integration.support.backend import Backend, Raw, Received, http
from tests.integration.support.chaos.backend import BEHAVIOURS, ChaosBackend
from tests.integration.support.chaos.stream_backend import StreamChaosBackend

WEATHER = {
    "good": {"good": BEHAVIOURS["good"]},
    "storm": BEHAVIOURS,
    "down": {name: BEHAVIOURS[name] for name in ("never", "late", "error", "dropped", "half")},
}


class SoakBackend(Backend):
    """Asks the backend of each family what to say."""

    def __init__(self, port: int, seed: int) -> None:
        super().__init__(port=port)
        self._models = ChaosBackend(seed)
        self._streams = StreamChaosBackend(seed)
        self.reply = self._reply

    def _reply(self, received: Received) -> Raw:
        self.received.clear()
        headers = received.headers
        if received.path == "/weather":
            self._models.behaviours = WEATHER[received.body.decode()]
            self._models.usual = 0.0 if received.body == b"down" else 0.35
            return http("")
        family = headers.get(FAMILY, "mode")
        if family == "plain":
            return KINDS[headers[KIND]].answer(int(headers[CASE]), marked(int(headers[NUMBER])))
        if received.method == "GET":
            return http('{"object": "list", "data": []}')
        return (self._streams if family == "stream" else self._models).draw(received)


if __name__ == "__main__":
    backend = SoakBackend(int(sys.argv[1]), int(sys.argv[2]))
    backend.start()
    threading.Event().wait()
