"""Take whole entries from one queue to another, and verdicts back from labelled rows.

A line is a JSON object. An entry: ``{"format": 1, "entry": {...}, "content": {...}, "spans": [...] | null, "events": [...]}``. A verdict:
``{"id", "label": 0 | 1 (or "status": "approved" | "rejected"), "note"?, "spans"?}``; further keys, such as the texts of exported rows, are
let be.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import sqlalchemy as sa
from pydantic import TypeAdapter, ValidationError
from sqlalchemy.exc import DataError, IntegrityError

from truthlens.review.entry.content import fit
from truthlens.review.records import Change, Correction, Entry, Filters, ReviewStatus, UnknownEntryError
from truthlens.review.store.queue import ReviewQueue
from truthlens.review.store.rows import rows_of

FORMAT = 1
MOST_LINE = 8 << 20
"""Characters of one line at most."""
_AT_ONCE = 100
_MOST_PROBLEMS = 100
_ID = re.compile(r"[A-Za-z0-9_-]{1,32}")
_ENTRY = TypeAdapter(Entry)
_SPANS = TypeAdapter(tuple[Correction, ...])


@dataclass(slots=True)
class Imported:
    """What became of lines: entries ``added`` or ``known`` already, verdicts that ``settled`` an entry or were its own (``unchanged``).

    ``failed`` counts the others; ``problems`` says why, of the first hundred.
    """

    added: int = 0
    known: int = 0
    settled: int = 0
    unchanged: int = 0
    failed: int = 0
    problems: list[str] = field(default_factory=list)

    def fail(self, number: int, why: str) -> None:
        """Count a line that was not taken."""
        self.failed += 1
        if len(self.problems) < _MOST_PROBLEMS:
            self.problems.append(f"line {number}: {why}")


@dataclass(frozen=True, slots=True)
class _Label:
    id: str
    status: ReviewStatus
    note: str | None
    spans: tuple[Correction, ...] | None


def entry_lines(queue: ReviewQueue, filters: Filters = Filters()) -> Iterator[dict[str, Any]]:  # noqa: B008
    """Yield whole entries that fit ``filters``, oldest first, as ``import_lines`` reads them."""
    for each in queue.all(filters):
        try:
            entry = queue.get(each.summary.id)  # with its audit trail
        except UnknownEntryError:  # deleted meanwhile
            continue
        kept = asdict(entry)
        summary = kept.pop("summary")
        del summary["number"]  # the other queue has numbers of its own
        yield {"format": FORMAT, "entry": summary, **kept}


def import_lines(queue: ReviewQueue, lines: Iterable[str], *, actor: str) -> Imported:
    """Add the entries of ``lines`` and settle by their verdicts; a line that cannot be taken hinders no other.

    Entries keep id, status and audit trail; those whose id is there already stay as they are. A verdict on an entry that was settled
    otherwise is refused: somebody has decided, and a file must not silently decide again.

    Args:
        queue: the queue to add to.
        lines: of JSON; blank ones are skipped.
        actor: who settles.

    Raises:
        QueueUnavailableError: the database does not answer, is read-only or full; what was taken until then is kept.
    """
    done = Imported()
    fresh: list[tuple[int, Entry]] = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            read = _read(line)
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            done.fail(number, _why(error))
            continue
        if isinstance(read, Entry):
            fresh.append((number, read))
        else:
            _add(queue, fresh, done)  # a verdict may be on one of them
            fresh = []
            _settle(queue, number, read, actor, done)
        if len(fresh) >= _AT_ONCE:
            _add(queue, fresh, done)
            fresh = []
    _add(queue, fresh, done)
    return done


def _read(line: str) -> Entry | _Label:
    if len(line) > MOST_LINE:
        raise ValueError(f"it has {len(line)} characters; at most {MOST_LINE}")
    row = _clean(json.loads(line))
    if not isinstance(row, dict):
        raise TypeError("it is no JSON object")
    if "entry" in row:
        if row.get("format") != FORMAT:
            raise ValueError(f"it is of another format; expected {FORMAT}")
        entry = _ENTRY.validate_python(
            {**row, "summary": {**row["entry"], "number": 0}, "spans": row.get("spans")}
        )
        _check(entry)
        return entry
    entry_id = row.get("id")
    if not isinstance(entry_id, str):
        raise ValueError("it has no id")  # noqa: TRY004 - of the file, not of the code
    if "label" in row:
        if row["label"] not in (0, 1):
            raise ValueError("its label is neither 0 nor 1")
        status = ReviewStatus.REJECTED if row["label"] else ReviewStatus.APPROVED
    else:
        status = ReviewStatus(row["status"])
        if status.label is None:
            raise ValueError(f"its status is {status}; expected approved or rejected")
    note = row.get("note")
    spans = row.get("spans") if status is ReviewStatus.REJECTED else None
    return _Label(
        entry_id,
        status,
        None if note is None else str(note),
        _SPANS.validate_python(spans) if spans else None,
    )


def _check(entry: Entry) -> None:
    """Check what a database would refuse, or keep although it cannot be."""
    if not _ID.fullmatch(entry.summary.id):
        raise ValueError("its id is none")
    for table, rows in rows_of(entry).items():
        for row in rows:
            _check_row(table, row)
    summary = asdict(entry.summary)
    for name in ("score", "even_score", "threshold", "sample"):
        if not 0.0 <= summary[name] <= 1.0:
            raise ValueError(f"{name} is {summary[name]}; expected 0 to 1")
    if entry.summary.sample == 0.0:
        raise ValueError("sample is 0; expected a share above 0")
    if (entry.summary.settled is None) != (entry.summary.status.label is None):
        raise ValueError("its status and the time at which it was settled do not fit")


def _check_row(table: sa.Table, row: Mapping[str, Any]) -> None:
    for name, value in row.items():
        most = getattr(table.c[name].type, "length", None)
        if isinstance(value, str) and most is not None and len(value) > most:
            raise ValueError(f"{name} has {len(value)} characters; at most {most}")
        if isinstance(value, int) and not 0 <= value < 2**31:
            raise ValueError(f"{name} is out of range")


def _clean(value: Any) -> Any:
    """Return JSON data without characters that a database refuses.

    Raises:
        ValueError: a number is not finite.
    """
    match value:
        case str():
            return fit(value)
        case float() if not math.isfinite(value):
            raise ValueError("a number is not finite")
        case list():
            return [_clean(each) for each in value]
        case dict():
            return {_clean(name): _clean(each) for name, each in value.items()}
        case _:
            return value


def _add(queue: ReviewQueue, fresh: Sequence[tuple[int, Entry]], done: Imported) -> None:
    if not fresh:
        return
    try:
        added = queue.insert([entry for _, entry in fresh])
    except (DataError, IntegrityError, OverflowError) as error:
        if len(fresh) == 1:
            done.fail(fresh[0][0], f"the database refuses it ({type(error).__name__})")
            return
        for each in fresh:  # something about one of them; the others are fine
            _add(queue, [each], done)
        return
    done.added += added
    done.known += len(fresh) - added


def _settle(queue: ReviewQueue, number: int, label: _Label, actor: str, done: Imported) -> None:
    if "#" in label.id:  # the row of another choice than the entry's worst, of which no verdict is kept
        done.unchanged += 1
        return
    try:
        entry = queue.get(label.id)
    except UnknownEntryError as error:
        done.fail(number, str(error))
        return
    status = entry.summary.status
    if status.label is not None and status is not label.status:
        done.fail(number, f"the entry is {status} already; change it with: truthlens review resolve")
        return
    spans = None if label.spans == entry.spans else label.spans
    if status is label.status and spans is None and label.note in (None, entry.summary.note):
        done.unchanged += 1
        return
    change = Change(label.id, entry.summary.version, label.status, note=label.note, spans=spans)
    (changed,) = queue.change_many([change], actor=actor)
    if changed.entry is None:
        done.fail(number, changed.problem)
    else:
        done.settled += 1


def _why(error: Exception) -> str:
    if isinstance(error, ValidationError):
        first = error.errors(include_input=False, include_url=False)[0]
        return f"{'.'.join(str(part) for part in first['loc'])}: {first['msg']}"
    if isinstance(error, json.JSONDecodeError):
        return f"it is no JSON ({error.msg})"
    if isinstance(error, KeyError):
        return f"it has no {error.args[0]}"
    return "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
