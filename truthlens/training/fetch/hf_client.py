"""The few calls of the Hugging Face hub that fetching a model takes: what a revision holds, and one file of it.

Plain HTTP, so that fetching works in an installation that serves ONNX models alone, keeps no second copy in a cache,
and every byte is hashed on its way to disk. It writes only the file that it is told to.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx

from truthlens.core.errors import ModelError

DEFAULT_ENDPOINT = "https://huggingface.co"
_COMMIT = re.compile(r"[0-9a-f]{40}")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_REPOSITORY = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*", re.ASCII)
_TIMEOUT = httpx.Timeout(30.0, connect=10.0)
_SECRET_NEEDED = frozenset({401, 403})

Progress = Callable[[int], None]
"""Told the number of bytes that came in."""


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """One file of a revision. ``sha256`` is there for files in large-file storage, ``git_id`` for the others."""

    name: str
    size: int
    sha256: str | None
    git_id: str | None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One revision of a repository: the commit that its name stood for, and its files."""

    repository: str
    commit: str
    files: tuple[RemoteFile, ...]


class Hub:
    """A Hugging Face hub, or a mirror that speaks its API.

    Args:
        endpoint: base address.
        token: for repositories that are not public; sent to ``endpoint`` alone.
        transport: how requests travel; left out, over the network.
    """

    def __init__(
        self,
        endpoint: str = DEFAULT_ENDPOINT,
        *,
        token: str | None = None,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self._endpoint = endpoint.rstrip("/")
        headers = {"user-agent": "truthlens", "accept-encoding": "identity"}
        if token:
            headers["authorization"] = f"Bearer {token}"
        # httpx drops the authorization header where a redirect leads to another host.
        self._client = httpx.Client(
            headers=headers, timeout=_TIMEOUT, transport=transport, follow_redirects=True
        )

    def snapshot(self, repository: str, revision: str = "main") -> Snapshot:
        """What ``revision`` (branch, tag or commit) of ``owner/name`` holds.

        Raises:
            ModelError: the name cannot be one, the hub cannot be reached, does not know it, wants a token, or
                answers with something else.
        """
        if not _REPOSITORY.fullmatch(repository):
            raise ModelError(f"{repository} is no repository of a hub; expected OWNER/NAME")
        address = f"{self._endpoint}/api/models/{repository}/revision/{quote(revision, safe='')}"
        try:
            response = self._client.get(address, params={"blobs": "true"})
        except httpx.HTTPError as error:
            raise self._unreachable(error) from error
        self._check(response.status_code, f"{repository} at {revision}")
        try:
            return _snapshot(repository, response.json())
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ModelError(
                f"{self._endpoint} does not answer like a Hugging Face hub ({type(error).__name__}); "
                "check --endpoint (HF_ENDPOINT)"
            ) from error

    def fetch(self, snapshot: Snapshot, file: RemoteFile, target: Path, *, progress: Progress) -> str:
        """Write ``file`` to ``target`` and compare it with the hub's own digest of it.

        Returns:
            Its SHA-256, in hex.

        Raises:
            ModelError: the transfer broke off, or what came in is not what the hub lists.
        """
        address = (
            f"{self._endpoint}/{snapshot.repository}/resolve/{snapshot.commit}/{quote(file.name, safe='/')}"
        )
        sha256 = hashlib.sha256()
        git = hashlib.sha1(f"blob {file.size}\0".encode(), usedforsecurity=False)
        received = 0
        try:
            with self._client.stream("GET", address) as response, target.open("wb") as out:
                self._check(response.status_code, f"{file.name} of {snapshot.repository}")
                for chunk in response.iter_bytes(1 << 20):
                    out.write(chunk)
                    sha256.update(chunk)
                    git.update(chunk)
                    received += len(chunk)
                    progress(len(chunk))
        except httpx.HTTPError as error:
            raise self._unreachable(error) from error
        found = sha256.hexdigest()
        same = found == file.sha256 if file.sha256 else git.hexdigest() == file.git_id
        if received != file.size or not same:
            raise ModelError(
                f"{file.name} of {snapshot.repository} came in with {received} bytes and SHA-256 {found[:12]}..., "
                f"the hub lists {file.size} bytes and {(file.sha256 or file.git_id or '')[:12]}...; nothing was "
                "kept, pull it again"
            )
        return found

    def _check(self, status: int, what: str) -> None:
        if status in _SECRET_NEEDED:
            raise ModelError(
                f"{self._endpoint} does not show {what} (status {status}); the repository is private, gated or "
                "not there: check the name, or set HF_TOKEN to a token that may read it"
            )
        if status == httpx.codes.NOT_FOUND:
            raise ModelError(f"{self._endpoint} has no {what}; check the name and --revision")
        if not httpx.codes.is_success(status):
            raise ModelError(f"{self._endpoint} answered with status {status} for {what}; try again later")

    def _unreachable(self, error: httpx.HTTPError) -> ModelError:
        return ModelError(
            f"{self._endpoint} cannot be reached, or broke off ({type(error).__name__}); check the network, or "
            "name a mirror with --endpoint (HF_ENDPOINT)"
        )


def _snapshot(repository: str, content: dict[str, Any]) -> Snapshot:
    commit = str(content["sha"])
    if not _COMMIT.fullmatch(commit):
        raise ValueError("sha is no commit")
    return Snapshot(repository, commit, tuple(_file(entry) for entry in content["siblings"]))


def _file(entry: dict[str, Any]) -> RemoteFile:
    large = entry.get("lfs") or {}
    sha256, git_id = large.get("sha256"), entry.get("blobId")
    return RemoteFile(
        name=str(entry["rfilename"]),
        size=int(entry.get("size") or large.get("size") or 0),
        sha256=sha256 if isinstance(sha256, str) and _SHA256.fullmatch(sha256) else None,
        git_id=git_id if isinstance(git_id, str) and _COMMIT.fullmatch(git_id) else None,
    )
