"""What holds no text of an answer in a response: a table of names, and what may stand under them.

A name alone proves nothing, since any server may write a sentence there. Under a name of the table a string is
bookkeeping where it is an address or a label of a few words; under any other name where it does not read like something
said.

Source: OpenAI API (chat completions, completions), and members that vLLM, SGLang, llama.cpp, LiteLLM, OpenRouter, Azure,
Groq, Mistral and Perplexity add to it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from urllib.parse import unquote_plus

from truthlens.text.json_edit import show

_LONGEST = 128
_MOST_WORDS = 4
# Of an identifier, of a member over all frames, and of all members of unknown names together: less than what
# is a copy of a text; but the names of models are long.
MOST_PARTS = 5
MOST_PARTS_MODEL = 8
# The name of a source is longer than any other label.
_LONGEST_TITLE = 256
_MOST_WORDS_TITLE = 24
_MOST_ITEMS = 4
_MOST_MEMBERS = 64
KEY = re.compile(r"[\w.$:/+-]{1,64}", re.ASCII)
_SIGNATURES = frozenset(("signature", "thought_signature"))
_SIGNATURE = re.compile(r"[A-Za-z0-9+/]+={0,2}", re.ASCII)
TEXTLESS = (int, float, bool, type(None))
GONE = object()
"""What a member leaves of which nothing may."""

NAMES = frozenset(
    [
        "annotations",
        "citations",
        "content_filter_offsets",
        "content_filter_results",
        "created",
        "custom_blocklists",
        "date",
        "detected",
        "end_index",
        "filtered",
        "finish_details",
        "finish_reason",
        "generation_settings",
        "hate",
        "id",
        "image_url",
        "images",
        "index",
        "indirect_attack",
        "jailbreak",
        "kv_transfer_params",
        "logprobs",
        "matched_stop",
        "model",
        "name",
        "native_finish_reason",
        "object",
        "obfuscation",
        "p",
        "profanity",
        "prompt",
        "prompt_filter_results",
        "prompt_index",
        "prompt_logprobs",
        "prompt_token_ids",
        "protected_material_code",
        "protected_material_text",
        "provider",
        "provider_specific_fields",
        "role",
        "search_results",
        "self_harm",
        "service_tier",
        "severity",
        "sexual",
        "signature",
        "start_index",
        "stop",
        "stop_reason",
        "stopping_word",
        "system_fingerprint",
        "timings",
        "title",
        "token_ids",
        "truthlens",
        "type",
        "url",
        "url_citation",
        "usage",
        "violence",
        "x_groq",
    ]
)
"""What servers are known to say of a response, a chunk or a choice without saying its text."""
COPIES = frozenset(
    [
        "text",
        "content",
        "message",
        "delta",
        "logprobs",
        "top_logprobs",
        "prompt_logprobs",
        "token",
        "tokens",
        "token_id",
        "token_ids",
        "prompt_token_ids",
        "output",
        "output_text",
        "output_ids",
        "generated_text",
        "generation",
        "response",
        "completion",
        "transcript",
        "audio",
        "hidden_states",
        "details",
        "__verbose",
    ]
)
"""Names under which servers repeat an answer, one short piece a chunk."""
REASONING = frozenset(("reasoning_content", "reasoning", "reasoning_details", "thinking", "thinking_blocks"))
CALLS = frozenset(("tool_calls", "function_call"))
CALLED = frozenset(("function", "custom"))
"""Within a call: what is called."""
ARGUMENTS = frozenset(("arguments", "input"))
_TOKENS = frozenset(("token", "tokens", "decoded_token", "bytes"))
"""Within log probabilities: one token each, which may look like a sentence of one word."""

# Scripts that part words by no space: so many characters are a word.
_WIDE = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\ua4cf\uac00-\ud7ff\uf900-\ufaff\uff66-\uff9f"
_WIDE_CHAR = re.compile(f"[{_WIDE}]")
_WIDE_WORD = 2
_TOKEN = re.compile(f"[{_WIDE}]|[^\\W{_WIDE}]+")
_ESCAPE = re.compile(r"\\+u([0-9a-fA-F]{4})")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_ADDRESS = re.compile(r"https?://[!-~]{1,2000}|data:image/[\w.+-]{1,40};base64,[A-Za-z0-9+/=]+", re.ASCII)

# Bounded, so that a long string is read once: unread strings may be all of a body.
_BETWEEN = r"[^\w\s]{0,4}\s{1,64}[^\w\s]{0,4}"
_LETTER = re.compile("[A-Za-z\u0080-\U0010ffff]")
_WORDS = re.compile(rf"[^\W\d_]{_BETWEEN}[^\W_]|\d{_BETWEEN}[^\W\d_]")
_SENTENCE = re.compile(r"[^\W_][.!?…。！？]['\")\]]{0,4}\Z")
_STATEMENT = re.compile(r"[^\W_](?<!\.\.)[.!。！]['\")\]]{0,4}\Z")
# Scripts that write without spaces.
_DENSE = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]{2}"
)


def is_prose(text: str) -> bool:
    """Whether ``text`` reads like something said.

    That is two words at least, the end of a sentence, or letters of a script without spaces.
    """
    words = len(text.split(maxsplit=1)) > 1 and _LETTER.search(text) and _WORDS.search(text)
    return bool(words or _SENTENCE.search(text.rstrip()[-16:]) or _DENSE.search(text))


def is_address(value: object) -> bool:
    """Whether a value is the address of a page, or an image written as one."""
    return isinstance(value, str) and _ADDRESS.fullmatch(value) is not None


def _is_label(text: str) -> bool:
    """Whether ``text`` is a label of a few words, and no sentence."""
    return (
        len(text) <= _LONGEST
        and _count_words(text) <= _MOST_WORDS
        and _SENTENCE.search(text.rstrip()[-16:]) is None
    )


def is_identifier(name: str, text: str) -> bool:
    """Whether a string in the member ``name`` is short, of one piece, and no sentence in another spelling."""
    return (
        0 < len(text) <= _LONGEST
        and text.isascii()
        and text.isprintable()
        and " " not in text
        and len(natural_words(text)) <= (MOST_PARTS_MODEL if name == "model" else MOST_PARTS)
    )


def says_nothing(name: str, text: str, beside: Mapping[str, object]) -> bool:
    """Whether a string in the member ``name``, or in a list there, is bookkeeping; ``beside`` are all members."""
    if not is_prose(text) or is_address(text):
        return True
    if name in _TOKENS:
        return len(text) <= _LONGEST and len(text.split()) <= 1 and _count_words(text) <= _MOST_WORDS
    if name == "title" and isinstance(beside.get("url"), str):
        short = len(text) <= _LONGEST_TITLE and _count_words(text) <= _MOST_WORDS_TITLE
        return short and _STATEMENT.search(text.rstrip()[-16:]) is None
    return name in NAMES and _is_label(text)


def is_said(name: str) -> bool:
    """Whether the name of a member is a text; a token, which may be one too, has no two words."""
    return (" " in name or not name.isascii()) and _count_words(name) > 1 and is_prose(name)


def texts_within(name: str, value: object) -> list[str]:
    """The strings of the member ``name``, at any depth and in order, that are no bookkeeping."""
    found: list[str] = []
    # A stack and no recursion: JSON may nest as deep as the decoder lets it.
    waiting: list[tuple[str, object, Mapping[str, object]]] = [(name, value, {})]
    while waiting:
        name, each, beside = waiting.pop()
        if isinstance(each, str):
            if not says_nothing(name, each, beside):
                found.append(show(each))
        elif isinstance(each, dict):
            found += [show(key) for key in each if is_said(key)]
            waiting += reversed([(key, held, each) for key, held in each.items()])
        elif isinstance(each, list):
            waiting += reversed([(name, held, beside) for held in each])
    return found


class ShortStrings:
    """Leaves of one member what is too short to be a sentence.

    ``said`` is what that says, in order; ``counted`` what of it counts with other frames.
    """

    def __init__(self, name: str) -> None:
        self.said: list[str] = []
        self.counted: list[str] = []
        self._known = name in NAMES
        if not self._known:
            self._says(name)
        self._numbers_only = name == "usage"
        self._titles = _MOST_WORDS_TITLE
        self._items = _MOST_ITEMS

    def of(self, name: str, value: object, beside: Mapping[str, object] = MappingProxyType({})) -> object:
        """Return what leaves of a value in the member ``name``; ``beside`` are all members."""
        if isinstance(value, TEXTLESS):
            return value
        if isinstance(value, str):
            return value if not self._numbers_only and self._takes(name, value, beside) else GONE
        if isinstance(value, dict):
            if len(value) > _MOST_MEMBERS:
                return GONE
            return less(value, {key: self._member(key, each, value) for key, each in value.items()})
        assert isinstance(value, list)
        # A row of numbers is a text in token ids, a row of words is one as it stands; so are many short rows.
        self._items -= sum(isinstance(each, (str, *TEXTLESS)) and not is_address(each) for each in value)
        if self._items < 0 or len(value) > _MOST_MEMBERS or (self._numbers_only and value):
            return GONE
        return less(value, [self.of(name, each) for each in value])

    def _member(self, key: str, value: object, beside: Mapping[str, object]) -> object:
        if key in COPIES or not KEY.fullmatch(key):
            return GONE
        if key not in NAMES:
            words = len(natural_words(key))
            if words > _MOST_WORDS:
                return GONE
            # Names of measures have several words each, and there are many.
            self._says(key, counts=words == 1 or not self._known)
        return self.of(key, value, beside)

    def _says(self, text: str, *, counts: bool = True) -> None:
        self.said.append(text)
        if counts:
            self.counted.append(text)

    def _takes(self, name: str, text: str, beside: Mapping[str, object]) -> bool:
        if is_address(text):
            self._says(text, counts=False)
            # The path of a page often spells its title.
            spaced = text if "%20" in text or "+" in text else text.partition("?")[2]
            return len(natural_words(spaced)) <= MOST_PARTS
        if name in _SIGNATURES and _SIGNATURE.fullmatch(text):
            self._says(text, counts=False)
            return True
        if name not in NAMES or not is_identifier(name, text):
            words = _count_words(text)
            if len(text) > _LONGEST or words > _MOST_WORDS or len(natural_words(text)) > MOST_PARTS:
                return False
            if name == "title" and is_address(beside.get("url")):
                self._titles -= words
                self._says(text, counts=False)
                return self._titles >= 0
        self._says(text)
        return True


def less(value: object, kept: object) -> object:
    """``kept`` without what is gone; ``value`` itself where nothing is, ``GONE`` where nothing is left."""
    if isinstance(kept, dict):
        assert isinstance(value, dict)
        left: object = {key: each for key, each in kept.items() if each is not GONE}
        same = all(kept[key] is each for key, each in value.items())
    else:
        assert isinstance(kept, list)
        assert isinstance(value, list)
        left = [each for each in kept if each is not GONE]
        same = all(new is old for new, old in zip(kept, value, strict=True))
    return value if same else left or GONE


def spelled_by(logprobs: object) -> str:
    """The text that log probabilities spell, without tokens that are no characters."""
    found = logprobs if isinstance(logprobs, dict) else {}
    entries = found.get("content") or found.get("refusal") or found.get("tokens") or []
    tokens = map(_token_of, entries) if isinstance(entries, list) else ()
    return "".join(token for token in tokens if "\\x" not in token and "\ufffd" not in token)


def words_of(text: str) -> list[str]:
    """The words of ``text`` as a reader finds them, small; escapes and parts of an address or a name are told apart."""
    if "\\" in text:
        text = _ESCAPE.sub(lambda code: chr(int(code[1], 16)), text)
    if "%" in text or ("+" in text and is_address(text)):
        text = unquote_plus(text)
    return _TOKEN.findall(text.replace("_", " ").lower())


def natural_words(text: str) -> list[str]:
    """The words of ``text`` that are letters alone; none of an id, where the most of its parts are not."""
    words = words_of(split_camel(text))
    natural = [word for word in words if word.isalpha()]
    return natural if 2 * len(natural) >= len(words) else []


def split_camel(text: str) -> str:
    """``text`` with a space before each capital that follows a small letter."""
    return _CAMEL.sub(" ", text)


def _count_words(text: str) -> int:
    """Words of a text; an id or an address is one."""
    if text.isascii():
        return len(text.split())
    return len(text.split()) + len(_WIDE_CHAR.findall(text)) // _WIDE_WORD


def _token_of(entry: object) -> str:
    token = entry.get("token") if isinstance(entry, dict) else entry
    return token if isinstance(token, str) else ""
