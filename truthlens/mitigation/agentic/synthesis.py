"""Make an answer of a model's text: without wrapping, and citing nothing but what was collected.

A citation of something else is taken out, and its claim stays without one: the evaluation counts that, so
that an answer that lived on invented sources is not accepted.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from truthlens.core.records.agentic_run import CollectedPassage
from truthlens.mitigation.candidate_checks import clean
from truthlens.text.citations import Labels, find_citations, label_key

NO_INFORMATION = "I don't have information about this in the available sources"
"""What an answer says where nothing is found. Detection knows it, and the Chinese one, as a decline."""
NO_INFORMATION_CHINESE = "资料中没有相关信息"

_TAG = re.compile(r"<([A-Za-z_][\w:-]{0,40})>")
_WORD = re.compile(r"[^\s\[\]]{2,80}")
_MOST_WRAPPINGS = 3


def no_information(*, chinese: bool) -> str:
    """Return the sentence for a question that the sources say nothing of."""
    return NO_INFORMATION_CHINESE if chinese else NO_INFORMATION


def final_text(text: str, collected: Sequence[CollectedPassage]) -> str:
    """Return a reply as an answer: no thoughts, no tags or fences around it, no invented citations."""
    return with_known_citations(unwrapped(text), collected)


def unwrapped(text: str) -> str:
    """Return ``text`` without thoughts, and without tags, fences and prefaces around it; it may be ``""``."""
    bare = text[text.rfind("</think>") + len("</think>") :] if "</think>" in text else text
    bare = bare.partition("<think>")[0].strip()
    for _ in range(_MOST_WRAPPINGS):
        bare = clean(bare)
        opening = _TAG.match(bare)
        if opening is None or not bare.endswith(f"</{opening[1]}>"):
            break
        bare = bare[opening.end() :].removesuffix(f"</{opening[1]}>").strip()
    return bare


def with_known_citations(text: str, collected: Sequence[CollectedPassage]) -> str:
    """Return ``text`` without the citations of what is not among ``collected``; those of the others stay.

    In an answer of ours every word in square brackets is a citation, but for links, code and check boxes.
    """
    known = _known(collected)
    pieces: list[str] = []
    done = 0
    for citation in find_citations(text, _labels(known)).citations:
        kept = [label for label in citation.labels if label_key(label) in known]
        if len(kept) == len(citation.labels):
            continue
        start = citation.start
        while not kept and start > done and text[start - 1] in " \t":
            start -= 1
        pieces += (text[done:start], "".join(f"[{label}]" for label in kept))
        done = citation.end
    return "".join((*pieces, text[done:])).strip()


def cited_ids(text: str, collected: Sequence[CollectedPassage]) -> frozenset[str]:
    """Return the ids of those of ``collected`` that ``text`` cites, by their own ids or their documents'."""
    known = _known(collected)
    labels = {
        label_key(label) for each in find_citations(text, _labels(known)).citations for label in each.labels
    }
    return frozenset(
        each.document_id
        for each in collected
        if label_key(each.document_id) in labels or (each.parent_id and label_key(each.parent_id) in labels)
    )


def _known(collected: Sequence[CollectedPassage]) -> frozenset[str]:
    return frozenset(
        label_key(name) for each in collected for name in (each.document_id, each.parent_id) if name
    )


def _labels(known: frozenset[str]) -> Labels:
    return Labels(lambda label: label_key(label) in known, lambda label: _WORD.fullmatch(label) is not None)
