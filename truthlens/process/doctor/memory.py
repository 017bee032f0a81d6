"""How much memory a process may still take."""

from __future__ import annotations

from pathlib import Path


def free_memory(root: Path = Path("/")) -> int | None:
    """Return the bytes that are free, of the machine and its control group; ``None`` where that is not known.

    Args:
        root: where ``proc`` and ``sys`` are.
    """
    found = [each for each in (_machine(root), _group(root)) if each is not None]
    return min(found, default=None)


def _machine(root: Path) -> int | None:
    for line in _lines(root / "proc" / "meminfo"):
        name, _, rest = line.partition(":")
        if name == "MemAvailable":
            return _number(rest.split()[0], 1024)
    return None


def _group(root: Path) -> int | None:
    folder = root / "sys" / "fs" / "cgroup"
    limit = _first(folder / "memory.max")
    used = _first(folder / "memory.current")
    if limit is None or used is None:
        return None
    # Pages of files that nobody has read lately are given back when they are needed.
    parts = (line.split() for line in _lines(folder / "memory.stat"))
    idle = next((_number(value) or 0 for name, value in parts if name == "inactive_file"), 0)
    return max(0, limit - used + idle)


def _first(file: Path) -> int | None:
    lines = _lines(file)
    return _number(lines[0].strip()) if lines else None


def _number(text: str, times: int = 1) -> int | None:
    return int(text) * times if text.isdigit() else None


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text(encoding="ascii").splitlines()
    except (OSError, UnicodeDecodeError):
        return []
