"""Render prompts from the templates next to this module, in English and Chinese.

Templates hold all the wording; what is data comes in between the tags of ``fence`` and is never part of a
template's logic. Other languages get the English wording, which asks for the language of the answer.
"""

from __future__ import annotations

import hashlib
import re
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from truthlens.text.sentences import is_chinese

_TEMPLATES = Path(__file__).parent / "templates"
_LETTER = re.compile(r"[^\W\d_]")
# Shorter lines of a template may be in an honest answer by chance.
_LEAST_PHRASE_LETTERS = 32
_LEAST_PHRASE_HAN = 12


def render(name: str, *, chinese: bool, **values: object) -> str:
    """Return the prompt ``name`` with its values, without white space at its ends.

    Args:
        name: of the template, such as ``correct``.
        chinese: which of the two wordings; see ``in_chinese``.
        values: what the template names. Data must have gone through ``fence``.

    Raises:
        jinja2.UndefinedError: the template names a value that was not given.
        jinja2.TemplateNotFound: there is no such template.
    """
    language = "zh" if chinese else "en"
    return _environment().get_template(f"{name}.{language}.j2").render(**values).strip()


def in_chinese(answer: str, query: str = "") -> bool:
    """Return whether a prompt about ``answer`` is in Chinese; an answer without letters goes by its query."""
    return is_chinese(answer if _LETTER.search(answer) else query)


@cache
def version(*names: str) -> str:
    """Return a digest of the templates ``names``, in both languages."""
    files = [_TEMPLATES / f"{name}.{language}.j2" for name in names for language in ("en", "zh")]
    return hashlib.sha256(b"\0".join(file.read_bytes() for file in files)).hexdigest()


@cache
def phrases() -> frozenset[str]:
    """Return the template's lines, ``normalised``: a model that repeats one recites its prompt."""
    found: set[str] = set()
    environment = _environment()
    for path in sorted(_TEMPLATES.glob("*.j2")):
        for _, kind, text in environment.lex(path.read_text(encoding="utf-8")):
            if kind == "data":
                found.update(normalised(line) for line in text.splitlines())
    return frozenset(line for line in found if _is_telling(line))


def normalised(text: str) -> str:
    """Return ``text`` in lower case, with single spaces and without a leading list marker."""
    return re.sub(r"^(?:[-*•]|\d{1,2}[.)、])\s*", "", " ".join(text.casefold().split()))


def _is_telling(line: str) -> bool:
    letters = len(_LETTER.findall(line))
    return letters >= (_LEAST_PHRASE_HAN if is_chinese(line) else _LEAST_PHRASE_LETTERS)


@cache
def _environment() -> Environment:
    # Prompts are no HTML: escaping for it would change the data. What makes data safe here is ``fence``.
    return Environment(
        loader=FileSystemLoader(_TEMPLATES),
        undefined=StrictUndefined,
        autoescape=False,  # noqa: S701
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
