"""Answer the prompts by which TruthLens asks the demo backend for a correction or a check.

A model that is shown evidence and told what is doubtful gets a second look at the question; the demo then
says what the evidence holds.
"""

from __future__ import annotations

import re
from dataclasses import replace

from truthlens.core.records.enums import Provenance
from truthlens.core.records.exchange import Exchange, Passage
from truthlens.prompts.delimiters import PREFIX, unmarked

_PASSAGE = re.compile(f"<{PREFIX}passage[^>]*>\n(.*?)\n</{PREFIX}passage>", re.DOTALL)
_QUESTION = re.compile(f"<{PREFIX}question[^>]*>\n(.*?)\n</{PREFIX}question>", re.DOTALL)


def second_look(exchange: Exchange) -> Exchange | None:
    """Return the question and evidence between tags in ``exchange``'s last message, or ``None``."""
    last = exchange.messages[-1].text if exchange.messages else ""
    question = _QUESTION.search(last)
    if question is None:
        return None
    passages = tuple(Passage(unmarked(text), Provenance.USER) for text in _PASSAGE.findall(last))
    return replace(exchange, query=unmarked(question[1]), passages=passages)
