"""Tell whether a text repeats another one: runs of six words, or letters in a row that spell them."""

from __future__ import annotations

from collections import defaultdict

from truthlens.api.members.bookkeeping import split_camel, words_of

# So many words in a row are a copy.
_RUN = 6
_LEAST_WORDS = 2
# A run without what parts its words is looked for where it is long enough to mean something.
_LEAST_SQUEEZED = 12
_MOST_SQUEEZED = 4096


class ForbiddenTexts:
    """Texts that must not leave, as the runs of words that would repeat them."""

    def __init__(self) -> None:
        self._runs: set[tuple[str, ...]] = set()
        self._squeezed: defaultdict[int, set[str]] = defaultdict(set)

    def __bool__(self) -> bool:
        return bool(self._runs)

    def add(self, text: str) -> None:
        """Forbid ``text``, written in words or in camel case."""
        for form in {text, split_camel(text)}:
            runs = _runs(form)
            self._runs |= runs
            for letters in map("".join, runs):
                self._squeezed[len(letters)].add(letters)

    def stands_in(self, text: str) -> bool:
        """Whether a text repeats one of them, however its words are parted."""
        if not self._runs:
            return False
        if any(not self._runs.isdisjoint(_runs(form)) for form in {text, split_camel(text)}):
            return True
        return len(text) <= _MOST_SQUEEZED and self.spelled_in(squeezed(text))

    def spelled_in(self, letters: str) -> bool:
        """Whether letters in a row spell one of them."""
        return any(
            letters[start : start + size] in runs
            for size, runs in self._squeezed.items()
            if size >= _LEAST_SQUEEZED
            for start in range(len(letters) - size + 1)
        )


def repeats(text: str, other: str) -> bool:
    """Whether ``other`` holds a piece of ``text``: six of its words in a row, or all of a shorter one."""
    return not _runs(text).isdisjoint(_runs(other, len(words_of(text))))


def _runs(text: str, most: int = _RUN) -> set[tuple[str, ...]]:
    tokens = words_of(text)
    if len(tokens) < _LEAST_WORDS:
        # One word says nothing by itself, and may be the name of a model, say.
        return set()
    size = min(_RUN, most, len(tokens))
    return {tuple(tokens[start : start + size]) for start in range(len(tokens) - size + 1)} if size else set()


def squeezed(text: str) -> str:
    """Return the words of ``text`` in a row, without what parts them."""
    return "".join(words_of(text))
