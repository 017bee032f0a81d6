"""A whole deployment for tests: scripted backend, ``truthlens serve`` as a process, and a real Envoy."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx

from tests.fakes.ports import free_port
from tests.integration.support.backend import Backend
from truthlens.core.net import Address, Upstream
from truthlens.envoy.config import EnvoySettings, envoy_config
from truthlens.envoy.ports import is_listening
from truthlens.envoy.process import envoy_binary

PATIENCE_S = 300.0
# How long a patient deployment's health check may take: the cores are shared with other tests, and a sidecar that
# waits for them is not dead. One that is gone, or says so, fails the check at once all the same.
_HEALTH_TIMEOUT = "30s"


def wait_for(condition: Any, what: str) -> None:
    """Wait until ``condition()`` holds; a generous bound that only a fault reaches."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"{what}: not within {PATIENCE_S} s")
        time.sleep(0.05)


class Stack:
    """Starts in ``start``, ends in ``stop``; ``sidecar`` may be killed and started again in between.

    ``patient`` is for tests whose subject is not what happens when the sidecar answers Envoy's health check late.
    """

    def __init__(
        self,
        folder: Path,
        policy: str,
        *,
        backend: Backend | None = None,
        arguments: Sequence[str] = (),
        environ: Mapping[str, str] | None = None,
        patient: bool = False,
        **envoy: Any,
    ) -> None:
        self.folder = folder
        self.arguments = arguments
        self.environ = dict(environ or {})
        self.patient = patient
        # Alone in its folder, which the sidecar watches: logs beside it would wake the watcher with every line.
        self.policy = folder / "policy" / "policy.yaml"
        self.policy.parent.mkdir(exist_ok=True)
        self.policy.write_text(policy)
        self.backend = backend or Backend()
        self.listen, self.extproc, self.health, self.console, self.admin = (
            Address("127.0.0.1", free_port()) for _ in range(5)
        )
        self._options = envoy
        self.sidecar: subprocess.Popen[bytes] | None = None
        self.envoy: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Base URL of the gateway."""
        return f"http://{self.listen}"

    @property
    def console_url(self) -> str:
        """Base URL of the console."""
        return f"http://{self.console}"

    def envoy_settings(self, **envoy: Any) -> None:
        """Change how Envoy is configured when it starts."""
        self._options.update(envoy)

    def start(self, *, wait: bool = True) -> None:
        """Start everything; with ``wait``, until Envoy uses the sidecar."""
        self.backend.start()
        self.start_sidecar()
        settings = EnvoySettings(
            listen=self.listen,
            extproc=[self.extproc],
            health=[self.health],
            upstream=Upstream("127.0.0.1", self.backend.port, tls=False),
            admin=self.admin,
            concurrency=1,
            access_log=str(self.folder / "access.log"),
        )
        config = self.folder / "envoy.json"
        config.write_text(self.bootstrap(replace(settings, **self._options)))
        log = (self.folder / "envoy.log").open("ab")
        self.envoy = subprocess.Popen(
            [envoy_binary(), "-c", str(config), "--log-level", "warning", "--use-dynamic-base-id",
             "--file-flush-interval-msec", "50"],
            stdout=log,
            stderr=log,
        )  # fmt: skip
        log.close()
        wait_for(self._envoy_listens, "Envoy listening")
        if wait:
            self.wait_healthy()

    def bootstrap(self, settings: EnvoySettings) -> str:
        """The text of Envoy's configuration; where a test needs one that no settings give, it has a stack of its own."""
        config = envoy_config(settings)
        checks = [
            check
            for each in config["static_resources"]["clusters"]
            for check in each.get("health_checks", ())
        ]
        for check in checks if self.patient else ():
            check["timeout"] = _HEALTH_TIMEOUT
        return json.dumps(config)

    def _envoy_listens(self) -> bool:
        assert self.envoy is not None
        if self.envoy.poll() is not None:
            raise AssertionError((self.folder / "envoy.log").read_text()[-2000:])
        return is_listening(self.listen)

    def start_sidecar(self) -> None:
        """Start ``truthlens serve`` and wait until it is ready."""
        log = (self.folder / "sidecar.log").open("ab")
        self.sidecar = subprocess.Popen(
            [sys.executable, "-m", "truthlens", "serve", "--config", str(self.policy), "--extproc", str(self.extproc),
             "--console", str(self.console), "--workers", "2", "--desk", "--drain-notice", "2.5",
             "--upstream", f"http://127.0.0.1:{self.backend.port}", *self.arguments],
            stdout=log,
            stderr=log,
            env={**os.environ, "TRUTHLENS_LOG_LEVEL": "info", "TRUTHLENS_HEALTH": str(self.health), **self.environ},
        )  # fmt: skip
        log.close()
        wait_for(self._ready, "sidecar ready")

    def _ready(self) -> bool:
        assert self.sidecar is not None
        if self.sidecar.poll() is not None:
            raise AssertionError((self.folder / "sidecar.log").read_text()[-4000:])
        try:
            return httpx.get(f"{self.console_url}/readyz").status_code == 200
        except httpx.TransportError:
            return False

    def wait_healthy(self, healthy: bool = True) -> None:
        """Wait until Envoy's health check agrees."""
        wait_for(
            lambda: self.stat("cluster.truthlens.membership_healthy") == int(healthy), "Envoy's health check"
        )

    def stat(self, name: str) -> int:
        """One of Envoy's counters or gauges."""
        stats = httpx.get(
            f"http://{self.admin}/stats", params={"filter": f"^{name}$", "format": "json"}
        ).json()["stats"]
        return next((s["value"] for s in stats if s.get("name") == name), 0)

    def kill_sidecar(self, number: int = signal.SIGKILL) -> None:
        """End the sidecar process and wait for it."""
        assert self.sidecar is not None
        self.sidecar.send_signal(number)
        self.sidecar.wait(60)

    def stop(self) -> None:
        for process in (self.envoy, self.sidecar):
            if process is not None and process.poll() is None:
                process.kill()
                process.wait(20)
        self.backend.stop()

    # --- requests -----------------------------------------------------------------------------------------

    def post(
        self, body: Any, *, path: str = "/v1/chat/completions", headers: dict[str, str] | None = None
    ) -> httpx.Response:
        """POST JSON (or bytes as they are) through the gateway; content-encoding is decoded by httpx."""
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        merged = {"content-type": "application/json", **(headers or {})}
        return httpx.post(f"{self.url}{path}", content=content, headers=merged, timeout=60)

    def access_log(self) -> list[dict[str, Any]]:
        """Envoy's access log so far."""
        path = self.folder / "access.log"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def log_lines(self) -> list[dict[str, Any]]:
        """The sidecar's structured log so far."""
        lines = (self.folder / "sidecar.log").read_text().splitlines()
        return [json.loads(line) for line in lines if line.startswith("{")]
