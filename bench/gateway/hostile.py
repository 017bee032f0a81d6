"""Measure what one hostile body costs other traffic, through a real Envoy, at three sizes.

A probe client sends one small exchange after the other, which wants a verdict, while one hostile exchange
runs. Told per body and size: how long the longest probe took, how many probes were not checked, seconds and
status of the hostile exchange itself, resident memory at its peak and after a while, and the CPU that was
still spent on it after its reply.

    python -m bench.gateway.hostile [--tree FOLDER]... [--size BYTES]... [--only NAME]...

With ``--tree`` the sidecar runs the code of another working tree, which must have its own models; twice, and
the figures are side by side.
"""

from __future__ import annotations

import gzip
import json
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import httpx
from rich.console import Console
from rich.table import Table

from bench.common.script import command, machine, write_result
from bench.gateway.run import ANSWER, REQUEST, cpu_seconds, rss_mb
from tests.integration.support.backend import Raw, Received, completion, http, json_reply
from tests.integration.support.stack import Stack

POLICY = """\
hallucination: {enabled: true, default_mode: lightweight, threshold: 0.99, on_unchecked: block}
"""
SIZES = (1_000_000, 5_000_000, 16_000_000)
WARM_UP, BEFORE_S, SETTLED_S, PATIENCE_S = 20, 1.0, 4.0, 120.0
_FROM = "x-hostile"


@dataclass(frozen=True)
class Attack:
    """One kind of body; ``request`` and ``response`` make them of about a number of bytes."""

    name: str
    request: Callable[[int], bytes] | None = None
    response: Callable[[int], bytes] | None = None
    detect: bool = False


