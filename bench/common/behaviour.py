"""Record what a gateway answers to 2,000 scripted exchanges, to compare two trees of this repository.

    python -m bench.common.behaviour record --tree PATH --data FOLDER --out FILE
    python -m bench.common.behaviour compare FILE FILE

The backend and all models are scripted by the text of the request, so that two trees see the same traffic: JSON and
streams, chat and completions, every mode. What differs by nature (times, ports, request ids) is left out.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import hashlib
import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

DECISIONS = {
    "light": "{mode: lightweight, streaming: buffer}",
    "details": "{mode: lightweight, streaming: buffer, details: true}",
    "observe": "{mode: lightweight, streaming: observe, details: true}",
    "mark": "{mode: lightweight, streaming: gate, on_flagged: mark, stream: {max_hold_s: 60}}",
    "withhold": "{mode: lightweight, streaming: gate, on_flagged: withhold, details: true, stream: {max_hold_s: 60}}",
    "stop": "{mode: lightweight, streaming: gate, on_flagged: stop, on_unchecked: block, stream: {max_hold_s: 60}}",
    "standard": "{mode: standard, streaming: buffer, details: true}",
    "judge": "{mode: premium, streaming: buffer, details: true, premium: {verification_models: [second, third], judge_model: judge}}",
    "vote": "{mode: premium, streaming: buffer, details: true, premium: {verification_models: [second, third], consensus: segment_vote}}",
    "debate": "{mode: premium, streaming: buffer, details: true, premium: {verification_models: [second], judge_model: judge, consensus: debate}}",
    "block": "{mode: lightweight, streaming: buffer, on_unchecked: block}",
}
_REF = re.compile(r"item no\. (\d+)")
_TIMES = re.compile(
    r'"(?:duration_s|duration_ms|latency_ms|latency_s|seconds|elapsed_s|queue_s)": ?[0-9.e-]+'
)
_REVIEW_ID = re.compile(r"rv_[0-9a-f]{20}")
_BY_MODEL = re.compile(r'"by_model": (\[[^]]*\])')
_ASKED = re.compile(r'"models": (\[[^]]*\])')
_COUNTERS = re.compile(
    r"^(truthlens_\w+?(?:_total|_count|models_used\w*))(\{[^}]*\})? ([0-9.e+]+)$", re.MULTILINE
)


def policy() -> str:
    """Return the policy: a decision for each way of treating answers, chosen by a trusted header."""
    lines = [
        "hallucination: {enabled: true, threshold: 0.5, timeout_s: 60}",
        "trusted_headers: [x-way]",
        "signals:",
        "  domains:",
        *(f"    - {{name: {name}, headers: {{x-way: [{name}]}}}}" for name in DECISIONS),
        "models:",
        *(f'  - {{name: {name}, base_url: "UPSTREAM/v1"}}' for name in ("first", "second", "third", "judge")),
        "decisions:",
    ]
    for name, configuration in DECISIONS.items():
        lines += [
            f"  - name: {name}",
            f"    rules: {{operator: AND, conditions: [{{type: domain, name: {name}}}]}}",
            f"    plugins: [{{type: hallucination, configuration: {configuration}}}]",
        ]
    return "\n".join(lines) + "\n"


def rows_of(data: Path, count: int, seed: int = 7) -> list[dict[str, Any]]:
    """Return ``count`` labelled rows of several files, the same ones every time."""
    rng = random.Random(seed)
    names = ["ragtruth_qa.train", "written", "factcg_doc", "infotabs.train", "summedits"]
    rows: list[dict[str, Any]] = []
    for name in names:
        with gzip.open(data / f"{name}.jsonl.gz", "rt", encoding="utf-8") as file:
            own = [json.loads(line) for line in file]
        own = [row for row in own if sum(map(len, row["context"])) < 6000 and len(row["response"]) < 1500]
        rows += rng.sample(own, count // len(names))
    rng.shuffle(rows)
    return rows


class Models:
    """The backend, and all models that are asked by modes."""

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        self.rows = rows

    async def answer(self, request: Request) -> Response:
        """Answer by the item that the request speaks of."""
        body = await request.json()
        text = json.dumps(body, ensure_ascii=False)
        found = _REF.search(text)
        if found is None:
            return JSONResponse({"error": {"message": "no item"}}, status_code=400)
        row = self.rows[int(found[1])]
        model = body.get("model", "")
        chat = "messages" in body
        digest = int(hashlib.sha256(text.encode()).hexdigest(), 16)
        if model == "first" and body.get("user") == "client":
            answer = row["response"]
        else:
            sentences = re.split(r"(?<=[.!?]) ", " ".join(row["context"]))
            start = digest % max(1, len(sentences))
            answer = " ".join(sentences[start : start + 2])[:400] or "It is not said."
            if "JSON" in text and digest % 3 == 0:
                answer = json.dumps({"answer": answer, "claims": []})
        common = {"id": f"x-{found[1]}", "created": 1, "model": model}
        usage = {
            "prompt_tokens": len(text) // 4,
            "completion_tokens": len(answer) // 4,
            "total_tokens": (len(text) + len(answer)) // 4,
        }
        if not body.get("stream"):
            choice = {"index": 0, "finish_reason": "stop"}
            choice |= {"message": {"role": "assistant", "content": answer}} if chat else {"text": answer}
            kind = "chat.completion" if chat else "text_completion"
            return JSONResponse({**common, "object": kind, "choices": [choice], "usage": usage})
        return StreamingResponse(self._stream(answer, common, chat), media_type="text/event-stream")

    async def _stream(self, answer: str, common: dict[str, Any], chat: bool) -> AsyncIterator[bytes]:
        kind = "chat.completion.chunk" if chat else "text_completion"
        pieces = re.findall(r"\S+\s*", answer) or [answer]
        for number, piece in enumerate([*pieces, None]):
            delta = {"content": piece} if piece is not None else {}
            choice: dict[str, Any] = {"index": 0, "finish_reason": None if piece is not None else "stop"}
            choice |= {"delta": delta} if chat else {"text": piece or ""}
            yield b"data: " + json.dumps({**common, "object": kind, "choices": [choice]}).encode() + b"\n\n"
            if number % 16 == 15:
                await asyncio.sleep(0)
        yield b"data: [DONE]\n\n"


def request_of(place: int, row: dict[str, Any], ways: list[str]) -> tuple[str, str, dict[str, Any]]:
    """Return way, path and body of one exchange."""
    way = ways[place % len(ways)]
    question = f"{row['query'] or 'What does it say?'} (item no. {place})"
    stream = way in ("observe", "mark", "withhold", "stop") or place % 5 == 0
    common = {"model": "first", "user": "client", **({"stream": True} if stream else {})}
    if place % 11 == 3:
        context = "\n\n".join(row["context"])
        return (
            way,
            "/v1/completions",
            {**common, "prompt": f"Context:\n{context}\n\nQuestion: {question}\n\nAnswer:"},
        )
    if place % 7 == 2:
        messages = [
            {
                "role": "user",
                "content": "<context>\n" + "\n\n".join(row["context"]) + f"\n</context>\n\n{question}",
            }
        ]
        return way, "/v1/chat/completions", {**common, "messages": messages}
    if place % 13 == 4:
        return way, "/v1/chat/completions", {**common, "messages": [{"role": "user", "content": question}]}
    messages = [{"role": "user", "content": question}]
    return way, "/v1/chat/completions", {**common, "messages": messages, "documents": row["context"]}


def free_port() -> int:
    """Return a port that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def plain(text: str) -> str:
    """Return a body without what differs from run to run."""
    text = _REVIEW_ID.sub("rv", _TIMES.sub('"time"', text))
    # In the order in which they answered.
    text = _BY_MODEL.sub(lambda found: f'"by_model": {sorted(json.loads(found[1]), key=str)}', text)
    return _ASKED.sub(lambda found: f'"models": {sorted(json.loads(found[1]))}', text)


