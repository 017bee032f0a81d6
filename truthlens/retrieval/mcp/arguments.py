"""Check the arguments of a tool against its JSON schema, which is a stranger's, at a bounded price."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import regex

_MOST_STEPS = 5_000
_PATTERN_S = 0.05
_MOST_ARGUMENT_BYTES = 64 << 10


class ArgumentsCheck:
    """The check of one tool's arguments.

    Schemas can be made to take for ever, by references that double at each level or by patterns that
    backtrack. Keywords that are looked at are counted, patterns run with a limit of time, and no reference
    outside of the schema is followed.

    Raises:
        ValueError: The schema cannot be used; the message says why.
    """

    def __init__(self, schema: Mapping[str, Any]) -> None:
        from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
        from jsonschema.exceptions import SchemaError  # type: ignore[import-untyped]
        from jsonschema.validators import extend, validator_for  # type: ignore[import-untyped]
        from referencing import Registry

        if '"patternProperties"' in json.dumps(schema):
            raise ValueError("its schema uses patternProperties, which is not supported")
        kind: Any = validator_for(schema, default=Draft202012Validator)
        try:
            kind.check_schema(schema)
        except (SchemaError, RecursionError, regex.error):
            raise ValueError("its schema is not a valid JSON schema") from None
        properties = schema.get("properties")
        self._names = frozenset(properties) if isinstance(properties, Mapping) else frozenset()
        self._steps = 0
        keywords = {
            name: self._counted(check) for name, check in (kind.VALIDATORS | {"pattern": _pattern}).items()
        }
        self._validator: Any = extend(kind, keywords)(schema, registry=Registry())

    def problem(self, arguments: Mapping[str, Any]) -> str:
        """Return why a tool may not get ``arguments``, or ``""``; no value of an argument is in it.

        An argument that the schema does not name is a problem, too: a tool may ignore it, and a filter would
        do nothing.
        """
        from jsonschema.exceptions import ValidationError

        if not self._names.issuperset(arguments):
            return "an argument is not among those that the tool declares"
        if len(json.dumps(arguments)) > _MOST_ARGUMENT_BYTES:
            return f"the arguments are larger than {_MOST_ARGUMENT_BYTES} bytes"
        self._steps = 0
        try:
            error = next(self._validator.iter_errors(dict(arguments)), None)
        except Exception as failure:  # noqa: BLE001  # of a stranger's schema: references, depth
            return f"the tool's schema cannot be applied ({type(failure).__name__})"
        if isinstance(error, ValidationError):
            return f"the arguments do not fit the tool's schema (keyword {error.validator})"
        return ""

    def _counted(self, check: Callable[..., Any]) -> Callable[..., Iterator[Any]]:
        def counted(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[Any]:
            self._steps += 1
            if self._steps > _MOST_STEPS:
                raise RecursionError
            yield from check(validator, value, instance, schema) or ()

        return counted


def _pattern(_: Any, pattern: str, instance: Any, __: Any) -> Iterator[Any]:
    from jsonschema.exceptions import ValidationError

    if isinstance(instance, str) and regex.search(pattern, instance, timeout=_PATTERN_S) is None:
        yield ValidationError("pattern")
