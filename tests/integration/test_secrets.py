"""Nothing that a deployment is given in confidence is in what it prints, serves or sends on."""

from __future__ import annotations

import contextlib
import json
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.integration.support.backend import Received, completion, http
from tests.integration.support.stack import Stack, wait_for
from tests.integration.support.streams.streams import answer, sse
from truthlens.cli import main

pytestmark = pytest.mark.envoy

SECRET = {
    name: f"planted-{name}-9f2c41d7"
    for name in (
        "model-key", "redis-password", "oidc-secret", "session-key", "token", "viewer-token", "fleet", "otlp", "bearer",
        "x-api-key", "cookie", "proxy", "set-cookie", "query", "database-password", "basic",
    )
}  # fmt: skip
POLICY = """\
hallucination: {detectors: [numbers], default_mode: standard, details: true}
review: {keep_text: true}
models:
  - {name: scripted-model, base_url: "BACKEND", api_key_env: MODEL_KEY}
"""
ASKED = {
    "model": "scripted-model",
    "messages": [
        {
            "role": "user",
            "content": "<context>\nThe NOI for the property was $1,200,000 in Q3 2024.\n</context>\nHow did the property do?",
        }
    ],
}
BAD = "The NOI was $1.5M for the property."
OF_CLIENTS = {
    "authorization": f"Bearer {SECRET['bearer']}",
    "x-api-key": SECRET["x-api-key"],
    "cookie": f"session={SECRET['cookie']}",
    "proxy-authorization": f"Basic {SECRET['proxy']}",
    "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
}
LINK = re.compile(rb'(?:href|action|src)="(/[^"#]*)')


def planted_in(text: str | bytes) -> set[str]:
    """The secrets that are in a text."""
    data = text.encode() if isinstance(text, str) else text
    return {name for name, secret in SECRET.items() if secret.encode() in data}


class Collector:
    """Takes traces as an OTLP server does, and keeps their bytes."""

    def __init__(self) -> None:
        kept = self.bodies = list[bytes]()

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                kept.append(self.rfile.read(int(self.headers["content-length"])))
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"

    def stop(self) -> None:
        self.server.shutdown()
        self.server.server_close()


class SecretStack(Stack):
    """Every secret that a process can be given, and a model that repeats its key in its errors."""

    def __init__(self, folder: Path) -> None:
        self.collector = Collector()
        files = {name: folder / name for name in ("token", "viewer-token", "session-key", "fleet")}
        for name, file in files.items():
            file.write_text(SECRET[name])
        self.reviews = folder / "reviews.db"
        arguments = [
            "--log-level", "debug", "--review-database", f"sqlite:///{self.reviews}",
            "--redis", f"redis://:{SECRET['redis-password']}@127.0.0.1:1/0",
            "--console-login", "oidc", "--console-oidc-issuer", "http://127.0.0.1:1/realm", "--console-oidc-client-id", "console",
            "--console-token-file", str(files["token"]), "--console-viewer-token-file", str(files["viewer-token"]),
            "--console-session-key-file", str(files["session-key"]), "--secret-file", str(files["fleet"]),
        ]  # fmt: skip
        environ = {
            "MODEL_KEY": SECRET["model-key"],
            "TRUTHLENS_LOG_LEVEL": "debug",
            "TRUTHLENS_CONSOLE_OIDC_CLIENT_SECRET": SECRET["oidc-secret"],
            "OTEL_EXPORTER_OTLP_ENDPOINT": self.collector.url,
            "OTEL_EXPORTER_OTLP_HEADERS": f"authorization={SECRET['otlp']}",
            "OTEL_BSP_SCHEDULE_DELAY": "200",
        }
        super().__init__(folder, POLICY, arguments=arguments, environ=environ, patient=True)
        self.backend.reply = self.reply

    def start_sidecar(self) -> None:
        text = POLICY.replace("BACKEND", f"http://127.0.0.1:{self.backend.port}/v1")
        self.policy.write_text(text)
        super().start_sidecar()

    def reply(self, asked: Received) -> Any:
        if SECRET["model-key"] in asked.headers.get("authorization", ""):
            error = {
                "error": {
                    "message": f"Incorrect API key provided: {SECRET['model-key']}",
                    "code": "invalid_api_key",
                }
            }
            return http(json.dumps(error), status="401 Unauthorized")
        if json.loads(asked.body).get("stream"):
            return sse(answer(BAD))
        return http(json.dumps(completion(BAD)), headers={"set-cookie": f"s={SECRET['set-cookie']}"})

    def stop(self) -> None:
        super().stop()
        self.collector.stop()


