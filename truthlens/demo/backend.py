"""An OpenAI-compatible server with prepared answers, for trying TruthLens without a model.

Chat and completions, JSON and SSE. It generates nothing; see ``answers`` for what it says.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
import uuid
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, replace

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from truthlens.api.requests import parse_request
from truthlens.core.errors import DialectError
from truthlens.core.records.enums import Endpoint, Provenance
from truthlens.core.records.exchange import Exchange, Passage
from truthlens.core.records.settings import EvidenceRules
from truthlens.demo.conversations import CONVERSATIONS, Conversation, PromptLayout
from truthlens.demo.requests import GROUNDED_MODEL, MODELS, REWORDED_MODEL, UNGROUNDED_MODEL, tool_call
from truthlens.prompts.delimiters import PREFIX, unmarked
from truthlens.text.scripts import HAN
from truthlens.text.sentences import is_chinese, sentences
from truthlens.text.words import STOP_WORDS

_PASSAGE = re.compile(f"<{PREFIX}passage[^>]*>\n(.*?)\n</{PREFIX}passage>", re.DOTALL)
_QUESTION = re.compile(f"<{PREFIX}question[^>]*>\n(.*?)\n</{PREFIX}question>", re.DOTALL)

_WORD = re.compile(rf"[{HAN}]|[^\W_]+")
_NOISE = re.compile(r"[\W_]+")
_COMMON = STOP_WORDS | frozenset("tell 的 是 了 吗 多 少 什 么".split())  # noqa: SIM905  # a list to read
# Share of a passage's words that a context holds which is still that passage.
_SAME_CONTEXT = 0.7
_INVENTED = " An audit by the Velmont Institute in 1987 confirmed this in 4,812 cases and awarded a prize of 90,000 dollars."
_INVENTED_ZH = "维蒙研究所在1987年审核了4812个案例，并为此颁发了九万元奖金。"


@dataclass(frozen=True, slots=True)
class DemoAnswer:
    """Text of an answer, or the conversation whose tool is called first."""

    text: str = ""
    calls: Conversation | None = None


_MAX_CHOICES = 8
_MAX_BODY_BYTES = 16 << 20
# A word; Chinese, which has no spaces, in runs of a few characters.
_PIECE = re.compile(rf"\s*[^\s{HAN}]+|\s*[{HAN}]{{1,4}}|\s+")
_CJK = re.compile(f"[{HAN}]")
_RULES = EvidenceRules()


def demo_app(*, pace_s: float = 0.0) -> Starlette:
    """Return the demo backend as an ASGI application; its routes are those of an OpenAI-compatible server.

    Args:
        pace_s: seconds between the pieces of a streamed answer.
    """
    app = Starlette(
        routes=[
            Route("/v1/chat/completions", _chat, methods=["POST"]),
            Route("/v1/completions", _completions, methods=["POST"]),
            Route("/v1/models", _models, methods=["GET"]),
        ]
    )
    app.state.pace_s = pace_s
    return app


async def _models(_request: Request) -> Response:
    entries = [
        {"id": model, "object": "model", "created": 0, "owned_by": "truthlens-demo"} for model in MODELS
    ]
    return JSONResponse({"object": "list", "data": entries})


async def _chat(request: Request) -> Response:
    return await _answer(request, Endpoint.CHAT)


async def _completions(request: Request) -> Response:
    return await _answer(request, Endpoint.COMPLETIONS)


async def _answer(request: Request, endpoint: Endpoint) -> Response:
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > _MAX_BODY_BYTES:
            return _error(413, f"body is larger than {_MAX_BODY_BYTES} bytes")
    try:
        exchange = parse_request(bytes(body), endpoint, _RULES)
    except DialectError as error:
        return _error(400, str(error))
    fields: dict[str, object] = json.loads(body.decode("utf-8-sig"))
    count = fields.get("n", 1)
    if count is None:
        count = 1
    if not isinstance(count, int) or not 1 <= count <= _MAX_CHOICES:
        return _error(400, f"n must be a whole number from 1 to {_MAX_CHOICES}")
    has_tools = bool(fields.get("tools")) and fields.get("tool_choice") != "none"
    answers = [answer(exchange, has_tools=has_tools, choice=choice) for choice in range(count)]
    if exchange.structured:
        answers = [_structured(given) for given in answers]
    reply = _Reply(exchange, answers)
    if not exchange.stream:
        return JSONResponse(reply.body())
    options = fields.get("stream_options")
    with_usage = isinstance(options, dict) and options.get("include_usage") is True
    events = _events(reply.chunks(with_usage=with_usage), pace_s=request.app.state.pace_s)
    return StreamingResponse(events, media_type="text/event-stream")


class _Reply:
    """The answers to one request, in the API's shapes."""

    def __init__(self, exchange: Exchange, answers: list[DemoAnswer]) -> None:
        self._chat = exchange.endpoint is Endpoint.CHAT
        self._answers = answers
        self._echoed = exchange.echoed
        prefix = "chatcmpl" if self._chat else "cmpl"
        self._head: dict[str, object] = {
            "id": f"{prefix}-demo-{uuid.uuid4().hex[:16]}",
            "created": int(time.time()),
            "model": exchange.model or "demo",
        }
        prompt = sum(_count(message.text) for message in exchange.messages)
        completion = sum(_count(given.text) for given in answers)
        self._usage = {
            "prompt_tokens": prompt,
            "completion_tokens": completion,
            "total_tokens": prompt + completion,
        }

    def body(self) -> dict[str, object]:
        """Return the response to a request without streaming."""
        kind = "chat.completion" if self._chat else "text_completion"
        choices = [self._choice(index, given) for index, given in enumerate(self._answers)]
        return {**self._head, "object": kind, "choices": choices, "usage": self._usage}

    def chunks(self, *, with_usage: bool) -> Iterator[dict[str, object]]:
        """Yield the stream's chunks: per choice its beginning, words and end; then the usage if asked for."""
        kind = "chat.completion.chunk" if self._chat else "text_completion"
        tail: dict[str, object] = {"usage": None} if with_usage else {}
        for index, given in enumerate(self._answers):
            for delta, finish in self._deltas(given):
                choice = {"index": index, **delta, "logprobs": None, "finish_reason": finish}
                yield {**self._head, "object": kind, "choices": [choice], **tail}
        if with_usage:
            yield {**self._head, "object": kind, "choices": [], "usage": self._usage}

    def _choice(self, index: int, given: DemoAnswer) -> dict[str, object]:
        finish = "stop" if given.calls is None else "tool_calls"
        if not self._chat:
            return {
                "index": index,
                "text": self._echoed + given.text,
                "logprobs": None,
                "finish_reason": finish,
            }
        message: dict[str, object] = {"role": "assistant", "content": given.text, "refusal": None}
        if given.calls is not None:
            message |= {"content": None, "tool_calls": [tool_call(given.calls)]}
        return {"index": index, "message": message, "logprobs": None, "finish_reason": finish}

    def _deltas(self, given: DemoAnswer) -> Iterator[tuple[dict[str, object], str | None]]:
        if not self._chat:
            for piece in _pieces(self._echoed + given.text):
                yield {"text": piece}, None
            yield {"text": ""}, "stop"
            return
        if given.calls is not None:
            call = {"index": 0, **tool_call(given.calls)}
            yield {"delta": {"role": "assistant", "content": None, "tool_calls": [call]}}, None
            yield {"delta": {}}, "tool_calls"
            return
        yield {"delta": {"role": "assistant", "content": ""}}, None
        for piece in _pieces(given.text):
            yield {"delta": {"content": piece}}, None
        yield {"delta": {}}, "stop"


