"""The Helm chart says what kustomize base and examples say, as Kubernetes takes it, and refuses harm."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest
import typer
import yaml

import truthlens
from tests.deploy import helm_chart
from tests.deploy.helm_chart import CHART, DEFAULTS, ROOT, NoEngineError, Rendered, merged
from truthlens.cli import command_line
from truthlens.delivery import HEADER_NAMES
from truthlens.envoy.config import FAIL_OPEN_HEADERS
from truthlens.policy import Severity, check_file

DEPLOY = ROOT / "deploy"
CASES = helm_chart.cases()
SCHEMA = json.loads((CHART / "values.schema.json").read_text("utf-8"))
AUTO = {"text": "hallucination: {default_mode: auto}\n"}
SHARED_CACHE = {"text": "cache: {redis: true}\n"}
OPEN = {"enabled": True, "envoy": [{"podSelector": {}}], "database": {"to": [{"podSelector": {}}]}}

REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "several pods, a queue in a file": ({"reviews": {"storage": "sqlite"}}, "reviews.storage: sqlite"),
    "more pods later, a queue in a file": (
        {"replicaCount": 1, "autoscaling": {"enabled": True}, "reviews": {"storage": "sqlite"}},
        "up to 10 pods",
    ),
    "sidecars, a queue in a file": (
        {"mode": "sidecar", "reviews": {"storage": "sqlite"}},
        "sidecars, one for each",
    ),
    "several pods, one volume": ({"state": {"existingClaim": "state"}}, "state.existingClaim"),
    "several pods that learn": ({"policy": AUTO}, "mode auto"),
    "several pods that learn in a decision": ({"policy": CASES["policy-auto-redis"]["policy"]}, "mode auto"),
    "several pods that share results": ({"policy": SHARED_CACHE}, "cache.redis: true"),
    "a policy that is said to share": (
        {"policy": {"existingConfigMap": "mine", "sharesState": True}},
        "policy.sharesState",
    ),
    "a policy that is no YAML": ({"policy": {"text": "a: [b"}}, "policy.text"),
    "two policies": ({"policy": {"text": "a: 1", "existingConfigMap": "mine"}}, "policy.existingConfigMap"),
    "no database": ({"secrets": {"reviewDatabase": {"existingSecret": ""}}}, "secrets.reviewDatabase"),
    "an open console": ({"console": {"login": "none"}}, "console.login"),
    "a login by token without one": (
        {"secrets": {"consoleToken": {"existingSecret": ""}}},
        "secrets.consoleToken",
    ),
    "a login by any proxy": ({"console": {"login": "proxy"}}, "console.trustedProxies"),
    "a login without provider": ({"console": {"login": "oidc"}}, "console.oidc.issuer"),
    "a login by environment": (
        {"extraEnv": [{"name": "TRUTHLENS_CONSOLE_LOGIN", "value": "none"}]},
        "extraEnv: TRUTHLENS_CONSOLE_LOGIN",
    ),
    "a value behind the chart's back": (
        {"extraEnv": [{"name": "TRUTHLENS_EXTPROC", "value": "0.0.0.0:1"}]},
        "extraEnv: TRUTHLENS_EXTPROC",
    ),
    "a desk on a queue in a file": (
        {"replicaCount": 1, "reviews": {"storage": "sqlite"}, "desk": {"enabled": True}},
        "desk.enabled",
    ),
    "desks that log out each other's users": (
        {"desk": {"enabled": True, "replicaCount": 2}},
        "secrets.consoleSessionKey",
    ),
    "a drain that is cut": ({"terminationGracePeriodSeconds": 70}, "terminationGracePeriodSeconds"),
    "probes without TLS": (
        {"probes": {"readiness": "grpc"}, "secrets": {"tls": {"existingSecret": "tls"}}},
        "probes.readiness",
    ),
    "probes of loopback": (
        {"mode": "sidecar", "reviews": {"storage": "none"}, "probes": {"readiness": "grpc"}},
        "probes.readiness",
    ),
    "a sidecar that scales": (
        {"mode": "sidecar", "reviews": {"storage": "none"}, "autoscaling": {"enabled": True}},
        "autoscaling.enabled: needs mode service",
    ),
    "fewer pods than the fewest": (
        {"autoscaling": {"enabled": True, "minReplicas": 5, "maxReplicas": 4}},
        "autoscaling.minReplicas",
    ),
    "TLS that Envoy Gateway does not know of": (
        {"envoyGateway": {"enabled": True}, "secrets": {"tls": {"existingSecret": "tls"}}},
        "backendTLSPolicyExists",
    ),
    "the status of no error": ({"envoyGateway": {"enabled": True, "statusOnError": 503}}, "statusOnError"),
    "an agent router without routes": ({"agentRouter": {"enabled": True}}, "agentRouter.routes"),
    "a pool without name": ({"inferencePool": {"enabled": True}}, "inferencePool.name"),
    "a pool whose answers nobody checks": (
        {"inferencePool": {"enabled": True, "name": "llama", "parentRefs": [{"name": "llm"}]}},
        "needs envoyGateway.enabled",
    ),
    "Istio without routes": ({"istio": {"enabled": True}}, "istio.routes"),
    "Istio without TLS to pods with TLS": (
        {"istio": {"enabled": True, "routes": ["chat"]}, "secrets": {"tls": {"existingSecret": "tls"}}},
        "istio.tlsMode",
    ),
    "Istio with TLS to pods without": (
        {"istio": {"enabled": True, "routes": ["chat"], "tlsMode": "SIMPLE"}},
        "istio.tlsMode",
    ),
    "Istio without certificates": (
        {
            "istio": {"enabled": True, "routes": ["chat"], "tlsMode": "SIMPLE"},
            "secrets": {"tls": {"existingSecret": "tls"}},
        },
        "istio.credentialName",
    ),
    "Istio without the certificate that pods ask for": (
        {
            "istio": {"enabled": True, "routes": ["chat"], "tlsMode": "SIMPLE", "credentialName": "roots"},
            "secrets": {"tls": {"existingSecret": "tls", "clientCA": True}},
        },
        "use MUTUAL",
    ),
    "a network that shuts Envoy out": ({"networkPolicy": {"enabled": True}}, "networkPolicy.envoy"),
    "a network that shuts the database out": (
        {"networkPolicy": {**OPEN, "database": {"to": []}}},
        "networkPolicy.database",
    ),
    "a network that shuts Redis out": (
        {"networkPolicy": OPEN, "secrets": {"redis": {"existingSecret": "redis"}}},
        "networkPolicy.redis",
    ),
    "a network that shuts Prometheus out": (
        {"networkPolicy": OPEN, "serviceMonitor": {"enabled": True}},
        "networkPolicy.prometheus",
    ),
    "a network that shuts the scaler's Prometheus out": (
        {"networkPolicy": OPEN, "autoscaling": {"enabled": True, "type": "keda"}},
        "networkPolicy.prometheus",
    ),
    "a network that shuts the provider out": (
        {
            "networkPolicy": OPEN,
            "console": {"login": "oidc", "oidc": {"issuer": "https://login.example.com", "clientId": "a"}},
            "secrets": {"oidcClientSecret": {"existingSecret": "oidc"}},
        },
        "networkPolicy.models",
    ),
    "a network that shuts people out": (
        {"networkPolicy": OPEN, "desk": {"enabled": True}},
        "networkPolicy.operators",
    ),
    "an alert that there is not": (
        {"prometheusRule": {"alerts": {"TruthLensSlow": {"threshold": 1}}}},
        "there is no alert TruthLensSlow",
    ),
}

# Of resources that Kubernetes itself does not know: every key that their definitions have and the chart uses.
CUSTOM_KEYS = {
    "ScaledObject": {
        "scaleTargetRef.name",
        "minReplicaCount",
        "maxReplicaCount",
        "fallback.failureThreshold",
        "fallback.replicas",
        "advanced.horizontalPodAutoscalerConfig.behavior.scaleDown.stabilizationWindowSeconds",
        "triggers.type",
        "triggers.metricType",
        "triggers.metadata.serverAddress",
        "triggers.metadata.query",
        "triggers.metadata.threshold",
    },
    "DestinationRule": {
        "host",
        "trafficPolicy.loadBalancer.simple",
        "trafficPolicy.connectionPool.tcp.connectTimeout",
        "trafficPolicy.connectionPool.tcp.tcpKeepalive.time",
        "trafficPolicy.connectionPool.tcp.tcpKeepalive.interval",
        "trafficPolicy.connectionPool.tcp.tcpKeepalive.probes",
        "trafficPolicy.connectionPool.http.h2UpgradePolicy",
        "trafficPolicy.connectionPool.http.http1MaxPendingRequests",
        "trafficPolicy.connectionPool.http.http2MaxRequests",
        "trafficPolicy.tls.mode",
        "trafficPolicy.tls.credentialName",
    },
    "ServiceMonitor": {
        "jobLabel",
        "selector.matchLabels.*",
        "endpoints.port",
        "endpoints.path",
        "endpoints.interval",
    },
}


@pytest.fixture(scope="module")
def rendered() -> dict[str, Rendered]:
    """What the chart makes of the values of every snapshot."""
    try:
        return dict(zip(CASES, helm_chart.render(list(CASES.values())), strict=True))
    except NoEngineError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def refusals() -> dict[str, Rendered]:
    """What the chart says of values that it refuses."""
    try:
        return dict(zip(REFUSED, helm_chart.render([values for values, _ in REFUSED.values()]), strict=True))
    except NoEngineError as error:
        pytest.skip(str(error))


def _base(name: str) -> dict[str, Any]:
    return yaml.safe_load((DEPLOY / "kubernetes" / name).read_text("utf-8"))


def _example(kind: str, name: str) -> dict[str, Any]:
    text = (DEPLOY / "kubernetes" / "envoy-gateway" / "gateway.yaml").read_text("utf-8")
    return next(
        found["spec"]
        for found in yaml.safe_load_all(text)
        if found["kind"] == kind and found["metadata"]["name"] == name
    )


def _pods(found: Rendered) -> Iterator[dict[str, Any]]:
    """The specifications of all pods, those with a sidecar among them."""
    for deployment in found.of_kind("Deployment"):
        yield deployment["spec"]["template"]["spec"]
    for patch in found.of_kind("ConfigMap"):
        if "patch.yaml" in patch["data"]:
            spec = yaml.safe_load(patch["data"]["patch.yaml"])["spec"]["template"]["spec"]
            yield {**spec, "containers": spec["initContainers"]}


def _without_labels(value: Any) -> Any:
    """Labels and selectors left out: the chart's tell releases and components apart."""
    if isinstance(value, dict):
        return {
            key: _without_labels(item) for key, item in value.items() if key not in ("labels", "matchLabels")
        }
    return [_without_labels(item) for item in value] if isinstance(value, list) else value