async def record(tree: Path, data: Path, out: Path, count: int) -> None:
    """Run the exchanges through the gateway of ``tree`` and write what came back."""
    rows = rows_of(data, count)
    ports = [free_port() for _ in range(4)]
    upstream = f"http://127.0.0.1:{ports[0]}"
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "policy.yaml"
        config.write_text(policy().replace("UPSTREAM", upstream))
        app = Starlette(routes=[Route("/{path:path}", Models(rows).answer, methods=["POST"])])
        backend = uvicorn.Server(uvicorn.Config(app, port=ports[0], log_level="error"))
        serving = asyncio.create_task(backend.serve())
        command = [sys.executable, "-m", "truthlens", "up", "--upstream", upstream, "--config", str(config)]
        for flag, port in zip(("--listen", "--extproc", "--console"), ports[1:], strict=True):
            command += [flag, f"127.0.0.1:{port}"]
        log = (Path(folder) / "log").open("wb")
        gateway = subprocess.Popen(
            command,
            cwd=tree,
            env={**os.environ, "PYTHONPATH": str(tree), "PYTHONHASHSEED": "0"},
            stdout=log,
            stderr=log,
        )
        url, console = f"http://127.0.0.1:{ports[1]}", f"http://127.0.0.1:{ports[3]}"
        found: list[Any] = [None] * len(rows)
        try:
            async with httpx.AsyncClient(timeout=120) as client:
                for _ in range(300):
                    try:
                        if (await client.get(console + "/readyz")).status_code == 200:
                            await client.get(url + "/")
                            break
                    except httpx.HTTPError:
                        pass
                    if gateway.poll() is not None:
                        raise SystemExit((Path(folder) / "log").read_text()[-3000:])
                    await asyncio.sleep(0.2)
                await asyncio.sleep(1.5)
                gate, ways = asyncio.Semaphore(2), list(DECISIONS)

                async def one(place: int) -> None:
                    way, path, body = request_of(place, rows[place], ways)
                    async with gate:
                        answer = await client.post(url + path, json=body, headers={"x-way": way})
                    headers = {
                        name: value
                        for name, value in answer.headers.items()
                        if name.startswith("x-truthlens-") and name != "x-truthlens-latency-ms"
                    }
                    found[place] = [way, path, answer.status_code, headers, plain(answer.text)]

                await asyncio.gather(*(one(place) for place in range(len(rows))))
                metrics = (await client.get(console + "/metrics")).text
        finally:
            gateway.send_signal(signal.SIGINT)
            gateway.wait(30)
            backend.should_exit = True
            await serving
            if any(each is None for each in found):
                print((Path(folder) / "log").read_text()[-3000:])
    counters = {
        f"{m[1]}{m[2] or ''}": float(m[3]) for m in _COUNTERS.finditer(metrics) if "queue" not in m[1]
    }
    out.write_text(json.dumps({"exchanges": found, "counters": counters}))
    print(f"{len(found)} exchanges, statuses {Counter(each[3].get('x-truthlens-status') for each in found)}")


