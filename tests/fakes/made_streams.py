"""Whole streams made from a seed, as the servers of the chat and completions APIs send them, with their oddities."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from random import Random

from truthlens.api.sse.frames import encode
from truthlens.core.records.enums import Endpoint

_WORDS = (
    "The tower", "is", "330", "m", "tall", "真的", "不是", "café", "😀", "𝕏", "e.g.", "3.5", '"quoted"', "a\\b", "<b>", "\u2028",
)  # fmt: skip
_ENDS = (". ", "! ", "。", "\n", "\n\n", "? ", "; ", " ")
_BOM = b"\xef\xbb\xbf"


@dataclass
class MadeStream:
    """A stream and what it says: per choice its text and finish reason; ``tools`` are choices with a tool call."""

    endpoint: Endpoint
    texts: dict[int, str]
    finishes: dict[int, str | None]
    echo: str = ""
    usage: dict[str, int] = field(default_factory=dict)
    tools: set[int] = field(default_factory=set)
    failed: bool = False
    done: bool = False
    wire: bytes = b""


def made_text(dice: Random, most: int = 12) -> str:
    """Sentences with numbers, several scripts, escapes and no blank ends; at least one word."""
    words = [dice.choice(_WORDS) + dice.choice(_ENDS) for _ in range(dice.randint(1, most))]
    return "".join(words).strip() or "x"


def made_stream(dice: Random) -> MadeStream:
    """One stream."""
    maker = _Maker(dice)
    maker.make()
    return maker.stream


def cut(wire: bytes, dice: Random) -> list[bytes]:
    """``wire`` in pieces, cut anywhere."""
    places = sorted(dice.sample(range(len(wire) + 1), min(len(wire) + 1, dice.choice((0, 1, 3, 12)))))
    return [wire[start:end] for start, end in zip([0, *places], [*places, len(wire)], strict=True)]


class _Maker:
    def __init__(self, dice: Random) -> None:
        self._dice = dice
        self._newline = dice.choice((b"\n", b"\n", b"\n", b"\r\n", b"\r\n", b"\r"))
        self._indent = dice.choice((None, None, None, None, 1))
        self._ascii = dice.random() < 0.3
        self._usage_everywhere = dice.random() < 0.2
        self._logprobs = dice.random() < 0.3
        self._parts = dice.random() < 0.1
        self._roles_everywhere = dice.random() < 0.2
        self._by_units = dice.random() < 0.15
        endpoint = dice.choice((Endpoint.CHAT, Endpoint.CHAT, Endpoint.COMPLETIONS))
        self._head: dict[str, object] = {
            "id": "c-1",
            "object": "chat.completion.chunk" if endpoint is Endpoint.CHAT else "text_completion",
            "created": 7,
            "model": "m",
        }
        if dice.random() < 0.3:
            self._head |= {"system_fingerprint": "fp", "obfuscation": "aaaa"}
        if dice.random() < 0.1:
            self._head |= {"nvext": {"worker": 1}}
        self.stream = MadeStream(endpoint, {}, {})
        self._frames: list[bytes] = []

    def make(self) -> None:
        dice, stream = self._dice, self.stream
        count = dice.choice((1, 1, 1, 2, 3))
        indexes = dice.sample(range(count), count)
        if stream.endpoint is Endpoint.COMPLETIONS and dice.random() < 0.3:
            stream.echo = made_text(dice, 2)
        queues = {index: self._deltas_of(index) for index in indexes}
        while any(queues.values()):
            ready = [index for index in indexes if queues[index]]
            together = dice.sample(ready, dice.choice((1, 1, 1, len(ready))))
            self._put([queues[index].pop(0) for index in together])
            self._between()
        self._close()
        head = _BOM if dice.random() < 0.05 else b""
        stream.wire = head + b"".join(self._frames)

    def _deltas_of(self, index: int) -> list[dict[str, object]]:
        dice, stream = self._dice, self.stream
        text = made_text(dice)
        chat = stream.endpoint is Endpoint.CHAT
        found: list[dict[str, object]] = []
        if chat and dice.random() < 0.8:
            found.append(self._choice(index, {"role": "assistant", "content": dice.choice(("", None))}))
        if chat and dice.random() < 0.2:
            found += [self._choice(index, {"reasoning_content": "Think."}) for _ in range(dice.randint(1, 3))]
        found += [self._text(index, piece) for piece in self._cut(stream.echo + text)]
        if chat and dice.random() < 0.1:
            call = {"index": 0, "id": "t", "function": {"name": "f", "arguments": "{}"}}
            found.append(self._choice(index, {"tool_calls": [call]}))
            stream.tools.add(index)
        stream.texts[index] = text
        stream.finishes[index] = None
        if dice.random() < 0.9:
            stream.finishes[index] = "stop"
            if dice.random() < 0.2:
                found[-1]["finish_reason"] = "stop"
            else:
                found.append(self._choice(index, {}, finish="stop"))
        return found

    def _cut(self, text: str) -> list[str]:
        units = _units(text) if self._by_units else list(text)
        count = self._dice.randint(0, min(len(units) - 1, 10)) if len(units) > 1 else 0
        places = sorted(self._dice.sample(range(1, len(units)), count))
        return [
            "".join(units[start:end]) for start, end in zip([0, *places], [*places, len(units)], strict=True)
        ]

    def _text(self, index: int, text: str) -> dict[str, object]:
        if self.stream.endpoint is Endpoint.COMPLETIONS:
            return self._choice(index, {}, text=text)
        content: object = [{"type": "text", "text": text}] if self._parts else text
        role = {"role": "assistant"} if self._roles_everywhere else {}
        return self._choice(index, {**role, "content": content})

    def _choice(
        self, index: int, delta: dict[str, object], *, text: str = "", finish: str | None = None
    ) -> dict[str, object]:
        choice: dict[str, object] = {"index": index}
        if self.stream.endpoint is Endpoint.COMPLETIONS:
            choice["text"] = text
        else:
            choice["delta"] = delta
        if self._logprobs:
            choice["logprobs"] = {"content": []} if delta.get("content") or text else None
        return choice | {"finish_reason": finish}

    def _between(self) -> None:
        chance = self._dice.random()
        if chance < 0.05:
            self._frames.append(b": keep-alive" + self._newline * 2)
        elif chance < 0.07:
            self._frames.append(encode("not of the API", newline=self._newline))
        elif chance < 0.09:
            self._frames.append(self._newline)
        elif chance < 0.11:
            self._put([], prompt_filter_results=[])

    def _close(self) -> None:
        dice, stream = self._dice, self.stream
        if dice.random() < 0.05:
            self._put(None, error={"message": "m", "code": 500})
            stream.failed = True
        if dice.random() < 0.4:
            stream.usage = {"total_tokens": 9}
            self._put([], usage=stream.usage)
        if dice.random() < 0.03:
            self._put([], truthlens={"status": "checked"})
        if dice.random() < 0.8:
            stream.done = True
            self._frames.append(encode("[DONE]", newline=self._newline))
        if dice.random() < 0.1:
            # The last frame's blank line never came.
            self._frames[-1] = self._frames[-1].removesuffix(self._newline)

    def _put(self, choices: list[dict[str, object]] | None, **top: object) -> None:
        body = {**self._head, **({"choices": choices} if choices is not None else {}), **top}
        if self._usage_everywhere:
            body.setdefault("usage", None)
        text = json.dumps(body, indent=self._indent, ensure_ascii=True)
        if not self._ascii:
            plain = json.dumps(body, indent=self._indent, ensure_ascii=False)
            # Half a surrogate pair can only be written as an escape.
            text = (
                plain if plain.isascii() or not any(0xD800 <= ord(each) < 0xE000 for each in plain) else text
            )
        frame = encode(text, newline=self._newline)
        if self._dice.random() < 0.03:
            frame = b": note" + self._newline + b"id: 4" + self._newline + frame
        self._frames.append(frame)


def _units(text: str) -> list[str]:
    """UTF-16 code units, by which some servers cut."""
    data = text.encode("utf-16-be")
    return [data[place : place + 2].decode("utf-16-be", "surrogatepass") for place in range(0, len(data), 2)]
