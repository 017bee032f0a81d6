"""Whether a text is in another language than an answer, where scripts or function words say so; no model.

Languages that these cannot tell apart count as the same, as do names, code, tables and texts of several languages:
nobody may rest a refusal on a guess.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache

from truthlens.text.language import FUNCTION_WORDS

_READ_CHARS = 20_000
_SAMPLE_CHARS = 4000
# Where a letter is about a word, it weighs as much as the letters of one.
_WEIGHTS = {"CJK": 4, "HIRAGANA": 4, "KATAKANA": 4, "HANGUL": 4, "THAI": 2}
_LEAST_WEIGHT = 24
_CLEAR_SHARE = 0.7
# Of a script that the other text lacks altogether, less will do.
_LEAST_ALIEN_WEIGHT = 8
_LEAST_REFERENCE_WEIGHT = 8
_JAPANESE = ("HIRAGANA", "KATAKANA")
_JAPANESE_SHARE = 0.1
_LEAST_PARTICLES = 2
_PARTICLE = re.compile("です|ます|した|する|ない|[はがをにでへと](?![\u3040-\u309f])")
_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]{1,300}`|https?://\S+", re.DOTALL)
# A line of a program, not of prose: it assigns, calls or opens a block.
_CODE_LINE = re.compile(r"^[^\n]*(?:[{}=]|\w\(|[;:][ \t]*$)[^\n]*$", re.MULTILINE)
_QUOTED = re.compile(
    r"“[^”\n]{1,300}”|„[^“”\n]{1,300}[“”]|«[^»\n]{1,300}»|「[^」\n]{1,300}」|《[^》\n]{1,100}》"
)
_WORD = re.compile(r"[^\W\d_]+")
_SENTENCE_START = re.compile(r"(?:^|[.!?:…\n])[\s*_#>\"'“„«(-]*$")
_ASKS_FOR_A_LANGUAGE = re.compile(
    r"\b(?:translat\w*|transliterat\w*|english|german|french|spanish|italian|portuguese|dutch|chinese|mandarin"
    r"|japanese|korean|russian|arabic|greek|hebrew|hindi|thai|ukrainian|kanji|cyrillic|characters?|alphabet|script"
    r"|native|original|language|übersetz\w*|englisch\w*|deutsch\w*|französisch\w*|spanisch\w*|chinesisch\w*"
    r"|japanisch\w*|russisch\w*|tradui\w*|anglais\w*|allemand\w*|français\w*|chinois\w*|japonais\w*|tradu\w*"
    r"|inglés|alemán|español|chino)\b"
    r"|翻译|译成|译为|[英德法中日韩俄外原汉]文|[英德法汉日韩俄]语|拉丁|字母|拼音",
    re.IGNORECASE,
)
# Besides those of ``FUNCTION_WORDS``. A word of two languages stands in both: it tells them not apart.
_MORE_WORDS = {
    "en": "at by from as or not no if has have had were will would should must they their its it's he she we our your "
    "there these those which who when where why than then also only per each any all about into been because so am an "
    "but may more per could just does did was",
    "de": "ein einem einen einer eines dem des bei an am in im um aus nach über unter vor ohne nur auch aber oder als "
    "wenn dass sie er wir ihr haben hat hatte werden wurde wurden kein keine keinen noch so bis pro durch seit man muss "
    "will war waren diese dieser dieses sich vom zum zur beim je mehr etwa sehr",
    "fr": "au aux de d l c qu n il elle ils elles nous vous on ou où à ce cette ces sa son ses leur par plus sans sous "
    "ne se si a ont été être était peut doit fait mais en y très chaque entre qui aucun aucune lors",
    "es": "lo al a o u no si su sus se ha han fue fueron era más pero sin sobre entre hasta desde cuando donde esta este "
    "esto estos estas cada muy ni le les nos hay está están una uno unos unas tiene puede",
    "it": "lo i la l gli al alla ai alle dal dalla dei delle degli nel nella nei sul sulla a o ma se si ha hanno è sia "
    "più anche senza su tra fra questo questa questi queste suo sua ogni molto quando dove era ci ne da in un uno",
    "pt": "a ao à aos no na nos nas dos das pelo pela ou mas se sem sob sobre entre até desde quando onde este esta isso "
    "esse essa seu sua há foi foram era mais muito cada ele ela eles elas também uns umas tem pode",
    "nl": "een of maar als dan om door bij uit naar over onder zonder nog ook wel geen hij zij ze we wij jullie hun haar "
    "was waren wordt worden werd heeft hebben had kunnen moet deze dit dat die in aan per elke meer zeer",
}
_WORDS = {code: words | frozenset(_MORE_WORDS[code].split()) for code, words in FUNCTION_WORDS.items()}
COMMON_WORDS = frozenset().union(*_WORDS.values())
"""Function words of all languages that are told apart here."""

# Different function words, of those that the other language does not have.
_LEAST_WORDS = 2
_CLEAR_TIMES = 3
_LEAST_WORD_SHARE = 0.15
# A title has function words ("The Lord of the Rings"), prose has more of them, or other words in small letters, which
# count twice.
_LEAST_OF_PROSE = 4


@dataclass(frozen=True, slots=True)
class _Text:
    """A text without code and quotations: its lines of prose, the weights of its scripts, its function words."""

    text: str
    scripts: Counter[str]
    words: dict[str, frozenset[str]]

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

    @property
    def languages(self) -> list[str]:
        """The languages of which the text has the most function words."""
        most = max(map(len, self.words.values()))
        return [code for code, found in self.words.items() if len(found) == most]

    def is_clear(self, one: str, other: str) -> bool:
        """Whether the text is in ``one`` and not in ``other``, by the words that only one of them has."""
        mine = len(self.words[one] - _WORDS[other])
        return mine >= _LEAST_WORDS and mine >= _CLEAR_TIMES * len(self.words[other] - _WORDS[one])


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
    if scripts == ("CJK", "HIRAGANA"):
        return _is_japanese(candidate)
    return scripts[0] != scripts[1] and not _is_name(candidate)


def _lacks_script(reference: _Text, candidate: _Text) -> bool:
    """Whether the candidate is of a script that the reference has no letter of."""
    script = candidate.script
    if script is None or reference.weight < _LEAST_REFERENCE_WEIGHT:
        return False
    if script in _JAPANESE and reference.scripts["CJK"]:
        return not _kana(reference) and _is_japanese(candidate)
    if reference.scripts[script] or candidate.weight < _LEAST_ALIEN_WEIGHT:
        return False
    if script == "CJK" and _kana(reference):
        return False
    return not _is_name(candidate)


def _kana(text: _Text) -> int:
    return sum(text.scripts[script] for script in _JAPANESE)


def _is_japanese(candidate: _Text) -> bool:
    """Whether kana are more than a name in a Chinese text: endings and particles of Japanese are among them."""
    return len(_PARTICLE.findall(candidate.text)) >= _LEAST_PARTICLES


def _is_name(candidate: _Text) -> bool:
    """Whether a text in Latin letters is a name, a term or code: those are written so in any language."""
    if candidate.script != "LATIN":
        return False
    found = _WORD.findall(candidate.text)
    small = found if candidate.text.isupper() else [word for word in found if word == word.lower()]
    common = {word.casefold() for word in small} & COMMON_WORDS
    content = [word for word in small if len(word) > 1 and word.casefold() not in COMMON_WORDS]
    if not common and candidate.weight < _LEAST_WEIGHT:
        return True
    return 2 * len(content) + len(common) < _LEAST_OF_PROSE


def _is_in_another_language(reference: _Text, candidate: _Text, *, unless: _Text | None = None) -> bool:
    """Whether function words say that both are clear and differ.

    Args:
        reference: an answer, or a question and its answer.
        candidate: what might take the answer's place.
        unless: the answer alone, where the reference is more: it must not lean to the candidate's language.
    """
    return any(
        candidate.is_clear(one, other)
        and reference.is_clear(other, one)
        and _reads_as(candidate, one)
        and not (unless and unless.words[one] - _WORDS[other])
        for one in candidate.languages
        for other in reference.languages
        if one != other
    )


def _reads_as(candidate: _Text, code: str) -> bool:
    """Whether the candidate is prose of a language: function words as thick as in prose, and other words between them.

    Titles and names have their function words too, but few, and no other word in small letters.
    """
    found = _WORD.findall(candidate.text)
    common = sum(word.casefold() in _WORDS[code] for word in found)
    plain = [word for word in found if len(word) > 1 and word.casefold() not in _WORDS[code]]
    is_prose = candidate.text.isupper() or any(word == word.lower() for word in plain)
    if not is_prose and len(candidate.words[code]) < _LEAST_OF_PROSE:
        return False
    return common >= _LEAST_WORD_SHARE * len(found)


def _read(text: str) -> _Text:
    prose = _CODE.sub(" ", text[:_READ_CHARS])
    bare = _QUOTED.sub(" ", prose)
    sample = (bare if _WORD.search(bare) else prose)[:_SAMPLE_CHARS]
    lines = _CODE_LINE.sub(" ", sample)
    return _Text(lines, _scripts(sample), _function_words(lines))


def _scripts(text: str) -> Counter[str]:
    """How much the letters of each script weigh."""
    weights: Counter[str] = Counter()
    for character, count in Counter(text).items():
        if script := _script(character):
            weights[script] += count * _WEIGHTS.get(script, 1)
    kana = sum(weights[script] for script in _JAPANESE)
    if kana and kana >= _JAPANESE_SHARE * (kana + weights["CJK"]):
        weights["HIRAGANA"] = kana + weights["CJK"]
        weights["KATAKANA"] = weights["CJK"] = 0
    return weights


@lru_cache(maxsize=8192)
def _script(character: str) -> str:
    """The first word of the character's Unicode name, which for a letter is its script."""
    if not character.isalpha():
        return ""
    name = unicodedata.name(character, "").split()
    while name and name[0] in {"FULLWIDTH", "HALFWIDTH", "MODIFIER"}:
        name = name[1:]
    return name[0] if name else ""


def _function_words(text: str) -> dict[str, frozenset[str]]:
    """The different function words in ``text`` by language, without those that are parts of names.

    A word in capitals counts only where a sentence begins with it, or where all words are in capitals.
    """
    shouted = text.isupper()
    found = frozenset(
        match[0].casefold()
        for match in _WORD.finditer(text)
        if shouted
        or match[0] == match[0].lower()
        or _SENTENCE_START.search(text[max(0, match.start() - 12) : match.start()])
    )
    return {code: found & known for code, known in _WORDS.items()}
