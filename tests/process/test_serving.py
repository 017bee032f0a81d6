"""``truthlens serve`` without pages, and ``truthlens desk`` without a gateway, as processes."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.fakes.ports import free_port
from tests.integration.support.stack import wait_for

_ASKED = {"context": "The bridge was opened in 1931.", "query": "When?", "response": "It was opened in 1931."}


_MODULES = 328
"""How many modules of this package a sidecar may import that serves the shipped policy. It only shrinks."""
_UNUSED = (
    "truthlens.desk",
    "truthlens.lab",
    "truthlens.mitigation",
    "truthlens.exchange.mode_runner",
    "truthlens.exchange.callers",
    "truthlens.llm.client",
    "truthlens.llm.caller",
    "truthlens.prompts",
    "truthlens.store.arm_store",
    "truthlens.store.redis_arm_store",
    "truthlens.store.redis_result_cache",
    "truthlens.envoy.config",
    "truthlens.process.questions",
    "truthlens.process.access.logins",
    "truthlens.process.access.sessions",
    "truthlens.process.access.oidc",
    "truthlens.policy.plans.threshold_record",
    "truthlens.policy.plans.fusion_record",
    "truthlens.detection.asking",
    "truthlens.detection.cascade",
    "truthlens.detection.similarity",
    "truthlens.detection.models.torch_runtime",
    *(f"truthlens.detection.detectors.{name}" for name in ("budget", "citations", "judge", "verify")),
    *(
        "httpx",
        "redis",
        "jinja2",
        "itsdangerous",
        "authlib",
        "torch",
        "transformers",
        "sentence_transformers",
    ),
)
_REVIEW = ("truthlens.review", "sqlalchemy")
_LOOP = ("truthlens.exchange.agentic_mode", "truthlens.mitigation.agentic.loop")
_WRITES_MODULES = (
    "import atexit, pathlib, sys; from truthlens.cli import main;"
    "atexit.register(lambda: pathlib.Path(sys.argv[1]).write_text('\\n'.join(sys.modules)));"
    "main(sys.argv[2:])"
)


@contextmanager
def _running(folder: Path, command: str, *words: str) -> Iterator[httpx.Client]:
    console = f"127.0.0.1:{free_port()}"
    extproc = () if command == "desk" else ("--extproc", f"127.0.0.1:{free_port()}", "--drain-notice", "0")
    database = f"sqlite:///{folder / 'reviews.db'}"
    with (folder / "log").open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-c", _WRITES_MODULES, str(folder / "modules"), command, "--console", console, "--review-database", database, *extproc, *words],
            stdout=log,
            stderr=log,
            env=dict(os.environ),
        )  # fmt: skip
    try:
        with httpx.Client(base_url=f"http://{console}", timeout=20.0) as client:

            def ready() -> bool:
                assert process.poll() is None, (folder / "log").read_text()
                try:
                    return client.get("/readyz").status_code == 200
                except httpx.TransportError:
                    return False

            wait_for(ready, f"{command} ready")
            yield client
    finally:
        process.terminate()
        assert process.wait(20) == 0


def test_serve_has_endpoints_and_no_pages_and_imports_what_its_policy_uses(tmp_path: Path) -> None:
    """Probes, metrics and scoring answer; pages, reviews and logins are not there, nor modes, clients of models, Redis, other detectors."""
    with _running(tmp_path, "serve") as client:
        assert client.post("/v1/detect", json=_ASKED).json()["detected"] is False
        refused = client.post("/v1/ask", json={"question": "When?"})
        assert (refused.status_code, "under sources" in refused.json()["error"]["message"]) == (409, True)
        assert client.get("/healthz").status_code == client.get("/metrics").status_code == 200
        for path in ("/", "/reviews", "/api/reviews", "/login", "/playground", "/static/console.css"):
            assert client.get(path).status_code == 404, path
    modules = _imported(tmp_path)
    assert len(_of(modules, ("truthlens",))) <= _MODULES
    assert _of(modules, _UNUSED) == []
    assert _of(modules, _REVIEW) != []


def test_a_sidecar_without_a_queue_imports_no_review(tmp_path: Path) -> None:
    """Neither the package nor the library of its database."""
    with _running(tmp_path, "serve", "--review-database", "none") as client:
        assert client.post("/v1/detect", json=_ASKED).status_code == 200
    assert _of(_imported(tmp_path), (*_UNUSED, *_REVIEW)) == []


def test_desk_has_pages_and_scores_without_a_gateway(tmp_path: Path) -> None:
    """The desk says that it checks no traffic; its playground and review pages work."""
    with _running(tmp_path, "desk") as client:
        assert "checks no traffic" in client.get("/").text
        wait_for(lambda: client.get("/reviews").status_code == 200, "the queue's database")
        for path in ("/decisions", "/playground", "/evidence", "/static/console.css"):
            assert client.get(path).status_code == 200, path
        assert client.post("/v1/detect", json=_ASKED).json()["detected"] is False


@pytest.mark.parametrize("command", ["serve", "desk"])
def test_a_client_that_goes_in_the_middle_of_its_request_is_no_fault(tmp_path: Path, command: str) -> None:
    """Nothing is logged of it, and the next one is answered."""
    paths = ("/v1/detect", "/v1/evidence", "/v1/ask", "/playground/ask", "/api/reviews", "/login")
    with _running(tmp_path, command) as client:
        for path in paths:
            with socket.create_connection((client.base_url.host, client.base_url.port or 80)) as gone:
                head = f"POST {path} HTTP/1.1\r\nhost: {client.base_url.netloc.decode()}\r\ncontent-type: application/json"
                gone.sendall(f'{head}\r\ncontent-length: 500\r\n\r\n{{"response": "'.encode())
            assert client.post("/v1/detect", json=_ASKED).json()["detected"] is False
    assert "Traceback" not in (tmp_path / "log").read_text()


def test_a_sidecar_with_pages_imports_no_workshop() -> None:
    """The desk comes with ``--desk``, and nothing that trains or evaluates."""
    code = (
        "import sys; from truthlens.cli import command_line; import truthlens.cli.serving as serving;"
        "command_line(['serve', '--desk']); serving._desk_app();"
        "print(*sorted({'.'.join(n.split('.')[:2]) for n in sys.modules if n.startswith(('truthlens.desk', 'truthlens.lab'))}))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert found.split() == ["truthlens.desk"]


def _imported(folder: Path) -> set[str]:
    """Return the modules that the process which ran in ``folder`` had imported when it stopped."""
    return set((folder / "modules").read_text().split())


def _of(modules: set[str], names: tuple[str, ...]) -> list[str]:
    return sorted(
        each for each in modules if each.startswith(tuple(f"{name}." for name in names)) or each in names
    )


def test_what_a_policy_uses_is_there_before_an_exchange(tmp_path: Path) -> None:
    """Modes, client and detector of a plan that corrects and asks are imported by then, others not."""
    policy = tmp_path / "policy.yaml"
    policy.write_text(
        "models: [{name: m, base_url: 'http://127.0.0.1:9/v1'}]\n"
        "hallucination:\n  default_mode: standard\n  streaming: buffer\n"
        "  detectors: [encoder, {name: judge, model: m}]\n"
    )
    with _running(tmp_path, "serve", "--config", str(policy)):
        pass
    modules = _imported(tmp_path)
    used = (
        "truthlens.exchange.mode_runner",
        "truthlens.llm.client",
        "truthlens.detection.detectors.judge.detector",
    )
    assert _of(modules, used) == sorted(used)
    assert _of(modules, ("truthlens.detection.detectors.verify", "redis", *_LOOP)) == []


def test_the_agentic_loop_is_there_where_a_policy_may_run_it(tmp_path: Path) -> None:
    """Before an exchange, with the detectors that judge its answers."""
    policy = tmp_path / "policy.yaml"
    policy.write_text(
        "sources: [{name: a, type: mcp, url: 'http://127.0.0.1:9/mcp', tool: t}]\n"
        "hallucination: {default_mode: agentic, detectors: [encoder], streaming: buffer, retrieval: {sources: [a]}}\n"
    )
    with _running(tmp_path, "serve", "--config", str(policy)):
        pass
    assert _of(_imported(tmp_path), _LOOP) == sorted(_LOOP)
