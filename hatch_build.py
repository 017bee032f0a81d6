"""Build hook: compile protos/ into truthlens/gateway/_pb/ whenever the package is built or installed.

Generated code asserts the versions of its runtime, so it is made at install time and never committed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PROTO = "truthlens/extproc/v1/ext_proc.proto"


def compile_protos(root: Path) -> Path:
    """Write ``_pb/ext_proc_pb2.py`` (and its ``.pyi``) below ``root`` and return its path."""
    from importlib.resources import files

    from grpc_tools import protoc

    source = root / "protos" / PROTO
    target = root / "truthlens" / "gateway" / "_pb"
    target.mkdir(exist_ok=True)
    # -I points at the file's own folder, so that the module lands flat in _pb/ under one short name.
    code = protoc.main(
        [
            "protoc",
            f"-I{source.parent}",
            f"-I{files('grpc_tools') / '_proto'}",
            f"--python_out={target}",
            f"--pyi_out={target}",
            str(source),
        ]
    )
    if code:
        raise RuntimeError(f"protoc ended with {code} on {source}")
    return target / "ext_proc_pb2.py"


# Data that stand outside of the package in the repository and inside of it in a wheel.
WHEEL_DATA = {
    "models/truthlens-minilm-en-v2": "truthlens/_models/truthlens-minilm-en-v2",
    "models/truthlens-reader-en-v1": "truthlens/_models/truthlens-reader-en-v1",
    "models/truthlens-similarity-en-v1": "truthlens/_models/truthlens-similarity-en-v1",
    "config/truthlens.yaml": "truthlens/_config/truthlens.yaml",
}


class ProtoBuildHook(BuildHookInterface):  # type: ignore[type-arg]
    """Hatchling's entry point."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile the protos and add the result to the wheel; an editable install reads the data from the checkout."""
        generated = compile_protos(Path(self.root))
        relative = generated.relative_to(self.root).as_posix()
        build_data["artifacts"] += [relative, relative + "i"]
        if version != "editable":
            build_data["force_include"].update(WHEEL_DATA)


if __name__ == "__main__":
    print(compile_protos(Path(__file__).parent))
