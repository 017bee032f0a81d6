"""Read the options of what declares itself: detectors and sources of evidence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

import pydantic

from truthlens.policy.validation import suggest
from truthlens.yamlfile.diagnostics import KeyPath, Report

_O = TypeVar("_O", bound=pydantic.BaseModel)


def read_options(
    model: type[_O],
    written: Mapping[str, object],
    place: KeyPath,
    report: Report,
    *,
    noun: str,
    name: str,
    own: tuple[str, ...],
) -> _O | None:
    """Return the options that are ``written``; ``None`` where they are wrong, which is reported.

    Args:
        model: of the options.
        written: the keys as the YAML has them, without ``own``.
        place: where they stand.
        report: takes what is wrong.
        noun: what has the options, with its name, for messages.
        name: its name alone.
        own: keys of the entry that are no options.
    """
    try:
        return model.model_validate(written)
    except pydantic.ValidationError as error:
        for problem in error.errors():
            where = (*place, *problem["loc"])
            if problem["type"] == "extra_forbidden":
                known = [*model.model_fields, *own]
                key = str(problem["loc"][-1])
                remedy = suggest(key, known, otherwise=f"known: {', '.join(known)}")
                report.error(where, f"{noun} has no option {key!r}", remedy)
            else:
                report.error(where, problem["msg"], f"see the options of {name} in the docs")
    return None