def _paths(value: Any, prefix: str = "") -> Iterator[str]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _paths(item, f"{prefix}.{key}" if prefix else key)
    elif isinstance(value, list):
        for item in value:
            yield from _paths(item, prefix)
    else:
        yield prefix


@pytest.mark.parametrize("name", CASES)
def test_objects_are_those_of_the_snapshot(name: str, rendered: dict[str, Rendered]) -> None:
    """The chart makes of the snapshot's values the objects that the snapshot has."""
    found = rendered[name]
    assert found.error is None
    default = None if name == "default" else rendered["default"]
    assert helm_chart.brief(found, default) == helm_chart.snapshot(name)["objects"], (
        "if this is meant, run `python -m tests.deploy.helm_chart`"
    )
    assert found.notes.startswith(f"TruthLens {truthlens.__version__}")


@pytest.mark.parametrize("name", CASES)
def test_kubernetes_takes_the_objects(name: str, rendered: dict[str, Rendered]) -> None:
    """Every object of Kubernetes' own kinds fits its schema, without a key that it does not know."""
    validate = pytest.importorskip(
        "kubernetes_validate",
        reason="needs kubernetes-validate: pip install -e '.[chart]' (what .ci/run does)",
    )
    for found in rendered[name].objects.values():
        if "." not in found["apiVersion"].partition("/")[0] or ".k8s.io/" in found["apiVersion"]:
            if found["apiVersion"].startswith("gateway."):
                continue
            validate.validate(found, "1.33", strict=True)
    for pod in _pods(rendered[name]):
        whole = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "pod"}, "spec": pod}
        validate.validate(whole, "1.33", strict=True)


