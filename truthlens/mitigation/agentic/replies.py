"""Ask for one JSON object of a given form, and once more, with the error, where the reply is none."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import pydantic

from truthlens.core.records.calls import CUT_OFF, Ask, ModelRequest
from truthlens.mitigation.agentic.tools.bounds import reasons
from truthlens.prompts import delimiters, render
from truthlens.prompts.forms import Forms
from truthlens.prompts.json_replies import one_object

_Reply = TypeVar("_Reply", bound=pydantic.BaseModel)


class UnusableReplyError(Exception):
    """A model twice gave something else than was asked for."""


async def asked_object(
    kind: type[_Reply], request: Callable[[str], ModelRequest], *, ask: Ask, forms: Forms, chinese: bool
) -> _Reply:
    """Return the reply.

    Args:
        kind: the form of the reply.
        request: returns the request with a text behind its prompt.
        ask: asks the model.
        forms: asks for JSON in the strictest way that its server takes.
        chinese: the language of the prompt.

    Raises:
        CallError: a call gave no usable text.
        UnusableReplyError: the second reply was no better.
    """
    mistake = ""
    for _ in range(2):
        again = (
            render.render("json_retry", chinese=chinese, error=delimiters.tag("error", mistake))
            if mistake
            else ""
        )
        completion = await forms.ask(request(again), ask)
        if completion.finish_reason in CUT_OFF:
            mistake = "the reply was cut off"
            continue
        try:
            return kind.model_validate(one_object(completion.text))
        except pydantic.ValidationError as error:
            mistake = reasons(error)
        except ValueError as error:
            mistake = f"the reply {error}"
    raise UnusableReplyError
