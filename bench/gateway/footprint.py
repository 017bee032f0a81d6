"""Measure what a sidecar holds before its first request: its modules, and its resident memory.

``python -m bench.gateway.footprint`` starts ``truthlens serve`` with the shipped policy, with a review queue and
without one, and with ``--tree FOLDER`` the same of another checkout, for before and after.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

from bench.gateway.run import rss_mb
from tests.fakes.ports import free_port

ROOT = Path(__file__).parents[2]
# What starts the rest of the modules has begun by then, such as the first scoring of the warm-up.
_SETTLED_S = 2.0
_LISTS_MODULES = (
    "import atexit, pathlib, sys; from truthlens.cli import main;"
    "atexit.register(lambda: pathlib.Path(sys.argv[1]).write_text('\\n'.join(sys.modules)));"
    "main(sys.argv[2:])"
)


def measured(tree: Path, *words: str) -> tuple[int, int, float]:
    """Return the modules of the package, all modules, and resident MB of a sidecar of ``tree``."""
    with tempfile.TemporaryDirectory() as folder:
        modules, console = Path(folder, "modules"), f"127.0.0.1:{free_port()}"
        arguments = ["serve", "--console", console, "--extproc", f"127.0.0.1:{free_port()}", *words]
        process = subprocess.Popen(
            [sys.executable, "-c", _LISTS_MODULES, str(modules), *arguments, "--drain-notice", "0"],
            cwd=tree,
            env={**os.environ, "PYTHONPATH": str(tree)},
            stdout=subprocess.DEVNULL,
        )
        try:
            while not _is_ready(console):
                if process.poll() is not None:
                    raise SystemExit("the sidecar has ended")
                time.sleep(0.05)
            time.sleep(_SETTLED_S)
            memory = rss_mb(process.pid)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(30)
        names = modules.read_text().split()
    return sum(name.split(".")[0] == "truthlens" for name in names), len(names), memory


def _is_ready(console: str) -> bool:
    try:
        with urlopen(f"http://{console}/readyz") as reply:
            return bool(reply.status == 200)
    except URLError:
        return False


def main() -> None:
    """Print a line for each tree and way to start."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tree", type=Path, help="another checkout, measured first")
    other = parser.parse_args().tree
    for tree in (*([other.resolve()] if other else []), ROOT):
        for way in ("with a review queue", "without one"):
            with tempfile.TemporaryDirectory() as folder:
                url = f"sqlite:///{folder}/reviews.db" if way.startswith("with ") else "none"
                own, every, memory = measured(tree, "--review-database", url)
            print(f"{tree} {way}: {own} modules of truthlens, {every} in all, {memory:.0f} MB resident")


if __name__ == "__main__":
    main()
