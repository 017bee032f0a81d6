"""Follows a policy file and compiles it anew when its contents, or those of its threshold records, change.

The folder is watched and not the file, since editors write a new file and rename it, and Kubernetes
swaps a symbolic link beside it. Contents are compared by hash, so that touching the file does nothing.
A record in another folder is noticed by the regular second look.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

from watchfiles import awatch

from truthlens.policy.calibrated import Identify
from truthlens.policy.compile import load_policy, version_now
from truthlens.policy.diagnostics import InvalidPolicyError
from truthlens.policy.plan import Policy

_DEBOUNCE_MS = 200
# Some file systems report no events; looking again now and then finds what they kept to themselves.
_LOOK_AGAIN_MS = 2000
# An editor that removes the file before it writes the new one is given this long.
_GRACE_S = 0.3


async def watch(
    path: Path,
    *,
    reload: Callable[[Policy], Awaitable[None]],
    failed: Callable[[InvalidPolicyError], Awaitable[None]],
    loaded: str | None = None,
    model_exists: Callable[[str], bool] | None = None,
    identify: Identify | None = None,
) -> None:
    """Call ``reload`` with each new policy, or ``failed`` where the new contents cannot be used; until cancelled.

    Args:
        path: the policy file.
        reload: takes the new policy.
        failed: takes what is wrong; once for the same contents.
        loaded: ``version`` of the policy in force; left out, the contents at the start count as loaded.
        model_exists: as in ``compile_policy``.
        identify: as in ``compile_policy``.
    """
    seen = loaded if loaded is not None else _version(path)
    async for _ in _changes(path.parent):
        version = _version(path)
        if version is None:
            await asyncio.sleep(_GRACE_S)
            version = _version(path)
        if version == seen:
            continue
        seen = version
        try:
            # Off the event loop: telling which model a folder holds may hash its weights.
            policy = await asyncio.to_thread(load_policy, path, model_exists=model_exists, identify=identify)
        except InvalidPolicyError as error:
            await failed(error)
        else:
            seen = policy.version
            await reload(policy)


async def _changes(folder: Path) -> AsyncIterator[None]:
    """Yields when something in ``folder`` may have changed."""
    while True:
        with contextlib.suppress(FileNotFoundError):
            async for _ in awatch(
                folder,
                watch_filter=None,
                debounce=_DEBOUNCE_MS,
                rust_timeout=_LOOK_AGAIN_MS,
                yield_on_timeout=True,
                recursive=False,
            ):
                yield
        # The folder itself was removed or replaced.
        yield
        await asyncio.sleep(_LOOK_AGAIN_MS / 1000)


def _version(path: Path) -> str | None:
    """The version of what would be loaded now, ``None`` where the file cannot be read."""
    try:
        return version_now(path)
    except InvalidPolicyError:
        return None
