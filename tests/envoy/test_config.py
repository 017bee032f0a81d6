"""Addresses, upstreams, and the parts of Envoy's configuration that keep promises."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

from truthlens.core.errors import StartError
from truthlens.core.net import Address, Upstream
from truthlens.delivery import HEADER_NAMES
from truthlens.envoy.config import EnvoySettings, envoy_config, render

SETTINGS = EnvoySettings(
    listen=Address("127.0.0.1", 10000),
    extproc=[Address("127.0.0.1", 18080), Address("127.0.0.1", 18081)],
    upstream=Upstream("127.0.0.1", 8000, tls=False),
)


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:80", Address("127.0.0.1", 80)),
        (":80", Address("0.0.0.0", 80)),
        ("[::1]:80", Address("::1", 80)),
        ("unix:/run/t.sock", Address("/run/t.sock", 0)),
    ],
)
def test_addresses_are_read(text: str, address: Address) -> None:
    """Host and port, IPv6 in brackets, unix sockets."""
    assert Address.parse(text, name="--x") == address


@pytest.mark.parametrize("text", ["", "80", "host", "host:", "host:0", "host:70000", "host:x"])
def test_bad_addresses_name_the_flag(text: str) -> None:
    """The message says which flag, which value and what is expected."""
    with pytest.raises(StartError, match=r"--listen is .*expected HOST:PORT"):
        Address.parse(text, name="--listen")


@pytest.mark.parametrize("address", ["127.0.0.1:80", "[::1]:80", "unix:/a"])
def test_addresses_are_written_as_they_are_read(address: str) -> None:
    """Text and record convert both ways."""
    assert str(Address.parse(address, name="--x")) == address


@pytest.mark.parametrize(
    ("url", "upstream"),
    [
        ("http://h:8000", Upstream("h", 8000, tls=False)),
        ("http://h:8000/v1", Upstream("h", 8000, tls=False)),
        ("http://h:8000/v1/", Upstream("h", 8000, tls=False)),
        ("https://api.test/openai/v1", Upstream("api.test", 443, tls=True, prefix="/openai")),
        ("http://h", Upstream("h", 80, tls=False)),
    ],
)
def test_upstreams_are_read(url: str, upstream: Upstream) -> None:
    """A trailing /v1 is the API's own prefix."""
    assert Upstream.parse(url) == upstream


@pytest.mark.parametrize("url", ["", "h:8000", "ftp://h", "http://"])
def test_bad_upstreams_say_what_is_expected(url: str) -> None:
    """Only http and https with a host."""
    with pytest.raises(StartError, match="expected http://HOST:PORT"):
        Upstream.parse(url)


def test_the_base_response_mode_is_none() -> None:
    """With BUFFERED as the base Envoy would cut long streams before the sidecar can let them through."""
    listener = envoy_config(SETTINGS)["static_resources"]["listeners"][0]
    manager = listener["filter_chains"][0]["filters"][0]["typed_config"]
    processor = manager["http_filters"][0]["typed_config"]
    assert processor["processing_mode"]["response_body_mode"] == "NONE"
    assert processor["allow_mode_override"] is True


def test_each_sidecar_process_is_an_endpoint() -> None:
    """Envoy balances streams over endpoints, not over connections to one."""
    cluster = envoy_config(SETTINGS)["static_resources"]["clusters"][1]
    (group,) = cluster["load_assignment"]["endpoints"]
    ports = [e["endpoint"]["address"]["socket_address"]["port_value"] for e in group["lb_endpoints"]]
    assert ports == [18080, 18081]


@pytest.mark.parametrize(
    ("method", "path", "asked"),
    [
        ("POST", "/v1/chat/completions", True),
        ("POST", "/v1/responses", True),
        ("POST", "/completions/", True),
        ("POST", "/", True),
        ("PUT", "/anything", True),
        ("get", "/v1/models", True),
        ("GET", "/v1/models", False),
        ("OPTIONS", "/v1/chat/completions", False),
        ("POST", "/v1/embeddings", False),
        ("POST", "/v2/rerank/", False),
    ],
)
def test_about_which_requests_the_sidecar_is_asked(method: str, path: str, asked: bool) -> None:
    """About all but those that get no answer of a model."""
    listener = envoy_config(SETTINGS)["static_resources"]["listeners"][0]
    manager = listener["filter_chains"][0]["filters"][0]["typed_config"]
    looked_up, passing, checked = manager["route_config"]["virtual_hosts"][0]["routes"]
    (matcher,) = looked_up["match"]["headers"]
    skipped = [
        matcher["name"] == ":method" and re.fullmatch(matcher["string_match"]["safe_regex"]["regex"], method),
        re.fullmatch(passing["match"]["safe_regex"]["regex"], path),
    ]
    assert any(skipped) is not asked
    off = [route["typed_per_filter_config"]["envoy.filters.http.ext_proc"] for route in (looked_up, passing)]
    assert all(each["disabled"] for each in off)
    assert (checked["match"], "typed_per_filter_config" in checked) == ({"prefix": "/"}, False)