async def _events(chunks: Iterator[dict[str, object]], *, pace_s: float) -> AsyncIterator[bytes]:
    for chunk in chunks:
        await asyncio.sleep(pace_s)
        yield f"data: {json.dumps(chunk, ensure_ascii=False)}\n\n".encode()
    yield b"data: [DONE]\n\n"


def _structured(given: DemoAnswer) -> DemoAnswer:
    if given.calls is not None:
        return given
    return DemoAnswer(json.dumps({"answer": given.text}, ensure_ascii=False))


def _pieces(text: str) -> list[str]:
    return _PIECE.findall(text)


def _count(text: str) -> int:
    """Estimate the tokens of a text: words, and each Chinese character."""
    return len(text.split()) + len(_CJK.findall(text))


def _error(status: int, message: str) -> JSONResponse:
    error = {"message": message, "type": "invalid_request_error", "param": None, "code": None}
    return JSONResponse({"error": error}, status_code=status)


def answer(exchange: Exchange, *, has_tools: bool, choice: int = 0) -> DemoAnswer:
    """Return the demo's answer to a request.

    A question of an example conversation gets that conversation's answer. Every other request gets the sentence
    of its own context that shares most words with the question, or the admission that there is none.

    Args:
        exchange: The parsed request; its model picks the grounded, the reworded (where there is one) or the
            ungrounded answer. The model ``demo`` gives the grounded one first and takes turns where several choices are asked for. On a
            second look (``second_look``) every model gives the grounded one.
        has_tools: Whether the request offers tools.
        choice: Which of several choices this is, from 0.
    """
    again = second_look(exchange)
    ungrounded = again is None and (
        exchange.model == UNGROUNDED_MODEL or (_takes_turns(exchange.model) and choice % 2 == 1)
    )
    exchange = again or exchange
    conversation = _matching(exchange)
    if conversation is None:
        return DemoAnswer(_own_answer(exchange, ungrounded=ungrounded))
    if conversation.layout is PromptLayout.TOOL and has_tools and not exchange.passages:
        return DemoAnswer(calls=conversation)
    if exchange.model == REWORDED_MODEL and conversation.reworded:
        return DemoAnswer(conversation.reworded)
    return DemoAnswer(conversation.ungrounded if ungrounded else conversation.grounded)