@pytest.fixture(scope="module")
def deployment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecretStack]:
    stack = SecretStack(tmp_path_factory.mktemp("secrets"))
    try:
        stack.start()
        for stream in (False, True):
            stack.post(
                {**ASKED, "stream": stream},
                headers=OF_CLIENTS,
                path=f"/v1/chat/completions?key={SECRET['query']}",
            )
        stack.post(b'{"model": ', headers=OF_CLIENTS)
        stack.post({"input": "x"}, headers=OF_CLIENTS, path="/v1/responses")
        wait_for(lambda: stack.collector.bodies, "traces")
        yield stack
    finally:
        stack.stop()


def ask(stack: Stack, path: str, *, method: str = "GET", **more: Any) -> httpx.Response:
    """One request to the console, with all that a browser might send, by a reviewer."""
    headers = {**OF_CLIENTS, "authorization": f"Bearer {SECRET['token']}", **more.pop("headers", {})}
    return httpx.request(method, f"{stack.console_url}{path}", headers=headers, timeout=60, **more)


def leaks(response: httpx.Response) -> set[str]:
    """The secrets in a response."""
    return planted_in(str(response.headers)) | planted_in(response.content)


def test_secrets_go_where_they_belong(deployment: SecretStack) -> None:
    """Or else there would be nothing to find elsewhere: the model gets its key, the backend what the client sent."""
    sent = [each.headers.get("authorization", "") for each in deployment.backend.received]
    assert any(SECRET["model-key"] in each for each in sent)
    assert any(SECRET["bearer"] in each for each in sent)


def test_no_page_of_the_console_shows_one(deployment: SecretStack) -> None:
    """All pages that are linked from the first, with metrics and probes; and those of whoever is not logged in."""
    waiting, found = ["/", "/metrics", "/readyz", "/healthz", "/login", "/reviews"], dict[str, set[str]]()
    while waiting:
        path = waiting.pop()
        if path not in found and not path.startswith("/logout"):
            response = ask(deployment, path)
            found[path] = leaks(response) | leaks(
                httpx.get(f"{deployment.console_url}{path}", headers=OF_CLIENTS, timeout=60)
            )
            if "html" in response.headers.get("content-type", "") and len(found) < 60:
                waiting += [link.decode().replace("&amp;", "&") for link in LINK.findall(response.content)]
    assert len(found) > 10, found
    assert {path: each for path, each in found.items() if each} == {}


@pytest.mark.parametrize(
    ("path", "content", "headers"),
    [
        ("/v1/detect", b"{", {"content-type": "application/json"}),
        ("/v1/detect", b"text", {}),
        ("/v1/evidence", b"[]", {"content-type": "application/json"}),
        ("/v1/ask", b'{"question": 1}', {"content-type": "application/json"}),
        ("/v1/reviews/nothing", b"{}", {"content-type": "application/json"}),
        ("/v1/detect", b"{}", {"content-type": "application/json", "authorization": f"Bearer {SECRET['bearer']}"}),
        ("/v1/detect", b"{}", {"content-type": "application/json", "authorization": f"Basic {SECRET['basic']}"}),
        ("/playground", b"a=b", {"content-type": "application/x-www-form-urlencoded", "origin": "http://elsewhere.test"}),
    ],
    ids=str,
)  # fmt: skip
def test_no_error_repeats_one(
    deployment: SecretStack, path: str, content: bytes, headers: dict[str, str]
) -> None:
    """Of the APIs, and of a wrong login."""
    response = ask(
        deployment, f"{path}?key={SECRET['query']}", method="POST", content=content, headers=headers
    )
    assert 400 <= response.status_code < 500
    assert leaks(response) == set()


def test_no_answer_through_the_gateway_repeats_one(deployment: SecretStack) -> None:
    """But for the cookie that the backend sets."""
    response = deployment.post(ASKED, headers=OF_CLIENTS)
    assert response.headers["x-truthlens-detected"] == "true"
    assert leaks(response) == {"set-cookie"}


def test_what_is_exported_from_the_queue_has_none(
    deployment: SecretStack, capfd: pytest.CaptureFixture[str]
) -> None:
    """Nor has the database that it comes from."""
    url = f"sqlite:///{deployment.reviews}"
    for words in (["list"], ["stats"], ["export", "--status", "all"]):
        with contextlib.suppress(SystemExit):
            main(["review", *words, "--database", url])
    said = capfd.readouterr()
    kept = b"".join(file.read_bytes() for file in deployment.folder.glob("reviews.db*"))
    assert b"NOI" in kept
    assert planted_in(said.out + said.err) | planted_in(kept) == set()


