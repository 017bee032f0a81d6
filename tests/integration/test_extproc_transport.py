"""Ways from Envoy to the sidecar beside plaintext: mutual TLS with certificates that are renewed, and a unix socket."""

from __future__ import annotations

import json
import stat
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import httpx
import pytest

from tests.fakes.certificates import SecretFolder, issued
from tests.fakes.ports import free_port
from tests.integration.support.backend import completion, json_reply
from tests.integration.support.mutual_tls import MutualTls, reconnecting
from tests.integration.support.stack import Stack, wait_for
from tests.integration.support.streams.stage import LiveClient, metric, read_back
from tests.integration.support.streams.streams import answer, sse
from truthlens.core.net import Address, Upstream
from truthlens.envoy.config import EnvoySettings, envoy_config
from truthlens.envoy.ports import is_listening
from truthlens.envoy.process import envoy_binary
from truthlens.envoy.sidecar_tls import SidecarTls

pytestmark = pytest.mark.envoy

POLICY = "hallucination: {detectors: [numbers], streaming: gate, on_flagged: withhold}\n"
GOOD, BAD = "The NOI was $1.2M for the property.", "The NOI was $1.5M for the property."
ASKED = {
    "model": "scripted-model",
    "messages": [
        {
            "role": "user",
            "content": "<context>\nThe NOI for the property was $1,200,000 in Q3 2024.\n</context>\nHow did the property do?",
        }
    ],
}


class TlsStack(Stack):
    """Envoy shows a certificate, is known by its name, and makes a new connection every second."""

    def __init__(self, folder: Path) -> None:
        self.tls = MutualTls(folder)
        super().__init__(
            folder, POLICY, arguments=self.tls.arguments, patient=True, sidecar_tls=self.tls.envoy
        )
        self.others: list[subprocess.Popen[bytes]] = []

    def bootstrap(self, settings: EnvoySettings) -> str:
        return reconnecting(super().bootstrap(settings))

    def another_envoy(self, tls: SidecarTls | None) -> str:
        """The URL of a second Envoy in front of the same sidecar."""
        listen = Address("127.0.0.1", free_port())
        settings = EnvoySettings(
            listen, [self.extproc], Upstream("127.0.0.1", self.backend.port, tls=False), access_log=None, health=[self.health], sidecar_tls=tls,
            failure_mode_allow=False,
        )  # fmt: skip
        file = self.folder / f"envoy-{listen.port}.json"
        file.write_text(json.dumps(envoy_config(settings)))
        command = [
            envoy_binary(),
            "-c",
            str(file),
            "--log-level",
            "error",
            "--use-dynamic-base-id",
            "--concurrency",
            "1",
        ]
        self.others.append(subprocess.Popen(command, stderr=subprocess.DEVNULL))
        wait_for(lambda: is_listening(listen), "another Envoy")
        return f"http://{listen}"

    def stop(self) -> None:
        for envoy in self.others:
            envoy.kill()
            envoy.wait(20)
        super().stop()


@pytest.fixture(scope="module")
def deployment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TlsStack]:
    stack = TlsStack(tmp_path_factory.mktemp("tls"))
    try:
        stack.start()
        stack.backend.reply = lambda asked: (
            sse(answer(GOOD)) if json.loads(asked.body).get("stream") else json_reply(completion(BAD))
        )
        yield stack
    finally:
        stack.stop()


def test_answers_and_streams_are_checked_over_mutual_tls(deployment: TlsStack) -> None:
    """By both ports: health is asked with the same certificate."""
    response = deployment.post(ASKED)
    assert (response.headers["x-truthlens-status"], response.headers["x-truthlens-detected"]) == (
        "checked",
        "true",
    )
    with LiveClient(deployment.listen, {**ASKED, "stream": True}, {}) as client:
        client.rest()
    assert read_back(client.body).texts[0] == GOOD
    assert metric(deployment, "truthlens_tls_expiry_timestamp_seconds", file="certificate") > 0


