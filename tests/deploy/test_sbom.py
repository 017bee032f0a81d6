"""The list of parts that the image holds is made by a command that works, and is CycloneDX."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_images_command_lists_packages_with_their_versions(tmp_path: Path) -> None:
    """In a small environment here; ``--validate`` holds it against the schema."""
    venv.create(tmp_path / "env", symlinks=True)
    packages = next((tmp_path / "env").glob("lib/python*/site-packages"))
    info = packages / "jinja2-9.9.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        "Metadata-Version: 2.4\nName: jinja2\nVersion: 9.9\nLicense-Expression: Apache-2.0\n"
    )
    dockerfile = (ROOT / "deploy/Dockerfile").read_text().replace("\\\n", " ")
    (command,) = re.findall(r"cyclonedx-py (environment [^\n]*)", dockerfile)
    words = [
        word.replace("/opt/truthlens/sbom", str(tmp_path / "sbom")).replace(
            "/opt/truthlens/bin", str(tmp_path / "env/bin")
        )
        for word in shlex.split(command)
    ]
    assert "--validate" in words
    subprocess.run([sys.executable, "-m", "cyclonedx_py", *words], cwd=ROOT, check=True, capture_output=True)
    made = json.loads((tmp_path / "sbom.cdx.json").read_text())
    assert made["bomFormat"] == "CycloneDX"
    assert made["metadata"]["component"]["name"] == "truthlens"
    assert [(each["name"], each["version"]) for each in made["components"]] == [("jinja2", "9.9")]