@pytest.mark.parametrize("case", REFUSED)
def test_what_would_do_harm_is_refused(case: str, refusals: dict[str, Rendered]) -> None:
    """Values that lose data, open what has to be closed, or cannot work are refused by their names."""
    message = refusals[case].error
    assert message is not None
    assert REFUSED[case][1] in message


def test_old_clusters_have_no_sidecars() -> None:
    """A cluster without init containers that are restarted gets no sidecar, but a service."""
    sidecar = {"mode": "sidecar", "reviews": {"storage": "none"}}
    try:
        refused, taken = helm_chart.render([sidecar, {}], kubernetes="1.28.4")
    except NoEngineError as error:
        pytest.skip(str(error))
    assert refused.error is not None
    assert "Kubernetes 1.29" in refused.error
    assert taken.error is None


def test_the_default_is_the_kustomize_base(rendered: dict[str, Rendered]) -> None:
    """By default chart and base make the same Deployment, Service, disruption budget and policy."""
    objects = copy.deepcopy(dict(rendered["default"].objects))
    ours, base = objects["Deployment/truthlens"]["spec"], _base("deployment.yaml")["spec"]
    ours_container, base_container = (spec["template"]["spec"]["containers"][0] for spec in (ours, base))
    assert ours_container.pop("image") == f"{base_container.pop('image')}:{truthlens.__version__}"
    # The chart insists on the database of reviews: several pods have no queue in a file.
    for entry in base_container["env"]:
        entry.get("valueFrom", {}).get("secretKeyRef", {}).pop("optional", None)
    by_name = [
        {entry["name"]: entry for entry in container.pop("env")}
        for container in (ours_container, base_container)
    ]
    assert by_name[0] == by_name[1]
    assert _without_labels(ours) == _without_labels(base)

    service, base_service = objects["Service/truthlens"]["spec"], _base("service.yaml")["spec"]
    assert service["ports"] == base_service["ports"]
    assert service["clusterIP"] == base_service["clusterIP"]
    budget, base_budget = objects["PodDisruptionBudget/truthlens"]["spec"], _base("disruption.yaml")["spec"]
    assert _without_labels(budget) == _without_labels(base_budget)
    policy = yaml.safe_load(objects["ConfigMap/truthlens-policy"]["data"]["truthlens.yaml"])
    assert policy == _base("policy.yaml")