def test_paths_are_matched_as_the_backend_gets_them() -> None:
    """Normalised, with slashes merged and unescaped."""
    listener = envoy_config(SETTINGS)["static_resources"]["listeners"][0]
    manager = listener["filter_chains"][0]["filters"][0]["typed_config"]
    assert (manager["normalize_path"], manager["merge_slashes"]) == (True, True)
    assert manager["path_with_escaped_slashes_action"] == "UNESCAPE_AND_FORWARD"


def test_no_word_of_ours_passes_the_backends_cluster() -> None:
    """In either direction, on whatever route: every header of ours is removed, however its name is spelled."""
    cluster = envoy_config(SETTINGS)["static_resources"]["clusters"][0]
    (options,) = cluster["typed_extension_protocol_options"].values()
    mutation, codec = options["http_filters"]
    assert codec["typed_config"]["@type"].endswith("UpstreamCodec")
    mutations = mutation["typed_config"]["mutations"]
    for each in (*mutations["request_mutations"][:1], *mutations["response_mutations"]):
        regex = each["remove_on_match"]["key_matcher"]["safe_regex"]["regex"]
        assert all(re.fullmatch(regex, name) for name in HEADER_NAMES)
        assert all(re.fullmatch(regex, name.replace("-", "_")) for name in HEADER_NAMES)
        assert not re.fullmatch(regex, "x-request-id")


def test_a_router_is_asked_first_and_only_it_may_set_its_headers() -> None:
    """Clients' own are removed before it; TruthLens's filter keeps the name that routes refer to."""
    settings = replace(SETTINGS, router=Address("r.test", 18090), router_headers=("x-domain", "x-tier"))
    config = envoy_config(settings)
    listener = config["static_resources"]["listeners"][0]
    filters = listener["filter_chains"][0]["filters"][0]["typed_config"]["http_filters"]
    assert [entry["name"] for entry in filters] == [
        "envoy.filters.http.header_mutation/router",
        "envoy.filters.http.ext_proc/router",
        "envoy.filters.http.ext_proc",
        "envoy.filters.http.router",
    ]
    mutations = filters[0]["typed_config"]["mutations"]["request_mutations"]
    assert [each["remove"] for each in mutations] == ["x-domain", "x-tier"]
    cluster = config["static_resources"]["clusters"][2]
    assert (cluster["name"], cluster["type"]) == ("router", "STRICT_DNS")


def test_a_router_may_have_no_headers_of_its_own() -> None:
    """Then nothing is removed, and no filter does it."""
    config = envoy_config(replace(SETTINGS, router=Address("127.0.0.1", 18090), router_headers=()))
    listener = config["static_resources"]["listeners"][0]
    filters = listener["filter_chains"][0]["filters"][0]["typed_config"]["http_filters"]
    assert filters[0]["name"] == "envoy.filters.http.ext_proc/router"


@pytest.mark.parametrize("name", ["", "X-Domain", "x domain", ":path", "x-domain:"])
def test_what_is_no_name_of_a_header_is_refused(name: str) -> None:
    """The message names the flag."""
    with pytest.raises(StartError, match="--router-header is"):
        envoy_config(replace(SETTINGS, router=Address("127.0.0.1", 18090), router_headers=(name,)))


def test_a_tls_backend_is_verified() -> None:
    """With https: SNI, certificate and name checks, and the backend's own host name."""
    settings = EnvoySettings(
        SETTINGS.listen, SETTINGS.extproc, Upstream("api.test", 443, tls=True, prefix="/p")
    )
    text = render(settings)
    assert json.loads(text) == envoy_config(settings)
    backend = envoy_config(settings)["static_resources"]["clusters"][0]
    context = backend["transport_socket"]["typed_config"]
    assert context["sni"] == "api.test"
    assert context["common_tls_context"]["validation_context"]["match_typed_subject_alt_names"]
    assert backend["type"] == "STRICT_DNS"
