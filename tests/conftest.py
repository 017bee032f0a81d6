"""What every test starts from."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator

import pytest
import structlog
from hypothesis import HealthCheck, settings

# No test asserts on time: a busy machine is no fault of the code.
settings.register_profile("truthlens", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("truthlens")


# pytest-xdist sets it for its workers, and a console made when its module is imported keeps it.
os.environ.pop("COLUMNS", None)

# Processes that tests start keep their review queue here, not in the folder of whoever runs the tests.
os.environ["XDG_STATE_HOME"] = tempfile.mkdtemp(prefix="truthlens-tests-")


@pytest.fixture(autouse=True)
def logging_defaults() -> Iterator[None]:
    """Commands configure the process's log; the next test must not inherit that."""
    yield
    structlog.reset_defaults()
