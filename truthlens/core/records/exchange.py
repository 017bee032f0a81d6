"""The frozen records of what comes in: a request as the stages need it, a response's head, its answers.

A stage never changes a record that it was given; it returns a new one. Nothing here does I/O, knows YAML, protobuf or
HTTP, or decides anything: the records only carry what was decided.

Words (one per idea): *exchange* request plus answer · *passage* one piece of evidence with its provenance · *query*
what the user asked · *span* characters of the answer, start inclusive, end exclusive · *score* one detector's figure,
0 to 1, higher is worse · *verdict* the fused result for an answer · *assessment* the verdicts on an exchange's answers
and what was done to get there · *decision* a named policy of the YAML · *plan* a compiled decision · *mode* · *action* ·
*outcome* everything about one exchange.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from truthlens.core.records.enums import AnswerKind, Endpoint, Provenance, Reason
from truthlens.core.records.retrieval import SearchRecord


@dataclass(frozen=True, slots=True)
class Passage:
    """One piece of evidence.

    ``text`` is data, never an instruction. ``id`` is the label the request gave it (``S0``,
    ``doc_7``), or ``""``; ``parent_id`` the id of the document that it is a piece of. ``rule`` is the code of what made it evidence (``docs/evidence.md``).
    ``source`` names the source that gave it, of one that was retrieved.
    """

    text: str
    provenance: Provenance
    id: str = ""
    title: str = ""
    rule: str = field(default="", compare=False)
    parent_id: str = ""
    source: str = ""


@dataclass(frozen=True, slots=True)
class LeftText:
    """A part of the request that is no evidence: characters ``start`` to ``end`` of message ``message``.

    ``rule`` is the code of what it was taken for (``docs/evidence.md``).
    """

    message: int
    start: int
    end: int
    rule: str


@dataclass(frozen=True, slots=True)
class Message:
    """One chat message, its content parts joined to plain text.

    ``documents`` are parts of its content that are documents by their type, as raw JSON. ``name`` is the name that the
    request gives its author, or ``""``.
    """

    role: str
    text: str
    documents: tuple[object, ...] = ()
    name: str = ""


@dataclass(frozen=True, slots=True)
class Exchange:
    """The request half of an exchange, as the stages need it.

    ``structured`` is true where the client asked for JSON (``response_format`` other than text,
    ``guided_json`` and the like): no warning may be pasted into such an answer. ``echoed`` is text that the
    backend was asked to repeat before the answer (completions with ``echo``). ``choices`` is how many answers were
    asked for (``n``). ``notes`` are codes of what limited the taking of evidence. ``left`` is what is no evidence, and
    ``unchecked`` why an answer cannot be checked, where the request alone says so. ``scope`` is what the operator says the
    exchange is about (trusted headers, the route's ``truthlens-scope-*``), by lower-case name; nothing in it is a client's.
    ``searches`` are those that were made for it, in order.
    """

    endpoint: Endpoint
    model: str
    query: str
    passages: tuple[Passage, ...]
    messages: tuple[Message, ...] = ()
    stream: bool = False
    structured: bool = False
    echoed: str = ""
    choices: int = 1
    notes: tuple[str, ...] = ()
    left: tuple[LeftText, ...] = ()
    unchecked: Reason | None = None
    scope: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}), hash=False)
    searches: tuple[SearchRecord, ...] = ()

    @property
    def not_checkable(self) -> Reason | None:
        """Return why no answer can be checked against text, ``None`` where there is some to check it against."""
        if self.unchecked is not None:
            return self.unchecked
        return None if any(each.text.strip() for each in self.passages) else Reason.NO_CONTEXT


@dataclass(frozen=True, slots=True)
class RequestHead:
    """The request as known before its body.

    ``headers`` has lower-case names; of a repeated header the values are joined by ``", "``. ``route`` is the
    gRPC initial metadata that the operator set on the Envoy route, never anything that a client sent. ``proxy_trace`` are
    the W3C trace headers of Envoy's own span, where it traces.
    """

    method: str
    path: str
    headers: Mapping[str, str]
    route: Mapping[str, str]
    proxy_trace: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, slots=True)
class ResponseHead:
    """Status and headers (lower-case names) of the backend's response."""

    status: int
    headers: Mapping[str, str]

    @property
    def media_type(self) -> str:
        """The body's media type in lower case, without parameters; ``""`` where none is given."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    @property
    def streams(self) -> bool:
        """Whether the body is a stream of server-sent events."""
        return self.media_type == "text/event-stream"


@dataclass(frozen=True, slots=True)
class Facts:
    """What the policy may look at once the body is known.

    ``text`` is the text of all user messages, ``language`` a code such as ``en`` or ``zh``, ``""`` if unknown.
    ``context`` are the other texts of the request; they can only make the plan stricter.
    """

    head: RequestHead
    model: str = ""
    text: str = ""
    language: str = ""
    context: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Answer:
    """One choice of the response: ``text`` is what of it is scored.

    ``lead`` is reasoning that stands right before the text, in the same member. ``reasoning`` is all reasoning
    beside the text, the lead included. ``unread_tokens`` estimates what else a client can show, and nothing here
    reads; ``call_tokens`` what stands in tool calls.
    """

    index: int
    kind: AnswerKind
    text: str = ""
    lead: str = ""
    reasoning: str = ""
    unread_tokens: int = 0
    call_tokens: int = 0


def plain_exchange(query: str, passages: Sequence[str], response: str) -> tuple[Exchange, Answer]:
    """Return the records of an answer that comes with its evidence, as a request's ``documents`` are; blank texts count as none."""
    evidence = tuple(Passage(text, Provenance.DOCUMENTS) for text in passages if text.strip())
    kind = AnswerKind.TEXT if response.strip() else AnswerKind.EMPTY
    return Exchange(Endpoint.CHAT, "", query, evidence), Answer(0, kind, response)
