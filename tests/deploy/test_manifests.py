"""Image, compose file and Kubernetes manifests agree with the command line, with each other and with their files."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from truthlens.api.paths import PASSING_METHODS
from truthlens.cli import command_line
from truthlens.cli.console_access import OIDC_SECRET_VARIABLE, TOKEN_VARIABLE
from truthlens.delivery import HEADER_NAMES
from truthlens.envoy.config import FAIL_OPEN_HEADERS
from truthlens.policy import Severity, check_file
from truthlens.process.settings import Settings

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
KUBERNETES = DEPLOY / "kubernetes"
VARIABLE = re.compile(r"\bTRUTHLENS_[A-Z_]+\b")


def _documents(path: Path) -> list[dict[str, Any]]:
    return [document for document in yaml.safe_load_all(path.read_text("utf-8")) if document]


def _compose() -> dict[str, Any]:
    return yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))


def _deployment() -> dict[str, Any]:
    return _documents(KUBERNETES / "deployment.yaml")[0]["spec"]


def _container() -> dict[str, Any]:
    return _deployment()["template"]["spec"]["containers"][0]


def _environment() -> dict[str, str]:
    return {entry["name"]: entry["value"] for entry in _container()["env"] if "value" in entry}


def _gateway(kind: str) -> list[dict[str, Any]]:
    return [d for d in _documents(KUBERNETES / "envoy-gateway" / "gateway.yaml") if d["kind"] == kind]


def _command(name: str) -> Any:
    # Whatever click calls its classes in this version of typer; options are read from `params`.
    root: Any = typer.main.get_command(command_line())
    return root.commands[name]


def _default(field: str) -> float:
    return Settings.__dataclass_fields__[field].default


@pytest.mark.parametrize(
    "path",
    [DEPLOY / "Dockerfile", DEPLOY / "compose.yaml", KUBERNETES / "deployment.yaml", DEPLOY / "README.md"],
    ids=lambda path: path.name,
)
def test_variables_exist(path: Path) -> None:
    """Every environment variable that a file names is one that ``truthlens serve`` reads."""
    named = set(VARIABLE.findall(path.read_text("utf-8")))
    known = {str(option.envvar) for option in _command("serve").params if getattr(option, "envvar", None)}
    # Secrets, which no option takes: they would stand in the list of processes.
    known |= {TOKEN_VARIABLE, OIDC_SECRET_VARIABLE}
    assert named
    assert named <= known


@pytest.mark.parametrize(
    "path", [DEPLOY / "compose.yaml", DEPLOY / "README.md", ROOT / "envoy" / "README.md"]
)
def test_commands_exist(path: Path) -> None:
    """Every flag behind a ``truthlens`` command in the documents is one that the command has."""
    text = re.sub(r" \\\n#?", " ", path.read_text("utf-8"))
    calls = re.findall(r"truthlens (serve|check|envoy-config)((?: [^\s`|>]+)*)", text)
    assert calls
    for name, arguments in calls:
        known = {flag for option in _command(name).params for flag in (*option.opts, *option.secondary_opts)}
        assert set(re.findall(r"--[a-z-]+", arguments)) - {"--help"} <= known


def test_image_copies_what_the_build_reads() -> None:
    """The image's build stage gets every file that the build reads or packs, and no other."""
    copies = re.findall(
        r"^COPY (?!--from)(.+) \S+$", (DEPLOY / "Dockerfile").read_text("utf-8"), re.MULTILINE
    )
    copied = {name for line in copies for name in line.split()}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    hook = project["tool"]["hatch"]["build"]["hooks"]["custom"]["path"]
    data = re.search(r"^WHEEL_DATA = (\{.*?^\})", (ROOT / hook).read_text("utf-8"), re.MULTILINE | re.DOTALL)
    assert data
    needed = {
        "pyproject.toml",
        "protos",
        project["project"]["readme"],
        *project["project"]["license-files"],
        hook,
        *project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"],
        *(source.split("/")[0] for source in ast.literal_eval(data[1])),
    }
    assert copied == needed
    ignored = (DEPLOY / "Dockerfile.dockerignore").read_text("utf-8")
    assert {line[1:] for line in ignored.splitlines() if line.startswith("!")} == copied


def test_image_is_not_root_and_has_a_health_check() -> None:
    """The image runs as a numbered user, says its ports and checks its own health."""
    text = (DEPLOY / "Dockerfile").read_text("utf-8")
    assert re.search(r"^USER [1-9]\d*$", text, re.MULTILINE)
    assert re.search(r"^EXPOSE 18080 19080 8088$", text, re.MULTILINE)
    assert "/healthz" in text
    assert "torch" not in "".join(line for line in text.splitlines() if not line.startswith("#"))


