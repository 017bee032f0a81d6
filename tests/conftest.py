"""What every test starts from."""

from __future__ import annotations

import functools
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import certifi
import pytest
import structlog
from hypothesis import HealthCheck, settings

# No test asserts on time: a busy machine is no fault of the code.
# The same draws in every run, so that a change is what breaks a test; those of a nightly run are new.
settings.register_profile(
    "truthlens",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=os.environ.get("TRUTHLENS_ATTACK") != "nightly",
)
settings.load_profile("truthlens")


# pytest-xdist sets it for its workers, and a console made when its module is imported keeps it.
os.environ.pop("COLUMNS", None)

# What is compiled stays for the next process: tests start more than a hundred.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# Tests call no server that has a public certificate, and each client would read a hundred and more of them for nothing. One will do.
_TRUSTED = Path(certifi.where()).read_text()
_AUTHORITY = Path(tempfile.mkdtemp(prefix="truthlens-tests-"), "authority.pem")
_AUTHORITY.write_text(
    _TRUSTED[_TRUSTED.index("-----BEGIN") : _TRUSTED.index("-----END")] + "-----END CERTIFICATE-----\n"
)
_AUTHORITY.parent.chmod(0o755)  # tests that become another user read it too
os.environ["SSL_CERT_FILE"] = str(_AUTHORITY)

# Processes that tests start keep their state and review queue here, not in the folders of whoever runs the tests.
os.environ["XDG_STATE_HOME"] = tempfile.mkdtemp(prefix="truthlens-tests-")
os.environ["TRUTHLENS_REVIEW_DATABASE"] = f"sqlite:///{os.environ['XDG_STATE_HOME']}/reviews.db"

_ROOT = Path(__file__).parent
# What all tests of a folder or file are, and what a test is that asks for a fixture, whatever else it asks for.
_BY_PATH = {
    "attack": "attack",
    "bench": "bench",
    "browser": "browser",
    "chaos": "chaos",
    "integration": "integration",
    "process/test_serving.py": "integration",
    "api/test_made_streams.py": "slow",
    "desk/test_proposal.py": "slow",
    "lab/calibrate/test_calibration.py": "slow",
    "mitigation/test_bounds_of_claims.py": "slow",
    "cli/test_models.py": "training",
    "detection/models/test_torch_runtime.py": "training",
    **{f"lab/{name}": "training" for name in ("export", "fetch", "reader", "train")},
    **{f"lab/test_{name}.py": "training" for name in ("peer", "similarity", "workshop")},
}
_BY_FIXTURE = {
    "deployment": "envoy",
    "stream_deployment": "envoy",
    "fresh_stack": "envoy",
    "postgres": "server",
    "redis_server": "server",
}
_NOT_QUICK = frozenset(
    ("attack", "bench", "browser", "chaos", "envoy", "integration", "server", "slow", "training")
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--quick`` and ``--chaos``: what ``make quick`` and ``make test-chaos`` run."""
    parser.addoption("--chaos", action="store_true", help="with tests/chaos, which takes minutes")
    parser.addoption(
        "--quick", action="store_true", help=f"without the markers {', '.join(sorted(_NOT_QUICK))}"
    )


def pytest_configure() -> None:
    """Refuse a place that is no longer there: its tests would lose their marker in silence."""
    if gone := [name for name in _BY_PATH if not (_ROOT / name).exists()]:
        raise pytest.UsageError(f"tests/conftest.py marks {', '.join(gone)}, which is not there")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave folders out before their modules are imported, for that is what collecting costs."""
    marks = _marks_of(collection_path)
    left_out = (config.getoption("quick") and marks & _NOT_QUICK) or (
        "chaos" in marks and not config.getoption("chaos")
    )
    return True if left_out else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark tests by their place, their fixtures and their parameters, before ``-m`` looks at the marks.

    Files with tests that are not quick come first: at the end of a run no worker then waits for another's long file.
    """
    long_files: set[Path] = set()
    for item in items:
        marks = set(_marks_of(item.path))
        marks |= {_BY_FIXTURE[name] for name in getattr(item, "fixturenames", ()) if name in _BY_FIXTURE}
        params = getattr(getattr(item, "callspec", None), "params", {}).values()
        if any(isinstance(each, str) and each == "postgresql" for each in params):
            marks.add("server")
        for mark in marks:
            item.add_marker(mark)
        if any(mark.name in _NOT_QUICK for mark in item.iter_markers()):
            long_files.add(item.path)
    items.sort(key=lambda item: item.path not in long_files)
    if config.getoption("quick"):
        slow = [item for item in items if any(mark.name in _NOT_QUICK for mark in item.iter_markers())]
        config.hook.pytest_deselected(items=slow)
        left = set(map(id, slow))
        items[:] = [item for item in items if id(item) not in left]


@functools.cache
def _marks_of(path: Path) -> frozenset[str]:
    """Return the markers of all tests below ``path``, a folder or file."""
    if not path.is_relative_to(_ROOT):
        return frozenset()
    place = path.relative_to(_ROOT)
    return frozenset(mark for name, mark in _BY_PATH.items() if place.is_relative_to(name))


@pytest.fixture(autouse=True)
def logging_defaults() -> Iterator[None]:
    """Commands configure the process's log; the next test must not inherit that."""
    yield
    structlog.reset_defaults()
