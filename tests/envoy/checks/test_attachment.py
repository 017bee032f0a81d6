"""How TruthLens is attached to an Envoy: what is wrong is found where it stands, and the shipped files have nothing wrong."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from truthlens.core.limits import Limits
from truthlens.core.net import Address, Upstream
from truthlens.envoy.checks.attachment import attachment_diagnostics, endpoints_of, stat_prefixes_of
from truthlens.envoy.config import EnvoySettings, render
from truthlens.policy import Severity

ROOT = Path(__file__).parents[3]
SHIPPED = [*sorted((ROOT / "envoy").glob("*.yaml")), ROOT / "deploy" / "compose" / "envoy.yaml"]
TEXT = (ROOT / "envoy" / "truthlens.yaml").read_text()
SETTINGS = EnvoySettings(
    Address("127.0.0.1", 10000), [Address("127.0.0.1", 18080)], Upstream("127.0.0.1", 8000, tls=False)
)

DECOMPRESSOR = """\
          http_filters:
          - name: unzip
            typed_config:
              "@type": type.googleapis.com/envoy.extensions.filters.http.decompressor.v3.Decompressor
          - name: small
            typed_config:
              "@type": type.googleapis.com/envoy.extensions.filters.http.buffer.v3.Buffer
              max_request_bytes: 1000
"""


def found(text: str, limits: Limits | None = None) -> list[tuple[Severity, str, str, int]]:
    """Severity, last key, message and line of all that is wrong."""
    diagnostics = attachment_diagnostics(text, file="envoy.yaml", limits=limits or Limits())
    return [(each.severity, each.key.rpartition(".")[2], each.message, each.line) for each in diagnostics]


@pytest.mark.parametrize("file", SHIPPED, ids=lambda file: f"{file.parent.name}/{file.name}")
def test_shipped_configurations_have_nothing_wrong(file: Path) -> None:
    """And each names where its sidecars are, with the port of their health checks."""
    assert found(file.read_text()) == []
    endpoints = endpoints_of(file.read_text(), file=str(file))
    assert [each.health_port for each in endpoints] == [each.address.port + 1000 for each in endpoints]
    assert stat_prefixes_of(file.read_text()) == {""}


@pytest.mark.parametrize(
    ("pattern", "instead", "key", "said"),
    [
        ("request_body_mode: BUFFERED", "request_body_mode: FULL_DUPLEX_STREAMED", "failure_mode_allow", "breaks off"),
        ("request_body_buffer_limit: .*", "metadata: {}", "per_connection_buffer_limit_bytes", "1048576"),
        ("request_body_buffer_limit: .*", "request_body_buffer_limit: '70000'", "request_body_buffer_limit", "70000"),
        ("cluster_name: truthlens\n", "cluster_name: truthlens\n                  max_receive_message_length: 9000\n",
         "max_receive_message_length", "9000"),
        ("http2_protocol_options:", "http_protocol_options: {}\n          ignored:", "clusters[1]", "HTTP/2"),
    ],
)  # fmt: skip
def test_what_cannot_work_is_an_error(pattern: str, instead: str, key: str, said: str) -> None:
    """At the key that has to change."""
    text, times = re.subn(pattern, instead, TEXT, count=1)
    assert times == 1
    ((severity, name, message, line),) = [each for each in found(text) if each[1] == key]
    assert severity is Severity.ERROR
    assert said in message
    assert line > 1
    assert name == key


def test_a_lower_bound_of_the_policy_fits_small_buffers() -> None:
    """What the remedy says does away with the error."""
    text = re.sub("request_body_buffer_limit: .*", "request_body_buffer_limit: 70000", TEXT)
    assert found(text, Limits(max_body_bytes=70_000)) == []


def test_neighbours_that_hold_or_refuse_bodies_are_named() -> None:
    """A decompressor hangs exchanges, and a buffer refuses what the policy would check."""
    text = TEXT.replace("          http_filters:\n", DECOMPRESSOR, 1)
    assert text != TEXT
    told = found(text)
    assert [(severity, key) for severity, key, _, _ in told] == [
        (Severity.ERROR, told[0][1]),
        (Severity.WARNING, "max_request_bytes"),
    ]
    assert "decompressor" in told[0][2]


@pytest.mark.parametrize(
    ("removal", "missing"),
    [
        ("", "requests and responses"),
        ("response_headers_to_remove: [X-TruthLens-Status]", "of requests on"),
        (
            "request_headers_to_remove: [x-truthlens-status]\n  response_headers_to_remove: [x-truthlens-status]",
            None,
        ),
    ],
)
def test_headers_that_others_may_write_are_a_warning(removal: str, missing: str | None) -> None:
    """Whatever removes them, the route or a filter; only the way that lacks it is named."""
    text = TEXT.replace("x[^a-z0-9]truthlens[^a-z0-9].*", "x-other-.*")
    assert text != TEXT
    indent = re.search(r"\n( +)request_body_buffer_limit", text)
    assert indent is not None
    added = removal.replace("\n  ", f"\n{indent[1]}")
    if added:
        text = text.replace("request_body_buffer_limit", f"{added}\n{indent[1]}request_body_buffer_limit", 1)
    told = [message for _, _, message, _ in found(text)]
    if missing is None:
        assert told == []
    else:
        assert missing in told[0]


def test_metadata_that_cannot_be_written_is_a_warning() -> None:
    """The access log would have no verdict."""
    config = render(SETTINGS).replace('"untyped": [\n', '"typed": [\n')
    assert config != render(SETTINGS)
    ((severity, key, message, _),) = found(config)
    assert (severity, key) == (Severity.WARNING, "untyped")
    assert "access log" in message


def test_a_socket_is_an_endpoint_too() -> None:
    """Its health is checked on itself."""
    config = render(replace(SETTINGS, extproc=[Address("/run/truthlens.sock", 0)]))
    ((address, port),) = [(each.address, each.health_port) for each in endpoints_of(config, file="e")]
    assert (str(address), port) == ("unix:/run/truthlens.sock", None)


@pytest.mark.parametrize("text", ["", "admin: {}\n", "- 1\n", "static_resources: ["])
def test_what_has_no_filter_has_nothing_to_attach(text: str) -> None:
    """That it is missing is reported with the clocks."""
    assert found(text) == []
    assert endpoints_of(text, file="e") == []
    assert stat_prefixes_of(text) == set()
