"""``make audit``: what can be said of the packages that a deployment installs, and, as loudly, what could not be looked at.

Looked at are the packages that ``truthlens`` with the extras of the image needs, as they are installed here: whether each fits what asks
for it, whether its files are those that were installed, whether its licence is one that we pass on, and whether a vulnerability of it is
known. The last needs a service on the internet (``pip-audit``). Exit status 1: something is wrong; with ``--strict`` 2: something was not
looked at.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

EXTRAS = frozenset({"oidc", "otel", "sql"})
"""What ``deploy/Dockerfile`` installs."""
# Has had known vulnerabilities for years: a service that knows of none of them knows nothing. It is asked for, and not installed.
CANARY = "django", "3.0"
# SPDX, and how packages that tell no SPDX expression write it.
ALLOWED = frozenset(
    {
        "0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "CC0-1.0", "CNRI-Python", "ISC", "LGPL-3.0-only", "MIT", "MIT-0",
        "MPL-2.0", "PSF-2.0", "Zlib", "3-Clause BSD License", "Apache Software License", "BSD License", "ISC License (ISCL)",
        "MIT License", "Mozilla Public License 2.0 (MPL 2.0)",
    }
)  # fmt: skip


def closure(name: str, extras: frozenset[str]) -> tuple[dict[str, metadata.Distribution], list[str]]:
    """Return the installed packages that ``name`` with ``extras`` needs, and what is wrong with them."""
    found: dict[str, metadata.Distribution] = {}
    wrong: list[str] = []
    asked: dict[str, frozenset[str]] = {}
    waiting = [(name, extras)]
    while waiting:
        package, wanted = waiting.pop()
        key = canonicalize_name(package)
        if key in asked and wanted <= asked[key]:
            continue
        asked[key] = asked.get(key, frozenset()) | wanted
        found[key] = metadata.distribution(package)
        for requirement in map(Requirement, found[key].requires or ()):
            named = [{"extra": extra} for extra in (*asked[key], "")]
            if requirement.marker is not None and not any(map(requirement.marker.evaluate, named)):
                continue
            try:
                version = metadata.version(requirement.name)
            except metadata.PackageNotFoundError:
                wrong.append(f"{package} needs {requirement.name}, which is not installed")
                continue
            if not requirement.specifier.contains(version, prereleases=True):
                wrong.append(f"{package} needs {requirement}, and {version} is installed")
            waiting.append((requirement.name, frozenset(requirement.extras)))
    return found, wrong


def licences(package: metadata.Distribution) -> set[str]:
    """Return the licences that a package says it has, of alternatives all."""
    told = package.metadata
    if expression := told.get("License-Expression") or "":
        return set(re.split(r"\s+(?:AND|OR)\s+", expression.strip("()")))
    classified = {
        each.rpartition(" :: ")[2] for each in told.get_all("Classifier", ()) if each.startswith("License ::")
    }
    return classified or set(re.split(r"\s+(?:AND|OR)\s+", (told.get("License") or "none told").strip()))


def changed_files(package: metadata.Distribution) -> Iterator[str]:
    """Yield files that are gone, or differ from the hash in the package's own record."""
    for file in package.files or ():
        path = Path(str(package.locate_file(file)))
        if file.hash is None:
            continue
        if not path.is_file():
            yield f"{file} is gone"
            continue
        digest = hashlib.new(file.hash.mode, path.read_bytes()).digest()
        if base64.urlsafe_b64encode(digest).rstrip(b"=").decode() != file.hash.value:
            yield f"{file} has been changed since it was installed"


def vulnerabilities(packages: dict[str, metadata.Distribution]) -> tuple[list[str], list[str]]:
    """Return the known vulnerabilities, and what could not be looked at."""
    with tempfile.TemporaryDirectory() as folder:
        pins = Path(folder) / "requirements.txt"
        versions = {**{name: package.version for name, package in packages.items()}, CANARY[0]: CANARY[1]}
        pins.write_text("".join(f"{name}=={version}\n" for name, version in versions.items()))
        asked = subprocess.run(
            [sys.executable, "-m", "pip_audit", "-r", str(pins), "--no-deps", "--disable-pip", "--progress-spinner", "off",
             "--timeout", "10", "--format", "json"],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
    try:
        answered = json.loads(asked.stdout)["dependencies"]
    except (ValueError, KeyError, TypeError):
        why = (asked.stderr.strip().splitlines() or ["pip-audit said nothing"])[-1][:200]
        return [], [f"known vulnerabilities of all {len(packages)} packages: no service was reached ({why})"]
    told = {each["name"]: each for each in answered}
    if not told.get(CANARY[0], {}).get("vulns"):
        return [], [
            f"known vulnerabilities of all {len(packages)} packages: the service knows none of {'=='.join(CANARY)} either"
        ]
    wrong = [
        f"{name} {each['version']}: {found['id']}, mended in {', '.join(found['fix_versions']) or 'no version'}"
        for name, each in told.items()
        if name != CANARY[0]
        for found in each.get("vulns", ())
    ]
    return wrong, [
        f"known vulnerabilities of {each}" for each in packages if "vulns" not in told.get(each, {})
    ]


def main() -> int:
    """Look, and print what was found and what was not looked at."""
    packages, wrong = closure("truthlens", EXTRAS)
    others = {name: package for name, package in packages.items() if name != "truthlens"}
    for name, package in sorted(others.items()):
        wrong += [f"{name}: licence {each} is not allowed" for each in sorted(licences(package) - ALLOWED)]
        wrong += [f"{name}: {each}" for each in changed_files(package)]
    known, missing = vulnerabilities(others)
    wrong += known
    print(f"looked at {len(others)} packages: versions, licences, installed files")
    for each in wrong:
        print(f"WRONG: {each}")
    for each in missing:
        print(f"NOT LOOKED AT: {each}")
    return 1 if wrong else 2 if missing and "--strict" in sys.argv[1:] else 0


if __name__ == "__main__":
    sys.exit(main())
