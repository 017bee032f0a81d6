"""Compare settings that declare which of their values is the stricter one: a section of a plan, or the options of a detector."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from enum import StrEnum
from functools import cache
from types import MappingProxyType
from typing import Any

from pydantic import BaseModel

from truthlens.core.records.enums import Stricter
from truthlens.policy.signals.readable_text import readable

_NOT_COMPARABLE = ", which cannot be compared"
_LONGEST_SHOWN = 60
_SHOWN = (str, int, float, type(None))


@cache
def declared(settings: type[BaseModel]) -> Mapping[str, Stricter | None]:
    """Return what each field of ``settings`` declares; ``None`` for one that declares nothing."""
    return MappingProxyType(
        {
            name: next((each for each in field.metadata if isinstance(each, Stricter)), None)
            for name, field in settings.model_fields.items()
        }
    )


def setting_weaknesses(
    own: BaseModel | None, other: BaseModel | None, *, key: str, without: Collection[str] = ()
) -> list[str]:
    """Return in which fields ``own`` is weaker than ``other``, in words; ``None`` has the defaults of the other one's type.

    Args:
        own: the settings that are judged.
        other: those that they are compared with.
        key: what stands before the names of the fields.
        without: names of fields that are compared elsewhere.
    """
    kind = type(other if own is None else own)
    if own is other or not issubclass(kind, BaseModel):
        return []
    if own is not None and other is not None and type(other) is not kind:
        return [f"another {key}"]
    found: list[str] = []
    for name, order in declared(kind).items():
        if name not in without:
            found += weakness(_value(own, kind, name), _value(other, kind, name), order, key=f"{key}.{name}")
    return found


def weakness(own: Any, other: Any, order: Stricter | None, *, key: str) -> list[str]:
    """Return that the value ``own`` of a setting is weaker than ``other``, in words; empty if it is not.

    A setting without an ``order`` cannot be compared.
    """
    if own == other or order is Stricter.NO_EFFECT or _holds(own, other, order):
        return []
    unknown = order is None or order is Stricter.UNKNOWN
    if not (_is_shown(own) and _is_shown(other)):
        return [f"another {key}{_NOT_COMPARABLE}" if unknown else f"a weaker {key}"]
    return [f"{key} {_told(own)} instead of {_told(other)}{_NOT_COMPARABLE if unknown else ''}"]


def is_visible(template: str | None) -> bool:
    """Return whether a reader sees anything of a text that a policy gives; where it is empty, there is a built-in one."""
    if template is None or not template.strip():
        return True
    return any(each.isprintable() and not each.isspace() for each in readable(template))


def _value(settings: BaseModel | None, kind: type[BaseModel], name: str) -> Any:
    if settings is None:
        return kind.model_fields[name].get_default(call_default_factory=True, validated_data={})
    return getattr(settings, name)


def _holds(own: Any, other: Any, order: Stricter | None) -> bool:
    """Return whether ``own`` is as strict as ``other`` at least; they are not equal."""
    match order:
        case Stricter.LOWER:
            return _number(own) <= _number(other)
        case Stricter.HIGHER:
            return _number(own) >= _number(other)
        case Stricter.LATER:
            members: Sequence[StrEnum] = tuple(own.__class__)
            return members.index(own) >= members.index(other)
        case Stricter.MORE:
            return all(each in own for each in other)
        case Stricter.WIDER:
            return bool(own[0] <= other[0] and own[1] >= other[1])
        case Stricter.VISIBLE:
            return is_visible(own) or not is_visible(other)
    return False


def _number(value: float | None) -> float:
    return math.inf if value is None else value


def _is_shown(value: Any) -> bool:
    """Return whether a value is short enough to stand in a message."""
    if isinstance(value, tuple):
        return all(isinstance(each, _SHOWN) for each in value) and len(_told(value)) <= _LONGEST_SHOWN
    return isinstance(value, _SHOWN) and len(_told(value)) <= _LONGEST_SHOWN and _told(value).isprintable()


def _told(value: Any) -> str:
    if isinstance(value, tuple):
        return ", ".join(map(_told, value)) or "none"
    if value is None:
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)