@pytest.mark.parametrize("name", CASES)
def test_selectors_choose_the_pods_of_one_component(name: str, rendered: dict[str, Rendered]) -> None:
    """Each selector chooses pods of one Deployment and no other, and ports are those that pods have."""
    templates = [found["spec"]["template"] for found in rendered[name].of_kind("Deployment")]

    def chosen(selector: dict[str, str]) -> list[dict[str, Any]]:
        return [t for t in templates if selector.items() <= t["metadata"]["labels"].items()]

    for kind, keys in {
        "Deployment": ("selector", "matchLabels"),
        "Service": ("selector",),
        "PodDisruptionBudget": ("selector", "matchLabels"),
        "NetworkPolicy": ("podSelector", "matchLabels"),
    }.items():
        for found in rendered[name].of_kind(kind):
            selector = found["spec"]
            for key in keys:
                selector = selector[key]
            (template,) = chosen(selector)
            (container,) = template["spec"]["containers"]
            ports = {port["name"] for port in container["ports"]}
            if kind == "Service":
                assert {port["targetPort"] for port in found["spec"]["ports"]} <= ports
            if kind == "NetworkPolicy":
                named = {port["port"] for rule in found["spec"]["ingress"] for port in rule["ports"]}
                assert named <= ports
    for monitor in rendered[name].of_kind("ServiceMonitor"):
        labels = monitor["spec"]["selector"]["matchLabels"]
        (service,) = [
            s for s in rendered[name].of_kind("Service") if labels.items() <= s["metadata"]["labels"].items()
        ]
        assert service["metadata"]["labels"][monitor["spec"]["jobLabel"]] == "truthlens"


