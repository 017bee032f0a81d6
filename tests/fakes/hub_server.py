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
    replaces digests in the listing; ``missing`` are listed but not held. A transfer of ``cut`` ends early and
    the hub is then overloaded, one of ``torn`` ends early and can be resumed. ``commit_header`` is what says that a
    file comes from a hub.
    """

    repository: str
    files: dict[str, bytes]
    large: set[str] = field(default_factory=set)
    listed: dict[str, str | None] = field(default_factory=dict)
    cut: set[str] = field(default_factory=set)
    torn: set[str] = field(default_factory=set)
    missing: set[str] = field(default_factory=set)
    token: str | None = None
    listing: bytes | None = None
    endpoint: str = ""
    commit_header: str = "X-Repo-Commit"
    requests: list[str] = field(default_factory=list)
    resumed: set[str] = field(default_factory=set)
    begun: set[str] = field(default_factory=set)
    agents: set[str] = field(default_factory=set)

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
        def do_HEAD(self) -> None:
            self._respond(body=False)

        def do_GET(self) -> None:
            self._respond(body=True)

        def _respond(self, *, body: bool) -> None:
            path = unquote(urlsplit(self.path).path)
            hub.requests.append(path)
            hub.agents.add(self.headers.get("user-agent", ""))
            if hub.token is not None and self.headers.get("authorization") != f"Bearer {hub.token}":
                self._answer(401, b"{}", {"X-Error-Code": "RepoNotFound"}, body=body)
            elif path.startswith(f"/api/models/{hub.repository}/revision/"):
                if path.rpartition("/")[2] in {"main", "v1", COMMIT}:
                    self._answer(200, hub.listing or json.dumps(hub.describe()).encode(), {}, body=body)
                else:
                    self._answer(404, b"{}", {"X-Error-Code": "RevisionNotFound"}, body=body)
            elif path.startswith(f"/{hub.repository}/resolve/{COMMIT}/"):
                self._file(path.removeprefix(f"/{hub.repository}/resolve/{COMMIT}/"), body=body)
            else:
                self._answer(404, b"{}", {}, body=body)

        def _file(self, name: str, *, body: bool) -> None:
            if name not in hub.files or name in hub.missing:
                self._answer(404, b"", {"X-Error-Code": "EntryNotFound"}, body=body)
                return
            content = hub.files[name]
            marks = {hub.commit_header: COMMIT, "ETag": f'"{hashlib.sha256(content).hexdigest()}"'}
            if name in hub.large:
                marks |= {"X-Linked-Etag": marks["ETag"], "X-Linked-Size": str(len(content))}
            start = int(self.headers.get("range", "bytes=0-").removeprefix("bytes=").removesuffix("-"))
            again = body and name in hub.begun
            if again and name in hub.cut:
                self._answer(503, b"", {}, body=body)
                return
            if body:
                hub.begun.add(name)
            if start:
                hub.resumed.add(name)
                marks["Content-Range"] = f"bytes {start}-{len(content) - 1}/{len(content)}"
            cut = not again and name in hub.cut | hub.torn
            self._answer(206 if start else 200, content[start:], marks, body=body, cut=cut)

        def _answer(
            self, status: int, content: bytes, headers: dict[str, str], *, body: bool, cut: bool = False
        ) -> None:
            self.send_response(status)
            for name, value in {"content-length": str(len(content)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            if body:
                self.wfile.write(content[: len(content) * 15 // 16] if cut else content)

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