def repeated(piece: str, size: int) -> str:
    return piece * max(1, size // len(piece.encode()))


def asking(**fields: Any) -> bytes:
    """Return the normal request with further members, or other messages before its own."""
    messages = [*fields.pop("before", []), *REQUEST["messages"]]
    return json.dumps({**REQUEST, **fields, "messages": messages}, ensure_ascii=False).encode()


def with_value(base: bytes, value: str) -> bytes:
    """Return a JSON object with one more member, of JSON text."""
    return base[:-1] + b', "x": ' + value.encode() + b"}"


def message(role: str, piece: str) -> Callable[[int], bytes]:
    return lambda size: asking(before=[{"role": role, "content": repeated(piece, size)}])


def answering(content: str, *, choices: int = 1) -> bytes:
    body = completion(content)
    first = body["choices"][0]
    return json.dumps({**body, "choices": [{**first, "index": place} for place in range(choices)]}).encode()


def detecting(context: Any, response: str) -> bytes:
    return json.dumps({"context": context, "query": "When?", "response": response}).encode()


def listed(item: str, size: int) -> str:
    return "[" + ",".join([item] * (size // (len(item) + 1))) + "]"


SHOP = "The shop is open at five. "
ATTACKS = (
    Attack("control: a normal exchange", lambda _size: asking()),
    Attack("request: list of lists", lambda size: with_value(asking(), listed("[]", size))),
    Attack("request: list of objects", lambda size: with_value(asking(), listed('{"a":{}}', size))),
    Attack("request: system '1. a'", message("system", "1. a\n")),
    Attack("request: user sections", message("user", "Context:\na b\nQuestion:\n")),
    Attack("request: plain evidence", message("tool", SHOP)),
    Attack("request: short words", message("tool", "a.")),
    Attack("request: emoji", message("user", "\U0001f600 ")),
    Attack("request: many documents", lambda size: asking(documents=["a"] * (size // 5))),
    Attack("answer: list of lists", response=lambda size: with_value(answering(ANSWER), listed("[]", size))),
    Attack("answer: one long", response=lambda size: answering(repeated(SHOP, size))),
    Attack("answer: short words", response=lambda size: answering(repeated("a.", size))),
    Attack("answer: choices", response=lambda size: answering(ANSWER, choices=size // 330)),
    Attack("detect: long answer", lambda size: detecting(SHOP, repeated(SHOP, size)), detect=True),
    Attack("detect: both long", lambda size: detecting(repeated(SHOP, size // 2), repeated(SHOP, size // 2)), detect=True),
    Attack("detect: many passages", lambda size: detecting(["a"] * (size // 5), ANSWER), detect=True),
)  # fmt: skip


class _Background:
    """Runs in a thread of its own from ``with`` on until its end."""

    def __init__(self) -> None:
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(60)

    def _run(self) -> None:
        raise NotImplementedError


class Probes(_Background):
    """Sends small exchanges one after the other until told to stop."""

    def __init__(self, url: str) -> None:
        self.taken: list[tuple[float, float, str]] = []
        """When each began, the seconds that it took, and its status."""
        self._url = url
        super().__init__()

    def _run(self) -> None:
        with httpx.Client(timeout=60) as client:
            while not self._stop.is_set():
                began = time.perf_counter()
                response = client.post(self._url, json=REQUEST)
                status = response.headers.get("x-truthlens-status", "")
                if status != "checked":
                    status += f" {response.headers.get('x-truthlens-reason', '')}"
                self.taken.append((began, time.perf_counter() - began, status.strip()))
                self._stop.wait(0.01)


class Peak(_Background):
    """The highest resident memory of a process."""

    def __init__(self, pid: int) -> None:
        self.mb = 0.0
        self._pid = pid
        super().__init__()

    def _run(self) -> None:
        while not self._stop.wait(0.02):
            self.mb = max(self.mb, rss_mb(self._pid))


def run(tree: Path, attack: Attack, size: int) -> dict[str, Any]:
    """Return the figures of one body, in its own deployment, so that no other's memory is counted."""
    with tempfile.TemporaryDirectory() as folder:
        hostile = attack.response(size) if attack.response else b""

        def reply(request: Received) -> Raw:
            if _FROM in request.headers and hostile:
                return http(hostile)
            return json_reply(completion(ANSWER))

        stack = Stack(Path(folder), POLICY, environ=_code_of(tree))
        stack.backend.reply = reply
        try:
            stack.start()
            assert stack.sidecar is not None
            return _measured(stack, stack.sidecar.pid, attack, size)
        finally:
            stack.stop()


def _code_of(tree: Path) -> dict[str, str]:
    """Return what makes Python use the code of ``tree``, not that of the folder in which this runs."""
    return {"PYTHONPATH": str(tree), "PYTHONSAFEPATH": "1"}


def _measured(stack: Stack, pid: int, attack: Attack, size: int) -> dict[str, Any]:
    url = f"{stack.url}/v1/chat/completions"
    for _ in range(WARM_UP):
        httpx.post(url, json=REQUEST, timeout=60).raise_for_status()
    body = attack.request(size) if attack.request else asking()
    headers = {"content-type": "application/json", _FROM: "1"}
    if not attack.detect and attack.request:
        # As small on its way as an attacker would make it.
        body, headers["content-encoding"] = gzip.compress(body, 6), "gzip"
    target = f"{stack.console_url}/v1/detect" if attack.detect else url
    with Probes(url) as probes, Peak(pid) as peak:
        time.sleep(BEFORE_S)
        began = time.perf_counter()
        try:
            response = httpx.post(target, content=body, headers=headers, timeout=PATIENCE_S)
            status = f"{response.status_code} {_said(response)}"
        except httpx.HTTPError as error:
            status = type(error).__name__
        seconds = time.perf_counter() - began
        cpu = cpu_seconds(pid)
        time.sleep(SETTLED_S)
        after_cpu = cpu_seconds(pid) - cpu
    own = [(at, took, said) for at, took, said in probes.taken if at + took >= began]
    usual = statistics.median([took for at, took, _ in probes.taken if at + took < began])
    return {
        "body": attack.name,
        "size": size,
        "sent": len(body),
        "worst_probe_s": max(took for _, took, _ in own),
        "usual_probe_s": usual,
        "probes": len(own),
        "not_checked": sum(said != "checked" for _, _, said in own),
        "seconds": seconds,
        "status": status,
        "peak_mb": peak.mb,
        "after_mb": rss_mb(pid),
        "cpu_after_s": after_cpu,
    }


def _said(response: httpx.Response) -> str:
    if "x-truthlens-status" in response.headers:
        return f"{response.headers['x-truthlens-status']} {response.headers.get('x-truthlens-reason', '')}".strip()
    try:
        said = response.json()
    except ValueError:
        return ""
    return f"{said.get('status', '')} {said.get('reason') or ''}".strip() if isinstance(said, dict) else ""


def show(rows: Sequence[dict[str, Any]], trees: Sequence[str]) -> None:
    """Print the rows of all trees, those of one body and size one below the other."""
    table = Table(title=machine())
    columns = ("body", "MB", "tree", "worst probe s", "usual ms", "not checked", "its seconds", "its status",
               "peak MB", "after MB", "CPU s after")  # fmt: skip
    for column in columns:
        table.add_column(column, justify="left" if column in ("body", "tree", "its status") else "right")
    order = {tree: place for place, tree in enumerate(trees)}
    for row in sorted(rows, key=lambda row: (row["number"], row["size"], order[row["tree"]])):
        table.add_row(
            row["body"],
            f"{row['size'] / 1e6:g}",
            row["tree"],
            f"{row['worst_probe_s']:.2f}",
            f"{row['usual_probe_s'] * 1000:.0f}",
            f"{row['not_checked']} of {row['probes']}",
            f"{row['seconds']:.1f}",
            row["status"],
            f"{row['peak_mb']:.0f}",
            f"{row['after_mb']:.0f}",
            f"{row['cpu_after_s']:.1f}",
        )
    Console(width=170).print(table)


def main() -> None:
    parser = command(__doc__)
    parser.add_argument(
        "--tree", type=Path, action="append", help="working tree of the sidecar; default: this one"
    )
    parser.add_argument("--size", type=int, action="append", help="bytes of a body, decoded")
    parser.add_argument("--only", action="append", help="part of a body's name")
    options = parser.parse_args()
    trees = [tree.resolve() for tree in options.tree or [Path(__file__).parents[2]]]
    rows = []
    for number, attack in enumerate(ATTACKS):
        if options.only and not any(part in attack.name for part in options.only):
            continue
        for size in options.size or SIZES:
            for tree in trees:
                row = {**run(tree, attack, size), "tree": tree.name, "number": number}
                rows.append(row)
                print(json.dumps(row), flush=True)
    write_result(options.out, "hostile", {"machine": machine(), "rows": rows})
    show(rows, [tree.name for tree in trees])


if __name__ == "__main__":
    main()
