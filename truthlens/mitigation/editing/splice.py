"""Apply edits to an answer and smooth the seams, so that it reads as one text.

Pure.

Correction are: spacing, sentence ends and capitals at the seams, connectives that lost what they connect to, list
items that became empty and the numbers of their list, and lead-ins and headings with nothing left below them.
Not smoothed: pronouns ("It" keeps whatever precedes it), counts in words ("three reasons"), the wording of
anything.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from truthlens.mitigation.editing.smoothing import capitalised, ends_line, smoothed, without_connective
from truthlens.mitigation.editing.text_layout import Line, last_below, outline, renumbered, vacated
from truthlens.text.sentences import is_json, sentences

_JOINT = re.compile(
    r"[ \t,;，；]*(?:(?:and|but|yet|so|while|whereas|however|但是?|不过|然而|同时|而且|并且|而)[ \t,，]*)?",
    re.IGNORECASE,
)
_PAIRS = (
    ("**", "**"),
    ("__", "__"),
    ("`", "`"),
    ('"', '"'),
    ("(", ")"),
    ("“", "”"),
    ("「", "」"),
    ("（", "）"),
)
_WORD = re.compile(r"[^\W_]")


@dataclass(frozen=True, slots=True)
class Edit:
    """Put ``replacement`` in the place of characters ``start`` to ``end``.

    An insertion where the two are equal.
    """

    start: int
    end: int
    replacement: str = ""

    @property
    def removes(self) -> bool:
        """Whether nothing comes in."""
        return not self.replacement.strip()


def splice(text: str, edits: Sequence[Edit]) -> str:
    """Return ``text`` with all edits made, reading as one text; unchanged where no edit changes anything.

    An edit should cover whole sentences or clauses, as ``claims`` cuts them; words within a sentence are
    exchanged as they are. A sentence inserted in a list item becomes an item of its own behind it. ``text``
    must not be JSON, and edits must not overlap.
    """
    wanted = sorted(
        (edit for edit in edits if edit.replacement != text[edit.start : edit.end]),
        key=lambda edit: (edit.start, edit.end),
    )
    if not wanted:
        return text
    assert not is_json(text), "a JSON answer cannot be spliced"
    assert all(one.end <= other.start for one, other in pairwise(wanted)), "edits overlap"
    lines = outline(text)
    within = _merged(text, [_balanced(text, edit) for edit in wanted])
    within, items = _new_items(lines, within)
    gone, lead_ins = _gone(text, lines, within)
    changed, new = renumbered(lines, gone, [place for place, _ in items])
    cuts = list(_line_cuts(text, lines, gone))
    exact = [*cuts, *_item_lines(text, lines, items, new)]
    exact += [Edit(*lines[place].digits, str(number)) for place, number in changed.items()]
    seams = [part for edit in [*within, *lead_ins] for part in _outside(text, edit, cuts)]
    seams += _after_cuts(lines, gone, [*seams, *exact])
    return _built(text, seams=seams, exact=exact)


def exchanged(text: str, edits: Sequence[Edit]) -> str:
    """Return ``text`` with ``edits``, which must not overlap, made as they are: nothing is smoothed. JSON is a text like any other."""
    return _built(text, seams=(), exact=edits)


def _built(text: str, *, seams: Sequence[Edit], exact: Sequence[Edit]) -> str:
    """Return the text after all edits: ``seams`` are smoothed, ``exact`` ones are made unchanged."""
    marked = [*((edit, True) for edit in seams), *((edit, False) for edit in exact)]
    ops = sorted(marked, key=lambda op: (op[0].start, op[0].end))
    starts = [*(edit.start for edit, _ in ops), len(text)]
    done: list[str] = []
    # A seam never reaches back behind the start of its line.
    line, kept = "", text[: starts[0]]
    for (edit, is_seam), following in zip(ops, starts[1:], strict=True):
        before = line + kept
        start = before.rfind("\n") + 1
        if start:
            done.append(before[:start])
        line, kept = before[start:], text[edit.end : following]
        if is_seam:
            rest = ends_line(text[edit.end : _line_end(text, edit.end)])
            line, kept = smoothed(line, text[edit.start : edit.end], edit.replacement, kept, ends_line=rest)
        elif edit.replacement.startswith("\n") and not line:
            line = edit.replacement[1:] if done else edit.replacement
        else:
            line += edit.replacement
    return _trimmed_like(text, "".join([*done, line, kept]))


def _line_end(text: str, place: int) -> int:
    end = text.find("\n", place)
    return end if end >= 0 else len(text)


def _merged(text: str, edits: Sequence[Edit]) -> list[Edit]:
    """Merge removals with only a joint between them ("A, and B") into one."""
    found: list[Edit] = []
    for edit in edits:
        before = found[-1] if found else None
        if (
            before is not None
            and before.removes
            and edit.removes
            and edit.end > edit.start
            and _JOINT.fullmatch(text, before.end, edit.start)
        ):
            found[-1] = Edit(before.start, edit.end)
        else:
            found.append(edit)
    return found


def _balanced(text: str, edit: Edit) -> Edit:
    """Return ``edit`` without outer white space or a mark whose partner stays (``**``, brackets)."""
    start, end = edit.start, edit.end
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    if start == end:
        return edit
    for opening, closing in _PAIRS:
        part = text[start:end]
        if opening == closing:
            lone_start = lone_end = part.count(opening) % 2 == 1
        else:
            lone_start, lone_end = (
                part.count(opening) > part.count(closing),
                part.count(closing) > part.count(opening),
            )
        if lone_start and part.startswith(opening) and len(part) > len(opening):
            start += len(opening)
        elif lone_end and part.endswith(closing) and len(part) > len(closing):
            end -= len(closing)
    return Edit(start, end, edit.replacement)


def _new_items(lines: Sequence[Line], edits: Sequence[Edit]) -> tuple[list[Edit], list[tuple[int, str]]]:
    """Return the edits within lines, and the sentences that become items of their own after a list item."""
    within: list[Edit] = []
    items: list[tuple[int, str]] = []
    for edit in edits:
        place = _line_of(lines, edit.start)
        if edit.start == edit.end and not edit.removes and lines[place].item:
            items.append((place, without_connective(edit.replacement.strip(), first=True)))
        else:
            within.append(edit)
    return within, items


def _gone(text: str, lines: Sequence[Line], edits: Sequence[Edit]) -> tuple[set[int], list[Edit]]:
    """Return the lines that go as a whole, and removals of lead-ins at the end of lines that stay."""
    cuts = [edit for edit in edits if edit.removes and edit.end > edit.start]
    cut_lines = {place for cut in cuts for place in _lines_of(lines, cut)}
    emptied = {place for place in cut_lines if _is_emptied(text, lines[place], cuts)}
    touched = {place for edit in edits if not edit.removes for place in _lines_of(lines, edit)}
    lead_ins: list[Edit] = []
    gone = set(emptied)
    for place in sorted(vacated(lines, emptied) - emptied - touched):
        line = lines[place]
        *before, last = sentences(text[line.content : line.end])
        if line.level or not any(_stays(text, line.content + a, line.content + b, cuts) for a, b in before):
            gone.add(place)
        elif _stays(text, line.content + last[0], line.content + last[1], cuts):
            lead_ins.append(Edit(line.content + last[0], line.content + last[1]))
    return gone, lead_ins


def _line_of(lines: Sequence[Line], place: int) -> int:
    """Return the number of the line that holds character ``place``; a line includes its line break."""
    return bisect_right(lines, place, key=lambda line: line.start) - 1


def _lines_of(lines: Sequence[Line], edit: Edit) -> range:
    """Return the numbers of the lines that an edit touches."""
    return range(_line_of(lines, edit.start), _line_of(lines, edit.end) + 1)


def _is_emptied(text: str, line: Line, cuts: Sequence[Edit]) -> bool:
    """Return whether the line had words and the removals leave none."""
    touches = any(True for _ in _overlapping(cuts, line.content, line.end))
    return touches and not _stays(text, line.content, line.end, cuts)


def _overlapping(cuts: Sequence[Edit], start: int, end: int) -> Iterator[Edit]:
    """Yield those of the ordered removals that take a character from ``start`` to ``end``."""
    for number in range(bisect_right(cuts, start, key=lambda cut: cut.end), len(cuts)):
        if cuts[number].start >= end:
            return
        yield cuts[number]


def _stays(text: str, start: int, end: int, cuts: Sequence[Edit]) -> bool:
    """Return whether a word of these characters lies outside of all removals."""
    place = start
    for cut in _overlapping(cuts, start, end):
        if place < cut.start and _WORD.search(text, place, cut.start):
            return True
        place = max(place, cut.end)
    return place < end and _WORD.search(text, place, end) is not None


def _line_cuts(text: str, lines: Sequence[Line], gone: Collection[int]) -> Iterator[Edit]:
    """Yield the removals of whole lines; with a whole paragraph, the blank lines on one side of it go too."""
    place = 0
    while place < len(lines):
        if place not in gone:
            place += 1
            continue
        first = place
        while place < len(lines) and place in gone:
            place += 1
        if first == 0 or lines[first - 1].blank:
            while place < len(lines) and lines[place].blank:
                place += 1
        yield Edit(lines[first].start, lines[place].start if place < len(lines) else len(text))


def _after_cuts(lines: Sequence[Line], gone: Collection[int], edits: Sequence[Edit]) -> Iterator[Edit]:
    """Yield empty removals at the first line after removed lines: the seam there needs smoothing as well."""
    ordered = sorted((edit for edit in edits if edit.end > edit.start), key=lambda edit: edit.start)
    for place in gone:
        following = next((n for n in range(place + 1, len(lines)) if not lines[n].blank), None)
        if following is None or following in gone or lines[following].level:
            continue
        content = lines[following].content
        if not any(True for _ in _overlapping(ordered, content, content + 1)):
            yield Edit(content, content)


def _item_lines(
    text: str, lines: Sequence[Line], items: Sequence[tuple[int, str]], new: Mapping[int, int]
) -> Iterator[Edit]:
    """Yield the insertions of new items, each after all that is nested in the item before it."""
    numbers = dict(new)
    for place, sentence in items:
        line = lines[place]
        marker = text[line.start : line.content]
        if line.number is not None:
            first, last = (position - line.start for position in line.digits)
            marker = marker[:first] + str(numbers[place]) + marker[last:]
            numbers[place] += 1
        end = lines[last_below(lines, place)].end
        yield Edit(end, end, "\n" + marker + capitalised(sentence))


def _outside(text: str, edit: Edit, cuts: Sequence[Edit]) -> Iterator[Edit]:
    """Yield the parts of an edit that lie outside of the lines that go as a whole."""
    if not edit.removes:
        yield edit
        return
    start = edit.start
    for cut in [*_overlapping(cuts, edit.start, edit.end), Edit(edit.end, edit.end)]:
        end = min(cut.start, edit.end)
        if start < end and text[start:end].strip():
            yield _balanced(text, Edit(start, end))
        start = max(start, cut.end)


def _trimmed_like(text: str, result: str) -> str:
    """Return ``result`` with the blank lines at its start and the white space at its end from ``text``."""
    bare = result.rstrip()
    if not bare:
        return ""
    return text[: _blank_lines(text)] + bare[_blank_lines(bare) :] + text[len(text.rstrip()) :]


def _blank_lines(text: str) -> int:
    """Return the length of the blank lines that ``text`` begins with."""
    return text.rfind("\n", 0, len(text) - len(text.lstrip())) + 1
