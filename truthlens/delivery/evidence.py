"""Show what of a request was taken as evidence, and what was left: for ``truthlens evidence`` and ``/v1/evidence``.

The object::

    {"status": "checked" | "unchecked", "reason": code | null, "query",
     "passages": [{"text", "provenance", "id", "title", "rule"}], "left": [{"text", "rule"}]}

``status`` is ``checked`` where an answer to the request can be checked; else ``reason`` says why not, as
``X-TruthLens-Reason`` does. ``rule`` is the code of what made a text evidence, or of what it was taken for
(``docs/evidence.md``).
"""

from __future__ import annotations

from truthlens.core.records.enums import Status
from truthlens.core.records.exchange import Exchange, LeftText


def evidence_object(exchange: Exchange) -> dict[str, object]:
    """Return the evidence of a request as JSON; its keys are in the module's docstring.

    Args:
        exchange: The request half, with its messages.
    """
    reason = exchange.not_checkable
    return {
        "status": (Status.CHECKED if reason is None else Status.UNCHECKED).value,
        "reason": reason.value if reason is not None else None,
        "query": exchange.query,
        "passages": [
            {
                "text": passage.text,
                "provenance": passage.provenance.value,
                "id": passage.id,
                "title": passage.title,
                "rule": passage.rule,
            }
            for passage in exchange.passages
        ],
        "left": [{"text": left_text(exchange, left), "rule": left.rule} for left in exchange.left],
    }


def left_text(exchange: Exchange, left: LeftText) -> str:
    """Return the text that is no evidence, ``""`` where the exchange has its message no more."""
    messages = exchange.messages
    return messages[left.message].text[left.start : left.end] if left.message < len(messages) else ""
