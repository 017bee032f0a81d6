"""Whether a text is in another language than an answer, where scripts or ``text.language`` say so clearly.

Languages that these cannot tell apart count as the same, as do names, code, tables and texts of several
languages: nobody may rest a refusal on a guess.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

from truthlens.text.function_words import COMMON_WORDS
from truthlens.text.language import language_of, script_weights, sentences_read
from truthlens.text.scripts import KANA

_READ_CHARS = 20_000
_SAMPLE_CHARS = 4000
_LEAST_WEIGHT = 24
_CLEAR_SHARE = 0.7
# Of a script that the other text lacks altogether, less will do.
_LEAST_ALIEN_WEIGHT = 8
_LEAST_REFERENCE_WEIGHT = 8
_JAPANESE_SHARE = 0.1
_LEAST_PARTICLES = 2
_PARTICLE = re.compile(rf"です|ます|した|する|ない|[はがをにでへと](?![{KANA}])")
_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]{1,300}`|https?://\S+", re.DOTALL)
# A line of a program, not of prose: it assigns, calls or opens a block.
_CODE_LINE = re.compile(r"^[^\n]*(?:[{}=]|\w\(|[;:][ \t]*$)[^\n]*$", re.MULTILINE)
_QUOTED = re.compile(
    r"“[^”\n]{1,300}”|„[^“”\n]{1,300}[“”]|«[^»\n]{1,300}»|「[^」\n]{1,300}」|《[^》\n]{1,100}》"
)
_WORD = re.compile(r"[^\W\d_]+")
_ASKS_FOR_A_LANGUAGE = re.compile(
    r"\b(?:translat\w*|transliterat\w*|english|german|french|spanish|italian|portuguese|dutch|chinese|mandarin"
    r"|japanese|korean|russian|arabic|greek|hebrew|hindi|thai|ukrainian|kanji|cyrillic|characters?|alphabet|script"
    r"|native|original|language|übersetz\w*|englisch\w*|deutsch\w*|französisch\w*|spanisch\w*|chinesisch\w*"
    r"|japanisch\w*|russisch\w*|tradui\w*|anglais\w*|allemand\w*|français\w*|chinois\w*|japonais\w*|tradu\w*"
    r"|inglés|alemán|español|chino)\b"
    r"|翻译|译成|译为|[英德法中日韩俄外原汉]文|[英德法汉日韩俄]语|拉丁|字母|拼音",
    re.IGNORECASE,
)
# A title has function words ("The Lord of the Rings"), prose has more of them, or other words in small letters, which
# count twice.
_LEAST_OF_PROSE = 4


@dataclass(frozen=True, slots=True)
class _Text:
    """A text without code and quotations: its lines of prose, and the weights of its scripts."""

    text: str
    scripts: Counter[str]

    @property
    def weight(self) -> int:
        return self.scripts.total()

    @property
    def script(self) -> str | None:
        """The script of most of the letters, or ``None`` where there is no clear majority."""
        if not self.weight:
            return None
        script, most = self.scripts.most_common(1)[0]
        return script if most >= _CLEAR_SHARE * self.weight else None

    def has(self, code: str) -> bool:
        """Return whether a sentence is clearly in a language."""
        return True in sentences_read(self.text, (code,))

    def lacks(self, code: str) -> bool:
        """Return whether a sentence is clearly in another language, and none in this one."""
        read = sentences_read(self.text, (code,))
        return False in read and True not in read


def same_language(first: str, second: str, query: str = "") -> bool:
    """Whether nothing clearly says that ``second`` is in another language than ``first``.

    Code, addresses and quotations do not count.

    Args:
        first: an answer.
        second: a text that might take its place.
        query: what was asked; its language counts where ``first`` is too short to tell.
    """
    answer, candidate = _read(first), _read(second)
    if _is_of_another_script(answer, candidate):
        return False
    if _is_in_another_language(answer, candidate):
        return False
    if not query or _ASKS_FOR_A_LANGUAGE.search(query[:_SAMPLE_CHARS]):
        return True
    both = _read(f"{query[:_SAMPLE_CHARS]}\n\n{first}")
    if _lacks_script(both, candidate):
        return False
    return not _is_in_another_language(both, candidate, unless=answer)


def _is_of_another_script(answer: _Text, candidate: _Text) -> bool:
    """Whether both are long enough to tell, and of two scripts."""
    scripts = (answer.script, candidate.script)
    if None in scripts or min(answer.weight, candidate.weight) < _LEAST_WEIGHT:
        return False
    if scripts == ("han", "kana"):
        return _is_japanese(candidate)
    return scripts[0] != scripts[1] and not _is_name(candidate)


def _lacks_script(reference: _Text, candidate: _Text) -> bool:
    """Whether the candidate is of a script that the reference has no letter of."""
    script = candidate.script
    if script is None or reference.weight < _LEAST_REFERENCE_WEIGHT:
        return False
    if script == "kana" and reference.scripts["han"]:
        return not reference.scripts["kana"] and _is_japanese(candidate)
    if reference.scripts[script] or candidate.weight < _LEAST_ALIEN_WEIGHT:
        return False
    if script == "han" and reference.scripts["kana"]:
        return False
    return not _is_name(candidate)


def _is_japanese(candidate: _Text) -> bool:
    """Whether kana are more than a name in a Chinese text: endings and particles of Japanese are among them."""
    return len(_PARTICLE.findall(candidate.text)) >= _LEAST_PARTICLES


def _is_name(candidate: _Text) -> bool:
    """Whether a text in Latin letters is a name, a term or code: those are written so in any language."""
    if candidate.script != "latin":
        return False
    found = _WORD.findall(candidate.text)
    small = found if candidate.text.isupper() else [word for word in found if word == word.lower()]
    common = {word.casefold() for word in small} & COMMON_WORDS
    content = [word for word in small if len(word) > 1 and word.casefold() not in COMMON_WORDS]
    if not common and candidate.weight < _LEAST_WEIGHT:
        return True
    return 2 * len(content) + len(common) < _LEAST_OF_PROSE


def _is_in_another_language(reference: _Text, candidate: _Text, *, unless: _Text | None = None) -> bool:
    """Return whether both are clearly in a language, and in two.

    Args:
        reference: an answer, or a question and its answer.
        candidate: what might take the answer's place.
        unless: the answer alone, where the reference is more: it must not be in the candidate's language.
    """
    if reference.script is None or reference.script != candidate.script:
        return False
    ours, theirs = language_of(reference.text), language_of(candidate.text)
    if not ours or not theirs or ours == theirs or not _is_prose(candidate):
        return False
    return candidate.lacks(ours) and reference.lacks(theirs) and not (unless and unless.has(theirs))


def _is_prose(candidate: _Text) -> bool:
    """Return whether there is more than a name or a title: other words in small letters, or many function words."""
    words = _WORD.findall(candidate.text)
    if candidate.text.isupper() or len({*map(str.casefold, words)} & COMMON_WORDS) >= _LEAST_OF_PROSE:
        return True
    return any(len(word) > 1 and word == word.lower() and word not in COMMON_WORDS for word in words)


def _read(text: str) -> _Text:
    prose = _CODE.sub(" ", text[:_READ_CHARS])
    bare = _QUOTED.sub(" ", prose)
    sample = (bare if _WORD.search(bare) else prose)[:_SAMPLE_CHARS]
    weights = script_weights(sample)
    if weights["kana"] and weights["kana"] >= _JAPANESE_SHARE * (weights["kana"] + weights["han"]):
        weights["kana"] += weights.pop("han", 0)
    return _Text(_CODE_LINE.sub(" ", sample), weights)