def test_compose_mounts_exist() -> None:
    """Every path that the compose file mounts or builds from is in the repository."""
    services = _compose()["services"]
    for service in services.values():
        for volume in service.get("volumes", []):
            source = volume.split(":")[0]
            if source.startswith("."):
                assert (DEPLOY / source).exists(), source
            else:
                assert source in _compose()["volumes"]
    build = services["truthlens"]["build"]
    assert (DEPLOY / build["context"] / build["dockerfile"]).is_file()


def test_compose_publishes_to_this_machine_only() -> None:
    """No port of the compose file is open to the network."""
    ports = [port for service in _compose()["services"].values() for port in service.get("ports", [])]
    assert ports
    assert all(port.startswith("127.0.0.1:") for port in ports)


def test_envoy_of_compose_is_the_tested_version() -> None:
    """The compose file runs the Envoy version that the tests run."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    (wheel,) = extras["up"]
    assert _compose()["services"]["envoy"]["image"] == "envoyproxy/envoy:v" + wheel.partition("==")[2]


def test_processes_are_given_time_to_drain() -> None:
    """The patience of the orchestrator exceeds the drain, with the values that the manifests set."""
    compose = _compose()["services"]["truthlens"]
    environments = [
        (compose["environment"], float(compose["stop_grace_period"].removesuffix("s"))),
        (_environment(), float(_deployment()["template"]["spec"]["terminationGracePeriodSeconds"])),
    ]
    for environment, patience_s in environments:
        notice_s = float(environment["TRUTHLENS_DRAIN_NOTICE"])
        assert notice_s >= _default("drain_notice_s")
        assert patience_s > notice_s + float(environment["TRUTHLENS_DRAIN_GRACE"])


def test_kustomization_names_files_that_exist() -> None:
    """Every file that a kustomization names is there, and every manifest is named."""
    for folder in (KUBERNETES, KUBERNETES / "monitoring"):
        (kustomization,) = _documents(folder / "kustomization.yaml")
        named = set(kustomization["resources"])
        for generator in kustomization.get("configMapGenerator", []):
            named |= {entry.rpartition("=")[2] for entry in generator["files"]}
        assert named | {"kustomization.yaml"} == {path.name for path in folder.glob("*.yaml")}


def test_selectors_choose_the_pods() -> None:
    """Deployment, Service, disruption budget, spread and monitor all choose the pods by the labels that they have."""
    labels = _deployment()["template"]["metadata"]["labels"]
    assert _deployment()["selector"]["matchLabels"] == labels
    assert _documents(KUBERNETES / "service.yaml")[0]["spec"]["selector"] == labels
    assert _documents(KUBERNETES / "disruption.yaml")[0]["spec"]["selector"]["matchLabels"] == labels
    (spread,) = _deployment()["template"]["spec"]["topologySpreadConstraints"]
    assert spread["labelSelector"]["matchLabels"] == labels
    monitor = _documents(KUBERNETES / "monitoring" / "servicemonitor.yaml")[0]["spec"]
    # The kustomization puts this label on the Service.
    (pairs,) = [entry["pairs"] for entry in _documents(KUBERNETES / "kustomization.yaml")[0]["labels"]]
    assert monitor["selector"]["matchLabels"] == labels == pairs
    ports = {port["name"] for port in _documents(KUBERNETES / "service.yaml")[0]["spec"]["ports"]}
    assert {endpoint["port"] for endpoint in monitor["endpoints"]} <= ports


def test_ports_and_probes_agree() -> None:
    """Service and probes point at container ports, and those are where the process listens."""
    container = _container()
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert ports == {
        "grpc": int(_environment()["TRUTHLENS_EXTPROC"].rpartition(":")[2]),
        "health": int(_environment()["TRUTHLENS_HEALTH"].rpartition(":")[2]),
        "console": int(_environment()["TRUTHLENS_CONSOLE"].rpartition(":")[2]),
    }
    service = _documents(KUBERNETES / "service.yaml")[0]["spec"]
    assert service["clusterIP"] == "None"
    assert {port["targetPort"]: port["port"] for port in service["ports"]} == ports
    probes = {
        name: container[name]["httpGet"] for name in ("startupProbe", "readinessProbe", "livenessProbe")
    }
    assert {probe["port"] for probe in probes.values()} == {"console"}
    assert [probe["path"] for probe in probes.values()] == ["/healthz", "/readyz", "/healthz"]


def test_policy_is_mounted_where_the_process_reads_it() -> None:
    """The policy's ConfigMap holds the file that TRUTHLENS_CONFIG names, in a folder mounted as a whole."""
    (generator,) = _documents(KUBERNETES / "kustomization.yaml")[0]["configMapGenerator"]
    volumes = {v["name"]: v for v in _deployment()["template"]["spec"]["volumes"]}
    assert volumes["policy"]["configMap"]["name"] == generator["name"]
    (mount,) = [m for m in _container()["volumeMounts"] if m["name"] == "policy"]
    assert "subPath" not in mount
    (entry,) = generator["files"]
    assert _environment()["TRUTHLENS_CONFIG"] == f"{mount['mountPath']}/{entry.partition('=')[0]}"


