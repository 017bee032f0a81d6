"""Clients that read streams: the official ones, each told what to ask by one ``Job``, and a bare one that keeps the bytes."""

from __future__ import annotations

import http.client
import json
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import openai

from tests.integration.support.streams.streams import PATHS
from truthlens.core.records.enums import Endpoint

FOLDER = Path(__file__).parent
PATIENCE_S = 60.0


@dataclass(frozen=True, slots=True)
class Job:
    """One stream to ask for; ``helper`` reads it with the library's own accumulating helper (chat only)."""

    endpoint: Endpoint
    body: dict[str, Any]
    headers: Mapping[str, str] = field(default_factory=dict)
    usage: bool = False
    helper: bool = False

    @property
    def asked(self) -> dict[str, Any]:
        """The request's body, without ``stream``, which the clients add."""
        return {**self.body, **({"stream_options": {"include_usage": True}} if self.usage else {})}


@dataclass(slots=True)
class Read:
    """What a client read of a stream; texts and finish reasons by choice."""

    texts: dict[int, str] = field(default_factory=dict)
    finish: dict[int, str] = field(default_factory=dict)
    usage: dict[str, Any] | None = None
    chunks: int = 0
    truthlens: dict[str, Any] | None = None
    reasoning: str = ""
    tools: str = ""
    error: str | None = None


class Reader(Protocol):
    """One client, bound to one base URL."""

    def read(self, job: Job) -> Read: ...

    def close(self) -> None: ...


class PythonReader:
    """The ``openai`` package of Python."""

    def __init__(self, base_url: str) -> None:
        self._client = openai.OpenAI(
            base_url=f"{base_url}/v1", api_key="test-key", max_retries=0, timeout=PATIENCE_S
        )

    def read(self, job: Job) -> Read:
        """What the client makes of the stream; an error of the client is part of it."""
        result = Read()
        try:
            if job.helper:
                self._help(job, result)
            else:
                chat = job.endpoint is Endpoint.CHAT
                resource = self._client.chat.completions if chat else self._client.completions
                with resource.create(**job.asked, stream=True, extra_headers=dict(job.headers)) as stream:
                    for chunk in stream:
                        _take(result, chunk)
        except openai.OpenAIError as error:
            result.error = f"{type(error).__name__}: {error}"
        return result

    def _help(self, job: Job, result: Read) -> None:
        with self._client.chat.completions.stream(**job.asked, extra_headers=dict(job.headers)) as stream:
            for event in stream:
                if event.type == "chunk":
                    _take(result, event.chunk)
            final = stream.get_final_completion()
        result.texts = {choice.index: choice.message.content or "" for choice in final.choices}
        result.finish = {choice.index: choice.finish_reason for choice in final.choices}

    def close(self) -> None:
        """Close its connections."""
        self._client.close()


def _take(result: Read, chunk: Any) -> None:
    result.chunks += 1
    if chunk.usage is not None:
        result.usage = chunk.usage.model_dump(exclude_none=True)
    result.truthlens = (chunk.model_extra or {}).get("truthlens", result.truthlens)
    for choice in chunk.choices:
        delta = getattr(choice, "delta", None)
        text = choice.text if delta is None else delta.content
        result.texts[choice.index] = result.texts.get(choice.index, "") + (text or "")
        if delta is not None:
            result.reasoning += (delta.model_extra or {}).get("reasoning_content") or ""
            result.tools += "".join(call.function.arguments or "" for call in delta.tool_calls or ())
        if choice.finish_reason is not None:
            result.finish[choice.index] = choice.finish_reason


class NodeReader:
    """One of this folder's scripts in a ``node`` process, which reads one stream after the other."""

    def __init__(self, script: str, base_url: str) -> None:
        self._process = subprocess.Popen(
            ["node", str(FOLDER / script), f"{base_url}/v1"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def read(self, job: Job) -> Read:
        """What the script says; its own error is part of it."""
        line = {
            "api": job.endpoint.value,
            "body": job.asked,
            "headers": dict(job.headers),
            "helper": job.helper,
            "includeUsage": job.usage,
        }
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(line) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        assert answer, f"node ended with status {self._process.wait(PATIENCE_S)}"
        value = json.loads(answer)
        by_index = {
            name: {int(key): item for key, item in value[name].items()} for name in ("texts", "finish")
        }
        return Read(**{**value, **by_index})

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait(PATIENCE_S)
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()


def why_no_node() -> str | None:
    """Why the JavaScript clients cannot be run here; ``None`` where they can."""
    if shutil.which("node") is None:
        return "node is not installed, so that the JavaScript clients cannot be run"
    if not (FOLDER / "node_modules").is_dir():
        return "tests/sdk/node_modules is missing: run npm ci --prefix tests/sdk"
    return None


@dataclass(frozen=True, slots=True)
class RawAnswer:
    """A response as it came: its body without the framing, byte for byte; header names in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


def read_raw(host: str, port: int, job: Job) -> RawAnswer:
    """The answer to ``job`` read from the socket.

    Raises:
        http.client.HTTPException: the body ended early, or its framing is wrong.
    """
    connection = http.client.HTTPConnection(host, port, timeout=PATIENCE_S)
    try:
        body = json.dumps({**job.asked, "stream": True})
        headers = {"content-type": "application/json", **job.headers}
        connection.request("POST", PATHS[job.endpoint], body, headers)
        response = connection.getresponse()
        found = {name.lower(): value for name, value in response.getheaders()}
        return RawAnswer(response.status, found, response.read())
    finally:
        connection.close()
