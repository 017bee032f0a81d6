"""Published checkpoints that ``models pull`` knows by name: where they are, and what they were trained on.

A name outside of this table works as well; then the template is an argument, or follows from the model's
layout.
"""

from __future__ import annotations

from dataclasses import dataclass

from truthlens.detection.models.inputs.manifest import DataSource
from truthlens.detection.models.inputs.prompts import TemplateName

_RAGTRUTH = DataSource(name="RAGTruth (ParticleMedia)", licence="MIT")
_TRANSLATED = DataSource(name="RAGTruth, machine-translated", licence="MIT")


@dataclass(frozen=True, slots=True)
class KnownModel:
    """A checkpoint of the hub.

    ``max_tokens`` is the length it was trained at; ``languages`` are ISO 639 codes, ``*`` for all scripts.
    """

    repository: str
    template: TemplateName
    max_tokens: int
    languages: tuple[str, ...]
    licence: str
    data: tuple[DataSource, ...]

    @property
    def name(self) -> str:
        """The repository without its owner."""
        return self.repository.partition("/")[2]


def _english(repository: str) -> KnownModel:
    return KnownModel(repository, "lettucedetect-v1", 4096, ("en",), "MIT", (_RAGTRUTH,))


def _translated(size: str, language: str, template: TemplateName, code: str) -> KnownModel:
    repository = f"KRLabsOrg/lettucedect-{size}-eurobert-{language}-v1"
    return KnownModel(repository, template, 4096, (code, "en"), "MIT", (_TRANSLATED,))


_LANGUAGES: tuple[tuple[str, TemplateName, str], ...] = (
    ("de", "lettucedetect-de", "de"),
    ("fr", "lettucedetect-fr", "fr"),
    ("es", "lettucedetect-es", "es"),
    ("it", "lettucedetect-it", "it"),
    ("pl", "lettucedetect-pl", "pl"),
    ("cn", "lettucedetect-cn", "zh"),
)
_MODELS = (
    _english("KRLabsOrg/lettucedect-base-modernbert-en-v1"),
    _english("KRLabsOrg/lettucedect-large-modernbert-en-v1"),
    _english("KRLabsOrg/tinylettuce-ettin-17m-en"),
    _english("KRLabsOrg/tinylettuce-ettin-32m-en"),
    _english("KRLabsOrg/tinylettuce-ettin-68m-en"),
    KnownModel(
        "KRLabsOrg/lettucedect-v2-mmbert-base",
        "lettucedetect-v2",
        8192,
        ("*",),
        "Apache-2.0",
        (_RAGTRUTH, DataSource(name="LettuceDetect code, tool and prose benchmark", licence="see its card")),
    ),
    *(_translated(size, *entry) for size in ("210m", "610m") for entry in _LANGUAGES),
)
KNOWN: dict[str, KnownModel] = {model.name: model for model in _MODELS}


def find(name: str) -> KnownModel | None:
    """Return the known model of a short name (``lettucedect-base-modernbert-en-v1``) or of ``owner/name``."""
    known = KNOWN.get(name.rpartition("/")[2])
    return known if known is not None and name in {known.name, known.repository} else None
