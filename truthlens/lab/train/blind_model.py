"""Score labelled answers with a blind model, which never saw their evidence (``truthlens train --blind``).

What it ranks well can be told from the wording alone. A model that reads is worth what it gains over this.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import torch
from tokenizers import Tokenizer

from truthlens.core.errors import ModelError
from truthlens.detection.models.inputs.manifest import FeatureSet
from truthlens.detection.models.inputs.windows import load_tokenizer
from truthlens.lab.data.dataset import Example
from truthlens.lab.export.export import load_run
from truthlens.lab.train.blind import Blind, blinded
from truthlens.lab.train.model import TokenClassifier
from truthlens.lab.train.predict import predict, response_hazard
from truthlens.lab.train.recipe import INPUT
from truthlens.lab.train.trainer import SUMMARY


@dataclass(frozen=True, slots=True, eq=False)
class BlindModel:
    """A trained blind classifier; a function from labelled answers to their scores.

    ``sees`` is what it is shown, ``features`` the lexical features that it was trained with.
    """

    model: TokenClassifier
    tokenizer: Tokenizer
    sees: Blind
    features: FeatureSet | None

    def __call__(self, rows: Sequence[Example]) -> list[float]:
        """Return the score of each row, above 0, higher for less supported; for ranking alone."""
        fmt = INPUT.model_copy(update={"features": self.features})
        margins = predict(self.model, self.tokenizer, blinded(rows, self.sees), fmt=fmt)
        return [response_hazard(tokens) for tokens in margins]


def load_blind(run: Path, *, threads: int = 1) -> BlindModel:
    """Load the blind model of a run folder.

    Raises:
        ModelError: the folder is no finished run, or that of a training which saw the evidence.
    """
    remedy = "give the run folder of: truthlens train --blind answer"
    try:
        settings = json.loads((run / SUMMARY).read_bytes())["settings"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ModelError(f"{run} is no finished training ({SUMMARY} cannot be read); {remedy}") from error
    if settings.get("blind") not in ("answer", "query"):
        raise ModelError(f"{run} is of a training that saw the evidence; {remedy}")
    torch.set_num_threads(threads)
    model = load_run(run)
    model.compares = bool(settings.get("comparison", True))
    features = cast("FeatureSet | None", settings["features"])
    return BlindModel(model, load_tokenizer(run), cast("Blind", settings["blind"]), features)
