"""Decide by method and path which requests get a model's answer: one rule for gateway and Envoy.

The two sides of the rule are read differently. That a request gets *no* answer is believed only of paths that
are spelled plainly, so that no reading of any server makes another path of them. That it gets one that can be
checked is believed of whatever a lenient server would serve as such. Everything between is an answer in a
dialect that is not supported here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from functools import lru_cache
from urllib.parse import unquote

from truthlens.core.records.enums import Endpoint


class RequestKind(StrEnum):
    """What a request asks for."""

    CHAT = "chat"
    COMPLETIONS = "completions"
    INVOCATIONS = "invocations"
    """Chat or completions; the body says which."""
    DIALECT = "dialect"
    """An answer, for all that is known, of which neither request nor response can be read."""
    NO_ANSWER = "no-answer"

    @property
    def endpoint(self) -> Endpoint | None:
        """The API, where the path alone says it."""
        return {RequestKind.CHAT: Endpoint.CHAT, RequestKind.COMPLETIONS: Endpoint.COMPLETIONS}.get(self)


# Methods that ask for no new answer.
PASSING_METHODS = ("GET", "HEAD", "OPTIONS", "DELETE")
# Headers by which some servers take another method than the request's. RE2 reads this pattern too.
METHOD_OVERRIDE = "x[^a-z0-9](http[^a-z0-9]method([^a-z0-9]override)?|method[^a-z0-9]override)"

# Endings of paths to which requests are posted that no answer of a model comes back for; ``*`` is one
# segment.
NO_ANSWERS = (
    # vectors, scores, tokens
    "embeddings",
    "embedding",
    "embed",
    "embed_all",
    "embed_sparse",
    "rerank",
    "score",
    "classify",
    "pooling",
    "similarity",
    "moderations",
    "chat/moderations",
    "tokenize",
    "detokenize",
    "apply-template",
    "messages/count_tokens",
    "responses/input_tokens",
    # speech, images, files and what is made of them
    "audio/speech",
    "audio/transcriptions",
    "audio/translations",
    "images/generations",
    "images/edits",
    "images/variations",
    "videos",
    "videos/*/remix",
    "files",
    "uploads",
    "uploads/*/parts",
    "uploads/*/complete",
    "uploads/*/cancel",
    "vector_stores",
    "vector_stores/*",
    "vector_stores/*/search",
    "vector_stores/*/files",
    "vector_stores/*/files/*",
    "vector_stores/*/file_batches",
    "vector_stores/*/file_batches/*/cancel",
    "fine_tuning/jobs",
    "fine_tuning/jobs/*/cancel",
    "fine_tuning/jobs/*/pause",
    "fine_tuning/jobs/*/resume",
    "fine_tuning/checkpoints/*/permissions",
    # the server itself
    "health",
    "healthz",
    "ping",
    "metrics",
    "models/load",
    "models/unload",
    "load_lora_adapter",
    "unload_lora_adapter",
    "sleep",
    "wake_up",
    "start_profile",
    "stop_profile",
    "reset_prefix_cache",
    "reset_mm_cache",
    "flush_cache",
    "api/show",
    "api/pull",
    "api/push",
    "api/copy",
    "api/create",
    "api/blobs/*",
)
# No segment but those that are listed above may be one of these in a path that gets no answer.
_ANSWERING = "chat|completions?|responses|messages|invocations|invoke|converse|generate"
_PLAIN = re.compile("(/[A-Za-z0-9._~:@=-]+)+/?")
_OTHER = f"(?!(?:{_ANSWERING})(?:/|$))[^/]+"
_NO_ANSWER = re.compile(f"(?:/{_OTHER})*/(?:{'|'.join(NO_ANSWERS).replace('*', _OTHER)})")
# Servers that decode, behind proxies that decode; what is encoded more often is a dialect.
_MOST_DECODINGS = 3


def kind_of(method: str, path: str, headers: Mapping[str, str]) -> RequestKind:
    """Return what a request asks for.

    Args:
        method: As sent; only the upper-case names are those of HTTP.
        path: ``:path`` as sent: with its query, in any form of a request target.
        headers: By lower-case name.
    """
    if _method(method, headers) in PASSING_METHODS:
        return RequestKind.NO_ANSWER
    return _remembered(path) if len(path) <= _LONGEST_REMEMBERED else _posted(path)


def _posted(path: str) -> RequestKind:
    if _gets_no_answer(path):
        return RequestKind.NO_ANSWER
    served = _served(path)
    if served[-2:] == ["chat", "completions"]:
        return RequestKind.CHAT
    return {"completions": RequestKind.COMPLETIONS, "invocations": RequestKind.INVOCATIONS}.get(
        served[-1] if served else "", RequestKind.DIALECT
    )


# A server's few paths come again and again; a client may send any, so that only short ones are kept.
_LONGEST_REMEMBERED = 256
_remembered = lru_cache(maxsize=256)(_posted)


def _method(method: str, headers: Mapping[str, str]) -> str:
    """Return the method that a server goes by; if it may be told another, one that is not the request's."""
    if method in PASSING_METHODS and any(re.fullmatch(METHOD_OVERRIDE, name) for name in headers):
        return ""
    return method


def _gets_no_answer(path: str) -> bool:
    plain = path.partition("?")[0]
    if not _PLAIN.fullmatch(plain):
        return False
    segments = plain.lower().strip("/").split("/")
    return not {".", ".."} & {*segments} and _NO_ANSWER.fullmatch("/" + "/".join(segments)) is not None


def _served(path: str) -> list[str]:
    """Return the segments of the path that the most lenient server would serve, in lower case."""
    text = re.sub(r"^[A-Za-z][A-Za-z0-9+.-]*://[^/?#]*", "", path)
    for _ in range(_MOST_DECODINGS):
        text = re.split(r"[?#\x00]", text, maxsplit=1)[0]
        if (decoded := unquote(text)) == text:
            break
        text = decoded
    segments: list[str] = []
    for segment in re.split(r"[/\\]", re.split(r"[?#\x00]", text, maxsplit=1)[0].lower()):
        name = segment.partition(";")[0].strip()
        if name == "..":
            del segments[-1:]
        elif name not in ("", "."):
            segments.append(name)
    return segments
