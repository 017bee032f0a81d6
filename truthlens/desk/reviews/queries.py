"""Read what the review pages are asked: queries of lists, and forms."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, urlencode

import pydantic

from truthlens.desk.reviews.schemas import ListQuery, Note, check_once
from truthlens.review.records import Correction, ReviewError, ReviewStatus
from truthlens.review.store.changes import MOST_SPANS
from truthlens.review.store.queue import MOST_CHANGED

MOST_FORM = 256 << 10
_MOST_FIELDS = MOST_CHANGED + 20
_MARK = re.compile(r"(?:(\d{1,5})\s*:\s*)?(\d{1,9})\s*[-–]\s*(\d{1,9})")
_NOTE: pydantic.TypeAdapter[str] = pydantic.TypeAdapter(Note)
_DEFAULT_STATUS = ReviewStatus.PENDING
_UNREADABLE = "Something in the address of this list cannot be read; it shows pending entries."


@dataclass(frozen=True, slots=True)
class Asked:
    """What a page was asked to list.

    ``text`` is the query of links to the same list, without cursor. ``status`` is its tab, ``"all"`` for all. ``problem`` says what of
    the query cannot be, ``""`` where all can; it is left out then.
    """

    query: ListQuery
    text: str
    status: str
    problem: str = ""


def asked_of(text: str) -> Asked:
    """Return what the query ``text`` asks for; pending entries where it names no status."""
    try:
        given = [(name, value) for name, value in parse_qsl(text, max_num_fields=50) if value]
        statuses = [value for name, value in given if name == "status"]
        status = statuses[0] if len(statuses) == 1 else "all" if statuses else _DEFAULT_STATUS.value
        check_once(given)
        values: dict[str, Any] = {
            **dict(given),
            "status": [each for each in statuses or [status] if each != "all"],
        }
        # The page says "from … to …", and the highest score is one of them.
        if values.get("max_score") in ("1", "1.0", "1.00"):
            del values["max_score"]
        query = ListQuery.model_validate(values)
    except ValueError:
        return Asked(ListQuery(status=(_DEFAULT_STATUS,)), "", _DEFAULT_STATUS.value, _UNREADABLE)
    kept = [(name, value) for name, value in given if name != "cursor"]
    return Asked(query, urlencode(kept), status)


def with_status(text: str, status: str) -> str:
    """Return the query ``text`` for another tab."""
    kept = [(name, value) for name, value in parse_qsl(text) if name != "status"]
    return urlencode([*kept, ("status", status)])


@dataclass(frozen=True, slots=True)
class ReviewForm:
    """What a reviewer sent. ``back`` is the query of the list that they came from, ``step`` what is to be undone."""

    csrf: str
    action: str
    version: int
    note: str
    own_marks: bool
    marks: str
    picks: tuple[tuple[str, int], ...]
    back: str
    step: str

    @classmethod
    def read(cls, body: bytes) -> ReviewForm:
        """Return the form in ``body``.

        Raises:
            ReviewError: it cannot be read, or is none of the console's.
        """
        try:
            fields = parse_qsl(
                body.decode(), keep_blank_values=True, max_num_fields=_MOST_FIELDS, errors="strict"
            )
            values = dict(fields)
            picks = [value.rpartition(":") for name, value in fields if name == "pick"]
            return cls(
                csrf=values.get("csrf", ""),
                action=values.get("action", ""),
                version=_version(values.get("version", "0")),
                note=values.get("note", "").replace("\r\n", "\n"),
                own_marks=values.get("marks") == "own",
                marks=values.get("spans", ""),
                picks=tuple((own_id, _version(version)) for own_id, _, version in picks),
                back=asked_of(values.get("back", "")).text,
                step=_step(values.get("step", "")),
            )
        except ValueError:
            raise ReviewError("the form cannot be read; load the page again") from None

    def checked_note(self) -> str:
        """Return the note.

        Raises:
            ReviewError: it is too long, or holds what a database refuses.
        """
        try:
            return _NOTE.validate_python(self.note)
        except pydantic.ValidationError as error:
            raise ReviewError(f"the note: {error.errors()[0]['msg']}") from None

    def corrections(self) -> Sequence[Correction]:
        """Return the marks.

        Raises:
            ReviewError: a line is none.
        """
        lines = [line.strip() for line in self.marks.splitlines() if line.strip()]
        if len(lines) > MOST_SPANS:
            raise ReviewError(f"{len(lines)} marks; at most {MOST_SPANS}")
        found = []
        for number, line in enumerate(lines, 1):
            mark = _MARK.fullmatch(line)
            if mark is None:
                raise ReviewError(f"line {number} of the marks is none; expected START-END, such as 12-40")
            found.append(Correction(int(mark[2]), int(mark[3]), int(mark[1] or 0)))
        return found


def _step(text: str) -> str:
    if not re.fullmatch(r"[0-9a-f]{0,32}", text):
        raise ValueError("no step")
    return text


def _version(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,9}", text):
        raise ValueError("no version")
    return int(text)