def test_doctor_prints_none(
    deployment: SecretStack, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It reads all of them, and asks with them."""
    for name, value in deployment.environ.items():
        monkeypatch.setenv(name, value)
    redis = f"redis://:{SECRET['redis-password']}@127.0.0.1:1/0"
    database = f"postgresql://truthlens:{SECRET['database-password']}@127.0.0.1:1/reviews"
    with contextlib.suppress(SystemExit):
        main(["doctor", "--config", str(deployment.policy), "--extproc", str(deployment.extproc), "--console",
              str(deployment.console), "--redis", redis, "--review-database", database, "--timeout", "5",
              "--envoy", str(deployment.folder / "envoy.json")])  # fmt: skip
    said = capfd.readouterr()
    assert "fix --review-database" in said.out
    assert planted_in(said.out + said.err) == set()


def test_traces_and_logs_have_none_not_even_after_a_crash(deployment: SecretStack) -> None:
    """The queue's file is destroyed under a handler, and a client breaks ext_proc's rules."""
    for file in deployment.folder.glob("reviews.db*"):
        file.write_bytes(b"no database" * 1000)
    broken = ask(deployment, f"/reviews?key={SECRET['query']}")
    assert broken.status_code >= 500
    assert leaks(broken) == set()
    log = (deployment.folder / "sidecar.log").read_text()
    assert '"event": "exchange"' in log
    assert planted_in(log) == set()
    assert planted_in(b"".join(deployment.collector.bodies)) == set()
    assert planted_in((deployment.folder / "access.log").read_text()) == set()


# --- configurations that are refused ---------------------------------------------------------------------------

_URL = f"//user:{SECRET['database-password']}@127.0.0.1"
_ODD = f"//user:a/{SECRET['database-password']}@127.0.0.1"


@pytest.mark.parametrize(
    "words",
    [
        ("serve", "--upstream", f"ftp:{_URL}"),
        ("serve", "--upstream", f"http:{_URL}:port"),
        ("serve", "--extproc", f"http:{_URL}"),
        ("envoy-config", "--upstream", f"http:{_ODD}"),
        ("doctor", "--upstream", f"ftp:{_URL}"),
        ("doctor", "--envoy-admin", f"ftp:{_URL}"),
        ("review", "list", "--database", f"mysql:{_URL}/x"),
        ("review", "list", "--database", f"postgresql:{_ODD}:port/x"),
        ("review", "list", "--database", f"postgresql:{_URL}:1/x"),
    ],
    ids=lambda words: " ".join(words[:2]),
)
def test_a_command_that_is_refused_prints_none(
    words: tuple[str, ...], capfd: pytest.CaptureFixture[str]
) -> None:
    """Whatever is wrong with a URL, its password is not shown; and nothing ends in a traceback."""
    with pytest.raises(SystemExit) as ended:
        main(words)
    said = capfd.readouterr()
    assert ended.value.code not in (0, None)
    assert "Traceback" not in said.err
    assert planted_in(said.out + said.err) == set()


@pytest.mark.parametrize(
    "policy",
    [
        f"models: [{{name: m, base_url: 'http:{_URL}:port/v1'}}]",
        f"models: [{{name: m, api_key: '{SECRET['model-key']}'}}]",
        f"models: [{{name: m, base_url: 'http://127.0.0.1:1', api_key_env: '{SECRET['model-key']}'}}]",
        f"cache: 'redis:{_URL}'",
        f"sources: [{{name: s, type: pgvector, table: t, url_env: 'postgresql:{_URL}/x'}}]",
        f"sources: [{{name: s, type: searxng, base_url: 'http:{_URL}'}}]",
        f"sources: [{{name: s, type: qdrant, collection: c, url: 'http:{_URL}'}}]",
    ],
    ids=lambda policy: policy.partition("'")[0],
)
def test_a_policy_that_is_refused_prints_none(
    policy: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """A key in the place of the name of its variable, a password in an address."""
    file = tmp_path / "policy.yaml"
    file.write_text(policy)
    with pytest.raises(SystemExit) as ended:
        main(["check", str(file)])
    said = capfd.readouterr()
    assert (ended.value.code, planted_in(said.out + said.err)) == (1, set())