@pytest.mark.parametrize("shown", ["nothing", "another name", "plaintext"])
def test_an_envoy_that_is_not_known_gets_no_verdict(deployment: TlsStack, shown: str) -> None:
    """It fails closed here: its client gets an error, and the answer does not pass."""
    ca_of_both = deployment.tls.ca
    other = SecretFolder(deployment.folder / shown, issued("somebody.else", by=ca_of_both), ca_of_both)
    certificate, key, ca = map(str, other.files)
    tls = {
        "nothing": SidecarTls(ca, "truthlens"),
        "another name": SidecarTls(ca, "truthlens", certificate, key),
        "plaintext": None,
    }[shown]
    url = deployment.another_envoy(tls)
    response = httpx.post(f"{url}/v1/chat/completions", json=ASKED, timeout=60)
    assert response.status_code == 503
    assert metric(deployment, "truthlens_refused_clients_total") >= (shown == "another name")


def reloaded(stack: Stack, times: int) -> bool:
    """Whether both sides have new certificates that often; Envoy counts the first as well."""
    by_envoy = stack.stat("cluster.truthlens.client_ssl_socket_factory.ssl_context_update_by_sds")
    return metric(stack, "truthlens_tls_reloads_total", result="ok") == times and by_envoy > times


def connected(stack: Stack, times: int) -> bool:
    """Whether Envoy has connected that often."""
    return stack.stat("cluster.truthlens.upstream_cx_total") >= times


def test_certificates_are_renewed_in_the_middle_of_traffic_and_nothing_is_lost(deployment: TlsStack) -> None:
    """Both sides get new ones twice, one after the other, while answers and streams pass."""
    stop, lost, count = threading.Event(), [], [0]

    def traffic(stream: bool) -> None:
        while not stop.is_set():
            with LiveClient(deployment.listen, {**ASKED, "stream": stream}, {}) as client:
                client.rest()
            count[0] += 1
            passed = read_back(client.body).texts[0] == GOOD if stream else client.says("detected") == "true"
            if not passed or client.broken:
                lost.append((stream, client.headers, client.body))

    threads = [threading.Thread(target=traffic, args=(stream,)) for stream in (False, True)]
    for thread in threads:
        thread.start()
    try:
        for round_number in (1, 2):
            deployment.tls.renew()
            wait_for(partial(reloaded, deployment, round_number), "a reload")
            before = deployment.stat("cluster.truthlens.upstream_cx_total")
            wait_for(partial(connected, deployment, before + 2), "new connections")
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert count[0] > 10
    assert lost == []
    assert deployment.stat("cluster.truthlens.ssl.connection_error") == 0
    assert metric(deployment, "truthlens_tls_reloads_total", result="failed") == 0


# --- a unix socket --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def by_socket(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    with tempfile.TemporaryDirectory() as short:
        stack = Stack(
            tmp_path_factory.mktemp("unix"), POLICY, arguments=["--socket-mode", "660"], patient=True, health=None,
            environ={"TRUTHLENS_HEALTH": ""},
        )  # fmt: skip
        stack.extproc = Address(f"{short}/truthlens.sock", 0)
        try:
            stack.start()
            stack.backend.reply = lambda _asked: json_reply(completion(BAD))
            yield stack
        finally:
            stack.stop()


def test_answers_are_checked_over_a_unix_socket_that_only_its_group_may_use(by_socket: Stack) -> None:
    """Envoy asks for health there as well."""
    assert by_socket.post(ASKED).headers["x-truthlens-detected"] == "true"
    assert stat.S_IMODE(Path(by_socket.extproc.host).stat().st_mode) == 0o660


def test_a_second_server_is_refused_and_the_next_takes_the_place_of_a_dead_one(by_socket: Stack) -> None:
    """The first goes on as if nothing had been."""
    second = Stack(by_socket.folder, POLICY, backend=by_socket.backend, environ={"TRUTHLENS_HEALTH": ""})
    second.extproc = by_socket.extproc
    with pytest.raises(AssertionError, match="another server listens there"):
        second.start_sidecar()
    assert by_socket.post(ASKED).headers["x-truthlens-detected"] == "true"
    by_socket.kill_sidecar()
    assert Path(by_socket.extproc.host).is_socket()
    by_socket.start_sidecar()
    by_socket.wait_healthy()
    assert by_socket.post(ASKED).headers["x-truthlens-detected"] == "true"