def _takes_turns(model: str) -> bool:
    return model not in (GROUNDED_MODEL, REWORDED_MODEL, UNGROUNDED_MODEL)


def _matching(exchange: Exchange) -> Conversation | None:
    """Return the conversation whose question is asked, unless the request brings its own context.

    A context in which a word was changed is still the conversation's: the answer stays, and is no longer
    supported.
    """
    query = _normal(exchange.query)
    given = _words(" ".join(passage.text for passage in exchange.passages))
    for conversation in CONVERSATIONS:
        if _normal(conversation.question) != query:
            continue
        if not given or any(_mostly(_words(passage), within=given) for passage in conversation.passages):
            return conversation
    return None


def _own_answer(exchange: Exchange, *, ungrounded: bool) -> str:
    chinese = is_chinese(exchange.query)
    asked = _words(exchange.query)
    best, most = "", 0
    for passage in exchange.passages:
        for start, end in sentences(passage.text):
            sentence = passage.text[start:end]
            shared = len(asked & _words(sentence))
            if shared > most:
                best, most = sentence, shared
    if not best:
        best = "我没有关于这个问题的信息。" if chinese else "I don't have information about that."
    return best + (_INVENTED_ZH if chinese else _INVENTED) if ungrounded else best


def _mostly(words: set[str], *, within: set[str]) -> bool:
    return len(words & within) >= _SAME_CONTEXT * len(words)


def _normal(text: str) -> str:
    return _NOISE.sub(" ", text.casefold()).strip()


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.casefold())) - _COMMON


def second_look(exchange: Exchange) -> Exchange | None:
    """Return the question and evidence between tags in ``exchange``'s last message, or ``None``.

    TruthLens asks so for a correction or a check: a model that is shown evidence and told what is doubtful
    gets a second look at the question.
    """
    last = exchange.messages[-1].text if exchange.messages else ""
    question = _QUESTION.search(last)
    if question is None:
        return None
    passages = tuple(Passage(unmarked(text), Provenance.USER) for text in _PASSAGE.findall(last))
    return replace(exchange, query=unmarked(question[1]), passages=passages)
