"""Follow a policy file and recompile it when its contents, or those of its threshold records, change.

The folder is watched and not the file, since editors write a new file and rename it, and Kubernetes swaps a
symbolic link next to it. Contents are compared by hash, so that touching the file does nothing. A record in
another folder is noticed by the regular second look.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

from watchfiles import awatch

from truthlens.core.errors import PolicyError
from truthlens.policy.compile import load_policy, version_now, version_of
from truthlens.policy.plans.record_files import Identify
from truthlens.policy.policy import Policy

_DEBOUNCE_MS = 200
# Some file systems report no events; looking again now and then finds what they kept to themselves.
_LOOK_AGAIN_MS = 2000
# Who removes or empties the file before writing the new one is given this long.
_GRACE_S = 0.3
_EMPTY = version_of("")


async def watch(
    path: Path,
    *,
    reload: Callable[[Policy], Awaitable[None]],
    failed: Callable[[PolicyError], Awaitable[None]],
    loaded: str | None = None,
    model_exists: Callable[[str], bool] | None = None,
    identify: Identify | None = None,
) -> None:
    """Call ``reload`` with each new policy, or ``failed`` if the new contents cannot be used.

    Args:
        path: the policy file.
        reload: takes the new policy.
        failed: takes what is wrong; once for the same contents. Whatever ``reload`` raises is such a fault as
            well.
        loaded: ``version`` of the policy in force; left out, the contents at the start count as loaded.
        model_exists: as in ``compile_policy``.
        identify: as in ``compile_policy``.
    """
    seen = loaded if loaded is not None else await _version(path)
    async for _ in changes(path.parent):
        version = await _version(path)
        if version in (None, _EMPTY):
            await asyncio.sleep(_GRACE_S)
            version = await _version(path)
        if version == seen:
            continue
        seen = version
        try:
            policy = await asyncio.to_thread(load_policy, path, model_exists=model_exists, identify=identify)
            seen = policy.version
            await reload(policy)
        except PolicyError as error:
            await failed(error)
        except Exception as error:  # noqa: BLE001 - the stage border: no edit may end the process
            # The type alone: a message may quote what a key or an address in the file is.
            await failed(PolicyError(f"{path}: could not be put in force ({type(error).__name__})"))


async def changes(folder: Path) -> AsyncIterator[None]:
    """Yield when something in ``folder`` may have changed."""
    while True:
        # Where the folder cannot be watched (it is gone, no watches are left), looking now and then is what
        # remains.
        with contextlib.suppress(OSError, RuntimeError):
            async for _ in awatch(
                folder,
                watch_filter=None,
                debounce=_DEBOUNCE_MS,
                rust_timeout=_LOOK_AGAIN_MS,
                yield_on_timeout=True,
                recursive=False,
            ):
                yield
        yield
        await asyncio.sleep(_LOOK_AGAIN_MS / 1000)


async def _version(path: Path) -> str | None:
    """Return the version of what would be loaded now; ``None`` if the file cannot be read.

    Off the event loop: a slow disk or a large file holds up no request.
    """
    try:
        return await asyncio.to_thread(version_now, path)
    except Exception:  # noqa: BLE001 - loading it says what is wrong
        return None
