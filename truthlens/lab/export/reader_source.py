"""Read the folder of a sequence classifier: its classes, weights, tokenizer, length, licence and languages.

Checkpoints are data of strangers: no code of theirs is run, no pickle is read, and no file outside of the folder.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import transformers
import yaml
from pydantic import ValidationError
from tokenizers import Tokenizer

from truthlens.core.errors import ModelError
from truthlens.detection.detectors.reader.inputs import ReaderEvidence, ReaderFormat
from truthlens.detection.detectors.reader.model import TOKENIZER_NAME, Outcome
from truthlens.detection.models.inputs.windows import load_tokenizer
from truthlens.lab.export.convert import LARGEST_FILE

LAYOUTS = ("bert", "deberta-v2", "modernbert", "mpnet", "roberta", "xlm-roberta")
VOCABULARIES = ("vocab.txt", "vocab.json", "merges.txt", "spm.model", "sentencepiece.bpe.model")
"""Files of slow tokenizers."""
CARD = "README.md"

_HEAD = "ForSequenceClassification"
_SHIFTED = ("mpnet", "roberta", "xlm-roberta")  # position 0 of these layouts is the padding's number plus one
_LONGEST = 8_192
_LEAST_EVIDENCE = 32
_SPARE_TOKENS = 16  # what joined pieces may make more than apart
_MOST_JSON = 4 << 20
_OUTCOMES_BY_NAME: Mapping[str, Outcome] = {
    "entailment": "supported",
    "entailed": "supported",
    "entails": "supported",
    "supported": "supported",
    "supports": "supported",
    "consistent": "supported",
    "contradiction": "contradicted",
    "contradicted": "contradicted",
    "contradict": "contradicted",
    "contradicts": "contradicted",
    "refuted": "contradicted",
    "refutes": "contradicted",
    "neutral": "not_stated",
    "not entailment": "not_stated",
    "not entailed": "not_stated",
    "not enough info": "not_stated",
    "not stated": "not_stated",
    "not supported": "not_stated",
    "unsupported": "not_stated",
    "inconsistent": "not_stated",
    "hallucinated": "not_stated",
}
_KNOWN = "entailment, neutral, contradiction; entailment, not_entailment; supported, unsupported"


def read_object(path: Path) -> dict[str, Any]:
    """Return the JSON object in ``path``.

    Raises:
        ModelError: there is none.
    """
    try:
        found = json.loads(path.read_bytes()) if path.stat().st_size <= _MOST_JSON else None
    except OSError:
        raise ModelError(
            f"{path} is missing; give the folder of a sequence classifier, or OWNER/NAME on a hub"
        ) from None
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise ModelError(f"{path} holds no JSON object; fetch the checkpoint again")
    return found


def source_config(folder: Path, base: str) -> dict[str, Any]:
    """Return the configuration of a sequence classifier that can be exported without code of its own, defaults filled in.

    Raises:
        ModelError: the folder holds none.
    """
    config = read_object(folder / "config.json")
    named = config.get("architectures")
    names = [name for name in named if isinstance(name, str)] if isinstance(named, list) else []
    if config.get("auto_map"):
        raise ModelError(
            f"{base} needs code of its own (auto_map in config.json), which is never run; take a checkpoint of a layout that the library "
            f"knows: {', '.join(LAYOUTS)}"
        )
    if not any(name.endswith(_HEAD) for name in names):
        what = ", ".join(names)[:120] or "nothing that config.json names"
        token = any(name.endswith("ForTokenClassification") for name in names)
        remedy = "leave --as reader out" if token else f"take a checkpoint with …{_HEAD}"
        raise ModelError(f"{base} is no sequence classifier but {what}; {remedy}")
    if config.get("model_type") not in LAYOUTS:
        raise ModelError(
            f"{base} has the layout {str(config.get('model_type'))[:40]!r}; take one of {', '.join(LAYOUTS)}"
        )
    try:
        full = transformers.AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
        return dict(full.to_dict())
    except Exception as error:
        raise ModelError(
            f"config.json of {base} is no configuration of its layout ({type(error).__name__}); fetch the checkpoint again"
        ) from error


def labels_of(config: Mapping[str, Any], named: Sequence[str] | None, *, where: str) -> tuple[Outcome, ...]:
    """Return the outcome of each class, in the order of the logits.

    Args:
        config: of the checkpoint, with ``id2label``.
        named: the classes in the operator's words, in order; left out, ``id2label`` names them.
        where: the checkpoint, in messages.

    Raises:
        ModelError: they cannot be told, or are not two or three of which one is support.
    """
    own = _own_names(config, where)
    names = own if named is None else [name.strip() for name in named]
    if len(names) != len(own):
        raise ModelError(f"--labels names {len(names)} classes, {where} has {len(own)}; name each, in order")
    if len(names) not in (2, 3):
        raise ModelError(
            f"{where} has {_count(len(names))}; a reader needs two or three of which one says that the claim is supported"
        )
    found = [
        _OUTCOMES_BY_NAME.get(" ".join(name.lower().replace("_", " ").replace("-", " ").split()))
        for name in names
    ]
    outcomes = tuple(outcome for outcome in found if outcome is not None)
    if len(outcomes) < len(names):
        raise ModelError(
            f"what the classes {', '.join(names)} of {where} mean cannot be told; name them in order, as its card says, such "
            f"as --labels entailment,neutral,contradiction (known: {_KNOWN})"
        )
    if "supported" not in outcomes or len(set(outcomes)) < len(outcomes):
        raise ModelError(
            f"the classes {', '.join(names)} of {where} mean {', '.join(outcomes)}; expected two or three different outcomes, "
            "supported among them: name them with --labels, in order"
        )
    return outcomes


def _own_names(config: Mapping[str, Any], where: str) -> list[str]:
    """Return the names in ``id2label`` in the order of their numbers."""
    table = config.get("id2label")
    if isinstance(table, Mapping):
        names = [table.get(number, table.get(str(number))) for number in range(len(table))]
        if all(isinstance(name, str) for name in names):
            return [str(name) for name in names]
    raise ModelError(
        f"id2label in config.json of {where} is no table from 0, 1, … to names; mend it in a copy of the folder"
    )


def _count(classes: int) -> str:
    return "one output, a figure and no class" if classes == 1 else f"{classes} classes"


def check_weights(folder: Path, base: str) -> None:
    """Check that the folder holds safetensors, whole, and not too large.

    Raises:
        ModelError: it does not.
    """
    files = sorted(folder.glob("*.safetensors"))
    if not files:
        raise ModelError(
            f"{base} has no *.safetensors; pickled weights are never read: convert them to safetensors in a copy of it"
        )
    index = folder / "model.safetensors.index.json"
    if index.is_file():
        parts = read_object(index).get("weight_map")
        listed = set(parts.values()) if isinstance(parts, Mapping) else {None}
        strange = sorted(str(name)[:80] for name in listed - {file.name for file in files})
        if strange:
            raise ModelError(
                f"{index} names {strange[0]!r}, which is no weights file of the folder; fetch the checkpoint again"
            )
    if sum(file.stat().st_size for file in files) > LARGEST_FILE:
        raise ModelError(
            f"{base} is too large: its weights take more than {LARGEST_FILE / 1e9:.1f} GB; take a smaller checkpoint"
        )


def source_tokenizer(folder: Path, base: str) -> Tokenizer:
    """Return the fast tokenizer of the folder, made from a slow one's files where there is none.

    Raises:
        ModelError: there is neither, or it does not tell two texts apart.
    """
    fast = (folder / TOKENIZER_NAME).is_file()
    tokenizer = load_tokenizer(folder) if fast else _converted(folder, base)
    if tokenizer.num_special_tokens_to_add(is_pair=True) < 2:
        raise ModelError(
            f"{folder / TOKENIZER_NAME} puts no separators around a pair of texts; save the checkpoint's fast tokenizer anew, with "
            "AutoTokenizer.from_pretrained(…).save_pretrained(…)"
        )
    return tokenizer


def _converted(folder: Path, base: str) -> Tokenizer:
    problem = "there is no file of a tokenizer"
    if any((folder / name).is_file() for name in VOCABULARIES):
        try:
            slow = transformers.AutoTokenizer.from_pretrained(
                folder, local_files_only=True, trust_remote_code=False
            )
            fast = getattr(slow, "backend_tokenizer", None)
            if isinstance(fast, Tokenizer):
                fast.no_truncation()
                fast.no_padding()
                return fast
            problem = "the library has no fast one of its kind"
        except Exception as error:  # noqa: BLE001 - converters raise of every kind, the bare Exception among them
            problem = f"the library could not convert it ({type(error).__name__}: {' '.join(str(error).split())[:120]})"
    raise ModelError(
        f"{base} has no {TOKENIZER_NAME}: {problem}. Save a fast one in a copy of the folder, where sentencepiece is installed: "
        "AutoTokenizer.from_pretrained(…).save_pretrained(…)"
    )


def source_format(
    config: Mapping[str, Any], tokenizer: Tokenizer, template: str, evidence_tokens: int, base: str
) -> ReaderFormat:
    """Return what a reader of this configuration reads, with room for ``evidence_tokens``.

    Raises:
        ModelError: tokenizer and weights do not fit, the template is none, or there is too little room.
    """
    size, tokens = config.get("vocab_size"), tokenizer.get_vocab_size()
    added = len(tokenizer.get_added_tokens_decoder())
    if not isinstance(size, int) or not size // 2 <= tokens <= size + added:
        raise ModelError(
            f"the tokenizer of {base} has {tokens} tokens and its weights {size}; they do not belong together: fetch the checkpoint again, "
            "or save its fast tokenizer beside it"
        )
    longest = config.get("max_position_embeddings")
    if not isinstance(longest, int):
        raise ModelError(f"config.json of {base} names no max_position_embeddings; take another checkpoint")
    if config["model_type"] in _SHIFTED:
        longest -= 2
    longest = min(longest, _LONGEST)
    padding = config.get("pad_token_id")
    pad = tokenizer.id_to_token(padding) if isinstance(padding, int) and padding >= 0 else None
    sizes = ReaderFormat()
    try:
        fmt = ReaderFormat(template=template, max_tokens=longest, begin="", end="", pad=pad or "")
    except ValidationError as error:
        raise ModelError(f"--template: {error.errors()[0]['msg'].removeprefix('Value error, ')}") from error
    empty = ReaderEvidence(tokenizer, fmt, []).input_for("")
    room = longest - len(empty.ids) - sizes.claim_tokens - sizes.query_tokens - _SPARE_TOKENS
    if room < _LEAST_EVIDENCE:
        raise ModelError(
            f"{base} reads {longest} tokens, of which claim and template leave {max(room, 0)} for evidence, {_LEAST_EVIDENCE} at least "
            "are needed; take a shorter --template, or another checkpoint"
        )
    if evidence_tokens > room:
        raise ModelError(
            f"--evidence-tokens is {evidence_tokens}; {base} has room for {room}: give at most that"
        )
    return fmt.model_copy(update={"evidence_tokens": evidence_tokens})


def card_of(folder: Path) -> tuple[str, tuple[str, ...]]:
    """Return licence and languages as the head of the checkpoint's card gives them; English where it names none."""
    try:
        with (folder / CARD).open(encoding="utf-8", errors="replace") as stream:
            text = stream.read(_MOST_JSON)
        head = yaml.safe_load(text.split("\n---", 1)[0].removeprefix("---")) if text.startswith("---") else {}
    except (OSError, yaml.YAMLError, RecursionError):
        head = {}
    head = head if isinstance(head, dict) else {}
    licence, named = head.get("license"), head.get("language")
    spoken = [named] if isinstance(named, str) else named if isinstance(named, list) else []
    codes = ["*" if code == "multilingual" else code for code in spoken if isinstance(code, str)][:200]
    known = licence if isinstance(licence, str) and licence else "not stated; see its card"
    return known[:100], tuple(codes) or ("en",)
