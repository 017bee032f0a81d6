"""A real PostgreSQL of the tests' own, on a free port of loopback, in a temporary folder, run by a user that is not root."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.ports import free_port

PASSWORD = "s3cret-of-the-tests"


def _binaries() -> Path:
    """Return the folder of ``initdb`` and ``postgres``; the test is skipped where there is none."""
    found = shutil.which("initdb")
    folders = [Path(found).resolve().parent] if found else []
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    for folder in folders:
        if (folder / "initdb").exists() and (folder / "postgres").exists():
            return folder
    pytest.skip("needs PostgreSQL's initdb: apt-get install postgresql (what .ci/run does)")


def _other_user() -> dict[str, Any]:
    """Return how a process is started by another user, where this one is root: PostgreSQL refuses to run as root."""
    if os.getuid() != 0:
        return {}
    for name in ("postgres", "nobody"):
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
    pytest.skip("PostgreSQL does not run as root, and there is no user postgres or nobody")


class PostgresServer:
    """One server; its superuser and the databases have the name ``owner`` and the password ``PASSWORD``."""

    def __init__(self) -> None:
        self._binaries = _binaries()
        self._as = _other_user()
        self.port = free_port()
        self._folder = Path(tempfile.mkdtemp(prefix="truthlens-pg-"))
        self._process: subprocess.Popen[bytes] | None = None
        if self._as:
            os.chown(self._folder, self._as["user"], self._as["group"])
        secret = self._folder / "password"
        secret.write_text(PASSWORD)
        secret.chmod(0o644)
        self._run(
            "initdb", "-D", str(self._data), "-U", "owner", "--pwfile", str(secret), "-A", "scram-sha-256", "-E", "UTF8",
            "--locale", "C", "--no-sync",
        )  # fmt: skip

    @property
    def _data(self) -> Path:
        return self._folder / "data"

    def url(self, user: str = "owner", database: str = "postgres") -> str:
        return f"postgresql://{user}:{PASSWORD}@127.0.0.1:{self.port}/{database}"

    def start(self) -> None:
        log = self._folder / "log"
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                [
                    self._binaries / "postgres", "-D", self._data, "-p", str(self.port), "-k", str(self._folder),
                    "-c", "listen_addresses=127.0.0.1", "-c", "fsync=off", "-c", "shared_buffers=16MB", "-c", "max_connections=40",
                ],
                stdout=output, stderr=output, cwd="/", **self._as,
            )  # fmt: skip
        give_up = time.monotonic() + 60.0
        import psycopg

        while True:
            try:
                psycopg.connect(self.url(), connect_timeout=2).close()
            except psycopg.OperationalError:
                assert self._process.poll() is None, log.read_text(errors="replace")[-2000:]
                assert time.monotonic() < give_up, "postgres does not answer"
                time.sleep(0.05)
            else:
                return

    def stop(self) -> None:
        """Stop at once; connections break."""
        if self._process is not None:
            self._process.send_signal(signal.SIGQUIT)
            self._process.wait(30)
            self._process = None

    def freeze(self) -> None:
        """Let every process of the server stand still: connections stay open, and nobody answers."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        children = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children").read_text().split()
        for pid in (self._process.pid, *map(int, children)):
            os.kill(pid, number)

    def remove(self) -> None:
        self.stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _run(self, binary: str, *arguments: str) -> None:
        subprocess.run(
            [self._binaries / binary, *arguments], check=True, capture_output=True, cwd="/", **self._as
        )
