"""A model hub of one repository on a local port: the two endpoints that fetching takes, and ways to misbehave."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@dataclass
class FakeHub:
    """What the hub holds and how it behaves; tests change it between requests.

    ``large`` are the names in large-file storage (listed with a SHA-256, the others with a git id). ``listed``
    replaces digests in the listing; ``cut`` are files whose transfer ends early; ``missing`` are listed but not held.
    """

    repository: str
    files: dict[str, bytes]
    large: set[str] = field(default_factory=set)
    listed: dict[str, str | None] = field(default_factory=dict)
    cut: set[str] = field(default_factory=set)
    missing: set[str] = field(default_factory=set)
    token: str | None = None
    listing: bytes | None = None
    endpoint: str = ""
    requests: list[str] = field(default_factory=list)

    def describe(self) -> dict[str, Any]:
        """The answer to a question for a revision, in the hub's own shape."""
        return {
            "id": self.repository,
            "sha": COMMIT,
            "siblings": [self._entry(name, content) for name, content in self.files.items()],
        }

    def _entry(self, name: str, content: bytes) -> dict[str, Any]:
        git = hashlib.sha1(f"blob {len(content)}\0".encode() + content, usedforsecurity=False).hexdigest()
        entry: dict[str, Any] = {
            "rfilename": name,
            "size": len(content),
            "blobId": self.listed.get(name, git),
        }
        if name in self.large:
            sha256 = self.listed.get(name, hashlib.sha256(content).hexdigest())
            entry["blobId"] = "f" * 40  # of the pointer file, as on the real hub
            entry["lfs"] = {"sha256": sha256, "size": len(content), "pointerSize": 134}
        return entry


@contextmanager
def serving(hub: FakeHub) -> Iterator[FakeHub]:
    """``hub`` on a free local port, its address in ``hub.endpoint``."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = unquote(urlsplit(self.path).path)
            hub.requests.append(path)
            if hub.token is not None and self.headers.get("authorization") != f"Bearer {hub.token}":
                self._answer(401, b"{}")
            elif path.startswith(f"/api/models/{hub.repository}/revision/"):
                known = path.rpartition("/")[2] in {"main", "v1", COMMIT}
                content = hub.listing or json.dumps(hub.describe()).encode()
                self._answer(200 if known else 404, content if known else b"{}")
            elif path.startswith(f"/{hub.repository}/resolve/{COMMIT}/"):
                name = path.removeprefix(f"/{hub.repository}/resolve/{COMMIT}/")
                held = name in hub.files and name not in hub.missing
                self._answer(200 if held else 404, hub.files.get(name, b""), cut=name in hub.cut)
            else:
                self._answer(404, b"{}")

        def _answer(self, status: int, content: bytes, *, cut: bool = False) -> None:
            self.send_response(status)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content[: len(content) // 2] if cut else content)

        def log_message(self, *_: Any) -> None:
            """Nothing: tests read ``hub.requests``."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    hub.endpoint = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
