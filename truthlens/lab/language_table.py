"""Write ``truthlens/text/language_table.npz``: the most telling n-grams of py3langid, for fewer languages.

Its model of 100,053 byte n-grams and 142 columns takes 76 MB of memory and 1.2 s to load; this one 3 MB. Run
as ``python -m truthlens.lab.language_table``. Only the n-grams that are whole characters are kept.
"""

from __future__ import annotations

from collections import deque
from pathlib import Path
from typing import Any

import numpy as np

import truthlens.text
from truthlens.text.language import TOLD_BY_LETTERS

FEATURES = 12_000
STEPS, FLOOR = 16, -15.0
"""A log-probability is kept as a byte: ``FLOOR + byte / STEPS``."""


def features_of(identifier: Any) -> dict[int, str]:
    """Return the characters of each feature of py3langid's automaton, shortest first, without torn characters."""
    moves = np.asarray(identifier.tk_nextmove).reshape(-1, 256)
    seen, waiting, found = {0: b""}, deque([0]), dict[int, bytes]()
    while waiting:
        state = waiting.popleft()
        if (feature := identifier.tk_output[state]) >= 0:
            found.setdefault(feature, seen[state])
        for byte, target in enumerate(moves[identifier.tk_row[state]].tolist()):
            if target not in seen:
                seen[target] = seen[state] + bytes([byte])
                waiting.append(target)
    named = {feature: written.decode(errors="replace") for feature, written in found.items()}
    return {feature: written for feature, written in named.items() if "\ufffd" not in written}


def write(path: Path) -> None:
    """Write the table to ``path``."""
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    identifier = LanguageIdentifier.from_model_file(MODEL_FILE)
    features = features_of(identifier)
    ids = sorted(features)
    columns = [identifier.nb_classes.index(code) for code in TOLD_BY_LETTERS]
    logs = identifier.nb_ptc[ids][:, columns].astype(np.float64)
    probabilities = np.exp(logs)
    mean = probabilities.mean(axis=1, keepdims=True)
    information = (probabilities * np.log(probabilities / mean)).mean(axis=1)
    best = sorted(np.argsort(-information)[:FEATURES].tolist(), key=lambda place: features[ids[place]])
    np.savez_compressed(
        path,
        ngrams=np.array("\0".join(features[ids[place]] for place in best)),
        table=np.clip(np.round((logs[best] - FLOOR) * STEPS), 0, 255).astype(np.uint8),
    )


if __name__ == "__main__":
    write(Path(truthlens.text.__path__[0]) / "language_table.npz")
