"""Fetch from the Hugging Face hub with two calls: what a revision holds, and one file of it.

``huggingface_hub`` asks, resumes and writes; here a file is compared with the digest that the hub lists for
it, nothing stays in a cache, and what goes wrong becomes one line with a remedy.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from huggingface_hub import HfApi
from huggingface_hub.errors import (  # type: ignore[attr-defined] # the error of the client that it calls by
    FileMetadataError,
    HfHubHTTPError,
    HFValidationError,
    HTTPError,
    LocalEntryNotFoundError,
)
from huggingface_hub.hf_api import RepoSibling
from huggingface_hub.utils.sha import git_hash
from huggingface_hub.utils.tqdm import tqdm

from truthlens import __version__
from truthlens.core.errors import ModelError
from truthlens.detection.models.fingerprint import sha256_of

DEFAULT_ENDPOINT = "https://huggingface.co"
_COMMIT = re.compile(r"[0-9a-f]{40}")
_REPOSITORY = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*", re.ASCII)
_TIMEOUT_S = 30.0

Progress = Callable[[int], None]
"""Told the number of bytes that came in; a negative one where a transfer begins again."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One revision of a repository: the commit that its name stood for, and its files."""

    repository: str
    commit: str
    files: tuple[RepoSibling, ...]


def listed_digest(file: RepoSibling) -> str | None:
    """Return the hub's own digest of ``file``: SHA-256 for large-file storage, else git's, or ``None``."""
    return file.lfs.sha256 if file.lfs else file.blob_id


class Hub:
    """A Hugging Face hub, or a mirror that speaks its API.

    Args:
        endpoint: base address.
        token: for repositories that are not public; sent to ``endpoint`` and to hosts of Hugging Face alone.
    """

    def __init__(self, endpoint: str = DEFAULT_ENDPOINT, *, token: str | None = None) -> None:
        self._endpoint = endpoint.rstrip("/")
        # Without a token none is sent, not that of a login on this machine either.
        self._api = HfApi(
            self._endpoint, token=token or False, library_name="truthlens", library_version=__version__
        )

    def snapshot(self, repository: str, revision: str = "main") -> Snapshot:
        """Return what ``revision`` (branch, tag or commit) of ``owner/name`` holds.

        Raises:
            ModelError: the name cannot be one, the hub cannot be reached, does not know it, wants a token, or
                answers with something else.
        """
        if not _REPOSITORY.fullmatch(repository):
            raise ModelError(f"{repository} is no repository of a hub; expected OWNER/NAME")
        with self._explained(f"{repository} at {revision}"):
            info = self._api.model_info(
                repository, revision=revision, files_metadata=True, timeout=_TIMEOUT_S
            )
            if info.siblings is None or not _COMMIT.fullmatch(info.sha or ""):
                raise ValueError("the answer names no commit or no files")
        return Snapshot(repository, str(info.sha), tuple(info.siblings))

    def fetch(self, snapshot: Snapshot, file: RepoSibling, folder: Path, *, progress: Progress) -> str:
        """Write ``file`` below ``folder``, under its own name, and compare it with the hub's digest of it.

        Returns:
            Its SHA-256, in hex.

        Raises:
            ModelError: the transfer broke off, or what came in is not what the hub lists.
        """

        class _Reported(tqdm):
            def __init__(self, **options: Any) -> None:
                super().__init__(**{**options, "disable": True})  # type: ignore[no-untyped-call]

            def update(self, n: float | None = 1) -> None:
                progress(int(n or 0))

        with self._explained(f"{file.rfilename} of {snapshot.repository}"):
            self._api.hf_hub_download(
                snapshot.repository,
                file.rfilename,
                revision=snapshot.commit,
                local_dir=folder,
                tqdm_class=_Reported,
            )
        target = folder / file.rfilename
        found = sha256_of(target)
        listed = listed_digest(file)
        if (found if file.lfs else git_hash(target.read_bytes())) != listed:
            raise ModelError(
                f"{file.rfilename} of {snapshot.repository} came in with {target.stat().st_size} bytes and SHA-256 "
                f"{found[:12]}..., the hub lists {file.size} bytes and {(listed or '')[:12]}...; nothing was kept, pull "
                "it again"
            )
        return found

    @contextmanager
    def _explained(self, what: str) -> Iterator[None]:
        """Turn what the library raises while it asks for ``what`` into one line that says what to do."""
        try:
            yield
        except (OSError, HTTPError, ValueError, LookupError, TypeError, AttributeError) as error:
            # For a file, the reason is after "and it is not in the cache either".
            behind = error.__cause__ if isinstance(error, LocalEntryNotFoundError) else None
            raise ModelError(self._problem(what, behind or error)) from error

    def _problem(self, what: str, error: BaseException) -> str:
        match error:
            case HFValidationError():
                return f"{what}: no repository of a hub has such a name; expected OWNER/NAME"
            case HfHubHTTPError() if error.response.status_code in {401, 403}:
                return (
                    f"{self._endpoint} does not show {what} (status {error.response.status_code}); the repository is "
                    "private, gated or not there: check the name, or set HF_TOKEN to a token that may read it"
                )
            case HfHubHTTPError() if error.response.status_code == 404:
                return f"{self._endpoint} has no {what}; check the name and --revision"
            case HfHubHTTPError():
                status = error.response.status_code
                return f"{self._endpoint} answered with status {status} for {what}; try again later"
            case FileMetadataError() | ValueError() | LookupError() | TypeError() | AttributeError():
                return (
                    f"{self._endpoint} does not answer like a Hugging Face hub ({type(error).__name__}); check "
                    "--endpoint (HF_ENDPOINT)"
                )
            case OSError(errno=int()):
                return f"{what} cannot be written: {error.strerror}; make room, or name another folder with --models"
        return (
            f"{self._endpoint} cannot be reached, or broke off ({type(error).__name__}); check the network, or name a "
            "mirror with --endpoint (HF_ENDPOINT)"
        )