def test_policy_of_kubernetes_is_sound() -> None:
    """The policy that the manifests ship has no mistakes."""
    found = check_file(KUBERNETES / "policy.yaml")
    assert [diagnostic.render() for diagnostic in found if diagnostic.severity is Severity.ERROR] == []


def test_gateway_example_says_what_the_envoy_file_says() -> None:
    """Headers, buffering, modes and the sidecar's address of the Envoy Gateway example are those of ``envoy/``."""
    checked = next(route for route in _gateway("HTTPRoute") if route["metadata"]["name"] == "llm-checked")
    (rule,) = checked["spec"]["rules"]
    (modifier,) = rule["filters"]
    changes = modifier["responseHeaderModifier"]
    assert {entry["name"]: entry["value"] for entry in changes["set"]} == FAIL_OPEN_HEADERS
    assert set(changes["remove"]) == set(HEADER_NAMES) - set(FAIL_OPEN_HEADERS)
    (policy,) = _gateway("EnvoyExtensionPolicy")
    assert policy["spec"]["targetRefs"][0]["name"] == "llm-checked"
    (processor,) = policy["spec"]["extProc"]
    assert processor["processingMode"]["allowModeOverride"] is True
    assert processor["processingMode"]["response"] == {}
    assert processor["processingMode"]["request"]["body"] == "Buffered"
    (backend,) = processor["backendRefs"]
    service = _documents(KUBERNETES / "service.yaml")[0]
    assert backend["name"] == service["metadata"]["name"]
    assert backend["port"] == next(
        port["port"] for port in service["spec"]["ports"] if port["name"] == "grpc"
    )
    envoy = yaml.safe_load((ROOT / "envoy" / "truthlens.yaml").read_text("utf-8"))
    manager = envoy["static_resources"]["listeners"][0]["filter_chains"][0]["filters"][0]["typed_config"]
    assert processor["messageTimeout"] == manager["http_filters"][0]["typed_config"]["message_timeout"]
    limit = manager["route_config"]["virtual_hosts"][0]["routes"][-1]["request_body_buffer_limit"]
    for traffic in _gateway("ClientTrafficPolicy"):
        assert int(traffic["spec"]["connection"]["bufferLimit"].removesuffix("Mi")) << 20 == limit


def test_gateway_example_asks_about_all_that_may_bring_an_answer() -> None:
    """Only methods that look things up go past the sidecar, on no path a POST; and paths are those of the backend."""
    routes = {route["metadata"]["name"]: route["spec"]["rules"] for route in _gateway("HTTPRoute")}
    everywhere = {"type": "PathPrefix", "value": "/"}
    ((checked,), (untouched,)) = routes["llm-checked"], routes["llm-untouched"]
    assert checked["matches"] == [{"path": everywhere}]
    assert untouched["matches"] == [{"path": everywhere, "method": method} for method in PASSING_METHODS]
    (modifier,) = untouched["filters"]
    removed = modifier["responseHeaderModifier"]["remove"]
    assert set(removed) == set(HEADER_NAMES)
    assert len(removed) <= 16  # Gateway API takes no more
    for traffic in _gateway("ClientTrafficPolicy"):
        assert traffic["spec"]["path"] == {
            "escapedSlashesAction": "UnescapeAndForward",
            "disableMergeSlashes": False,
        }
        early = traffic["spec"]["headers"]["earlyRequestHeaders"]
        assert {"x-http-method-override", "x-http-method", "x-method-override"} <= set(early["remove"])


def test_gateway_example_lets_no_client_say_the_domain() -> None:
    """On every listener of the Envoy Gateway example the domain's header is set or removed before all filters."""
    (gateway,) = _gateway("Gateway")
    listeners = {listener["name"] for listener in gateway["spec"]["listeners"]}
    covered = set()
    for policy in _gateway("ClientTrafficPolicy"):
        early = policy["spec"]["headers"]["earlyRequestHeaders"]
        assert "x-domain" in early.get("remove", []) + [entry["name"] for entry in early.get("set", [])]
        covered |= {target["sectionName"] for target in policy["spec"]["targetRefs"]}
    assert covered == listeners
