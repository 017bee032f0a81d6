"""Choose which answer the demo backend gives to a request.

A question of an example conversation gets that conversation's answer. Every other request gets the sentence
of its own context that shares most words with the question, or the admission that there is none.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from truthlens.core.records.exchange import Exchange
from truthlens.demo.conversations import CONVERSATIONS, Conversation, PromptLayout
from truthlens.demo.correction_replies import second_look
from truthlens.demo.requests import GROUNDED_MODEL, REWORDED_MODEL, UNGROUNDED_MODEL
from truthlens.text.scripts import HAN
from truthlens.text.sentences import is_chinese, sentences
from truthlens.text.words import STOP_WORDS

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


def answer(exchange: Exchange, *, has_tools: bool, choice: int = 0) -> DemoAnswer:
    """Return the demo's answer to a request.

    Args:
        exchange: The parsed request; its model picks the grounded, the reworded (where there is one) or the
            ungrounded answer. The model ``demo`` gives the grounded one first and takes turns where several choices are asked for. On a
            second look (``correction_replies``) every model gives the grounded one.
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