@pytest.mark.parametrize("name", CASES)
def test_pods_are_sound(name: str, rendered: dict[str, Rendered]) -> None:
    """Mounts have volumes, files that variables name are mounted, and variables are the command's options."""
    root: Any = typer.main.get_command(command_line())
    for pod in _pods(rendered[name]):
        (container,) = pod["containers"]
        volumes = {volume["name"] for volume in pod["volumes"]}
        mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
        assert set(mounts) <= volumes
        assert not container["securityContext"]["allowPrivilegeEscalation"]
        assert container["securityContext"]["readOnlyRootFilesystem"]
        names = [entry["name"] for entry in container["env"]]
        assert len(names) == len(set(names))
        options = {str(option.envvar) for option in root.commands[container["args"][0]].params}
        assert {variable for variable in names if variable.startswith("TRUTHLENS_")} <= options
        for entry in container["env"]:
            if entry["name"].endswith(("_FILE", "_CERT", "_KEY", "_CA")) and "value" in entry:
                assert entry["value"].rpartition("/")[0] in mounts.values()


@pytest.mark.parametrize("name", CASES)
def test_the_chart_holds_no_secret(name: str, rendered: dict[str, Rendered]) -> None:
    """Secrets are named, and never made: neither as objects nor as values of the environment."""
    assert not rendered[name].of_kind("Secret")
    for pod in _pods(rendered[name]):
        plain = {entry["name"] for entry in pod["containers"][0]["env"] if "value" in entry}
        assert not plain & {
            "TRUTHLENS_REDIS",
            "TRUTHLENS_CONSOLE_TOKEN",
            "TRUTHLENS_CONSOLE_OIDC_CLIENT_SECRET",
        }


def test_a_sidecar_merges_with_the_pods_of_an_envoy(rendered: dict[str, Rendered]) -> None:
    """A sidecar's volumes have names of their own, its ext_proc is on loopback, and it outlives Envoy."""
    (pod,) = _pods(rendered["sidecar"])
    assert all(volume["name"].startswith("truthlens-") for volume in pod["volumes"])
    (container,) = pod["containers"]
    assert container["restartPolicy"] == "Always"
    values = {entry["name"]: entry.get("value", "") for entry in container["env"]}
    assert values["TRUTHLENS_EXTPROC"].startswith("127.0.0.1:")
    assert values["TRUTHLENS_HEALTH"].startswith("127.0.0.1:")
    assert not rendered["sidecar"].of_kind("Service")


def test_the_shipped_policy_and_those_of_the_snapshots_are_sound(
    rendered: dict[str, Rendered], tmp_path: Any
) -> None:
    """Policies that become ConfigMaps have no mistakes, but for models that these examples do not list."""
    for name, found in rendered.items():
        for config in found.of_kind("ConfigMap"):
            if "truthlens.yaml" in config["data"] and "auto" not in name:
                path = tmp_path / f"{name}.yaml"
                path.write_text(config["data"]["truthlens.yaml"], "utf-8")
                assert [d.render() for d in check_file(path) if d.severity is Severity.ERROR] == []


def test_alerts_have_one_source(rendered: dict[str, Rendered]) -> None:
    """The chart's rules are those of Prometheus, but for what values change: threshold, time, severity, objectives."""
    source = yaml.safe_load((DEPLOY / "prometheus" / "rules.yaml").read_text("utf-8"))
    ours = rendered["monitoring"].objects["PrometheusRule/truthlens"]["spec"]
    asked = CASES["monitoring"]["prometheusRule"]
    for group, expected in zip(ours["groups"], source["groups"], strict=True):
        assert group["name"] == expected["name"]
        wanted = [rule for rule in expected["rules"] if rule.get("alert") != "TruthLensAbandoned"]
        for rule, changed in zip(wanted, group["rules"], strict=True):
            if change := asked["alerts"].get(rule.get("alert")):
                rule["expr"] = f"{rule['expr'].rpartition(' ')[0]} {change['threshold']}"
                rule["for"], rule["labels"]["severity"] = change["for"], change["severity"]
            slo = rule.get("labels", {}).get("slo")
            if rule.get("record") == "truthlens:slo_objective:ratio" and slo in asked["objectives"]:
                rule["expr"] = f"vector({asked['objectives'][slo]})"
            if slo == "latency":
                rule["expr"] = rule["expr"].replace('le="1.0"', f'le="{asked["latencySeconds"]}"')
            assert changed == rule
    assert 'le="2.5"' in json.dumps(ours).replace("\\", "")


