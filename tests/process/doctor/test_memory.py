"""How much memory is free, by what the system says."""

from __future__ import annotations

from pathlib import Path

import pytest

from truthlens.process.doctor.memory import free_memory

MIB = 1 << 20


@pytest.mark.parametrize(
    ("files", "free"),
    [
        ({}, None),
        ({"proc/meminfo": "MemTotal: 9 kB\nMemAvailable:    2048 kB\n"}, 2 * MIB),
        (
            {
                "proc/meminfo": "MemAvailable: 1048576 kB\n",
                "sys/fs/cgroup/memory.max": f"{100 * MIB}\n",
                "sys/fs/cgroup/memory.current": f"{90 * MIB}\n",
                "sys/fs/cgroup/memory.stat": f"anon {50 * MIB}\ninactive_file {30 * MIB}\n",
            },
            40 * MIB,
        ),
        (
            {
                "proc/meminfo": "MemAvailable: 1024 kB\n",
                "sys/fs/cgroup/memory.max": "max\n",
                "sys/fs/cgroup/memory.current": "1\n",
            },
            MIB,
        ),
        ({"sys/fs/cgroup/memory.max": "10\n", "sys/fs/cgroup/memory.current": "20\n"}, 0),
    ],
)
def test_the_smaller_of_machine_and_group_counts(
    tmp_path: Path, files: dict[str, str], free: int | None
) -> None:
    """Pages of files that nobody reads count as free; a group without a bound does not count."""
    for name, text in files.items():
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    assert free_memory(tmp_path) == free