def compare(left: Path, right: Path, most: int) -> int:
    """Print what differs between two records; return how many exchanges do."""
    a, b = (json.loads(path.read_text()) for path in (left, right))
    kinds: Counter[str] = Counter()
    shown = different = 0
    for place, (x, y) in enumerate(zip(a["exchanges"], b["exchanges"], strict=True)):
        parts = [
            name
            for name, p, q in zip(("way", "path", "status", "headers", "body"), x, y, strict=True)
            if p != q
        ]
        different += bool(parts)
        for part in parts:
            kinds[f"{x[0]}: {part}"] += 1
        if parts and shown < most:
            shown += 1
            heads = {k: (x[3].get(k), y[3].get(k)) for k in {*x[3], *y[3]} if x[3].get(k) != y[3].get(k)}
            at = next(
                (i for i, (p, q) in enumerate(zip(x[4], y[4], strict=False)) if p != q),
                min(len(x[4]), len(y[4])),
            )
            print(
                place,
                x[0],
                parts,
                heads,
                x[4][max(0, at - 60) : at + 100],
                "|",
                y[4][max(0, at - 60) : at + 100],
            )
    print(f"{different} of {len(a['exchanges'])} exchanges differ", dict(kinds))
    for name in sorted({*a["counters"], *b["counters"]}):
        if a["counters"].get(name) != b["counters"].get(name):
            print(name, a["counters"].get(name), b["counters"].get(name))
    return different


def main() -> None:
    """Read the arguments."""
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(required=True, dest="command")
    one = commands.add_parser("record")
    one.add_argument("--tree", type=Path, default=Path.cwd())
    one.add_argument("--data", type=Path, required=True)
    one.add_argument("--out", type=Path, required=True)
    one.add_argument("--count", type=int, default=2000)
    two = commands.add_parser("compare")
    two.add_argument("files", type=Path, nargs=2)
    two.add_argument("--most", type=int, default=5)
    arguments = parser.parse_args()
    if arguments.command == "record":
        asyncio.run(record(arguments.tree.resolve(), arguments.data, arguments.out, arguments.count))
    else:
        sys.exit(1 if compare(arguments.files[0], arguments.files[1], arguments.most) else 0)


if __name__ == "__main__":
    main()