def test_every_alert_has_a_threshold_to_change() -> None:
    """The expression of every alert ends with a comparison and a number, which is what values change."""
    try:
        rules = yaml.safe_load((DEPLOY / "prometheus" / "rules.yaml").read_text("utf-8"))["groups"]
        alerts = [rule["alert"] for group in rules for rule in group["rules"] if "alert" in rule]
        changes = {
            "prometheusRule": {"enabled": True, "alerts": {name: {"threshold": 12.5} for name in alerts}}
        }
        (found,) = helm_chart.render([changes])
    except NoEngineError as error:
        pytest.skip(str(error))
    made = [rule for group in found.of_kind("PrometheusRule")[0]["spec"]["groups"] for rule in group["rules"]]
    for rule in made:
        assert "alert" not in rule or re.search(r"(==|>=|<=|>|<) 12\.5$", rule["expr"])


def test_the_dashboards_are_those_of_grafana(rendered: dict[str, Rendered]) -> None:
    """Every dashboard of deploy/grafana is in a ConfigMap, as it is."""
    found: dict[str, Any] = {}
    for config in rendered["monitoring"].of_kind("ConfigMap"):
        found |= {name: json.loads(text) for name, text in config["data"].items() if name.endswith(".json")}
    assert found == {
        path.name: json.loads(path.read_text("utf-8"))
        for path in (DEPLOY / "grafana" / "dashboards").glob("*.json")
    }


def test_envoy_gateway_is_told_what_the_example_says(rendered: dict[str, Rendered]) -> None:
    """Policies for Envoy Gateway and routes to a pool are those of the example, but for names."""
    example = _example("EnvoyExtensionPolicy", "truthlens")
    assert rendered["envoy-gateway"].of_kind("EnvoyExtensionPolicy")[0]["spec"] == example
    (policy,) = rendered["agent-router"].of_kind("EnvoyExtensionPolicy")
    assert policy["spec"]["extProc"] == example["extProc"]
    pool = rendered["inference-pool"].objects
    assert pool["EnvoyExtensionPolicy/truthlens"]["spec"]["targetRefs"][0]["name"] == "truthlens-checked"
    for name in ("checked", "untouched"):
        (ours,), (theirs,) = (
            pool[f"HTTPRoute/truthlens-{name}"]["spec"]["rules"],
            _example("HTTPRoute", f"llm-{name}")["rules"],
        )
        assert ours.pop("backendRefs")[0]["kind"] == "InferencePool"
        theirs.pop("backendRefs")
        assert ours == theirs


def test_istio_is_told_what_the_envoy_file_says(rendered: dict[str, Rendered]) -> None:
    """Filter and routes of the EnvoyFilter are those of envoy/truthlens.yaml, but for names."""
    envoy = yaml.safe_load((ROOT / "envoy" / "truthlens.yaml").read_text("utf-8"))
    manager = envoy["static_resources"]["listeners"][0]["filter_chains"][0]["filters"][0]["typed_config"]
    expected = manager["http_filters"][0]
    expected_route = manager["route_config"]["virtual_hosts"][0]["routes"][-1]
    (found,) = rendered["istio"].of_kind("EnvoyFilter")
    filter_patch, *route_patches = found["spec"]["configPatches"]
    value = filter_patch["patch"]["value"]
    (rule,) = rendered["istio"].of_kind("DestinationRule")
    grpc = value["typed_config"]["grpc_service"]["envoy_grpc"]
    assert grpc.pop("cluster_name") == f"outbound|18080||{rule['spec']['host']}"
    expected["typed_config"]["grpc_service"]["envoy_grpc"].pop("cluster_name")
    assert value == {**expected, "disabled": True}
    assert [
        patch["match"]["routeConfiguration"]["vhost"]["route"]["name"] for patch in route_patches
    ] == CASES["istio"]["istio"]["routes"]
    for patch in route_patches:
        route = patch["patch"]["value"]
        assert route["response_headers_to_add"] == expected_route["response_headers_to_add"]
        assert route["request_body_buffer_limit"] == expected_route["request_body_buffer_limit"]
        assert route["route"]["timeout"] == expected_route["route"]["timeout"]
        assert set(route["response_headers_to_remove"]) == set(HEADER_NAMES) - set(FAIL_OPEN_HEADERS)


@pytest.mark.parametrize("kind", CUSTOM_KEYS)
def test_custom_resources_have_keys_of_their_definitions(kind: str, rendered: dict[str, Rendered]) -> None:
    """Resources of operators have no key but those of their definitions."""
    found = [item for case in rendered.values() for item in case.of_kind(kind)]
    assert found
    for item in found:
        paths = {re.sub(r"(matchLabels)\..*", r"\1.*", path) for path in _paths(item["spec"])}
        assert paths <= CUSTOM_KEYS[kind]


def test_autoscaling_follows_metrics_that_exist(rendered: dict[str, Rendered]) -> None:
    """Rules of prometheus-adapter, HPA and KEDA speak of metrics that exist, and of each other's names."""
    from tests.deploy.test_monitoring import SERIES

    adapter = yaml.safe_load((DEPLOY / "helm" / "prometheus-adapter.yaml").read_text("utf-8"))["rules"][
        "custom"
    ]
    assert {rule["seriesQuery"].partition("{")[0] for rule in adapter} <= set(SERIES)
    (scaler,) = rendered["autoscaling-prometheus-adapter"].of_kind("HorizontalPodAutoscaler")
    asked = {metric["pods"]["metric"]["name"] for metric in scaler["spec"]["metrics"]}
    assert asked == {rule["name"]["as"] for rule in adapter}
    (scaled,) = rendered["autoscaling-keda"].of_kind("ScaledObject")
    (deployment,) = rendered["autoscaling-keda"].of_kind("Deployment")
    assert scaled["spec"]["scaleTargetRef"]["name"] == deployment["metadata"]["name"]
    assert "replicas" not in deployment["spec"]
    for trigger in scaled["spec"]["triggers"]:
        assert set(re.findall(r"truthlens_\w+", trigger["metadata"]["query"])) <= set(SERIES)


def test_values_fit_their_schema() -> None:
    """Values of defaults, snapshots and refusals fit the schema: the chart's checks come after it."""
    jsonschema.Draft7Validator.check_schema(SCHEMA)
    for changes in [{}, *CASES.values(), *(values for values, _ in REFUSED.values())]:
        jsonschema.validate(merged(DEFAULTS, changes), SCHEMA)


@pytest.mark.parametrize(
    "changes",
    [
        {"replicas": 3},
        {"image": {"digest": "latest"}},
        {"secrets": {"consoleToken": {"value": "secret"}}},
        {"secrets": {"token": {"existingSecret": "a"}}},
        {"autoscaling": {"type": "vpa"}},
        {"resources": {"limits": {"cpu": None}}},
        {"networkPolicy": {"envoy": [{"podselector": {}}]}},
        {"envoyGateway": {"messageTimeout": "10"}},
        {"envoyGateway": {"statusOnError": 200}},
        {"fullnameOverride": "checker"},
        {"upstream": "vllm:8000"},
    ],
    ids=json.dumps,
)
def test_values_that_do_not_exist_or_fit_are_refused(changes: dict[str, Any]) -> None:
    """Values that the chart does not know, or that cannot be meant, do not fit the schema."""
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(merged(DEFAULTS, changes), SCHEMA)


def test_schema_and_values_have_the_same_keys() -> None:
    """Every value has its schema, and every value of the schema its default."""

    def compare(values: dict[str, Any], schema: dict[str, Any], path: str = "") -> None:
        for reference in [schema.get("$ref"), *(part.get("$ref") for part in schema.get("allOf", []))]:
            if reference:
                schema = SCHEMA["definitions"][reference.rpartition("/")[2]]
        # Open maps (labels, alerts by name) have no keys of their own.
        if not schema.get("properties"):
            return
        known = set(schema["properties"]) - ({"global"} if not path else set())
        assert known == set(values), path
        assert schema["additionalProperties"] is False, path
        for key, value in values.items():
            if isinstance(value, dict):
                compare(value, schema["properties"][key], f"{path}.{key}")

    compare(DEFAULTS, SCHEMA)


def test_the_chart_has_the_packages_version() -> None:
    """The image that the chart names by default is that of this version."""
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text("utf-8"))
    assert chart["appVersion"] == chart["version"] == truthlens.__version__
