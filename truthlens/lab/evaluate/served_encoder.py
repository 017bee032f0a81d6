"""The encoder as it is served, with the token scores behind each verdict kept for the workshop.

An evaluation needs the probabilities of single tokens and the response score under every aggregation; the
detector gives neither, and running the model again for each would cost as often. Here the model runs once an
answer, inside the detector, and its log-odds are read again afterwards. Every reading is compared with what
was served.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from truthlens.core.cancellation import StopCheck, never
from truthlens.core.errors import DetectorError
from truthlens.core.records.enums import Aggregation
from truthlens.core.records.exchange import Answer, Exchange, plain_exchange
from truthlens.core.records.verdict import Coverage, DetectorResult, Span
from truthlens.detection.detectors.encoder.detector import EncoderDetector
from truthlens.detection.detectors.encoder.loading import load_model, verify_files
from truthlens.detection.detectors.encoder.session import evidence_texts
from truthlens.detection.detectors.encoder.span_edges import evaluated_spans
from truthlens.detection.detectors.encoder.token_scores import read_answer
from truthlens.detection.models.aggregation import spans_of
from truthlens.detection.models.inputs.json_values import Rendering, render
from truthlens.detection.models.inputs.manifest import Manifest, load_manifest
from truthlens.detection.models.inputs.value_wordings import ValueWordings
from truthlens.detection.models.inputs.windows import Window, load_tokenizer
from truthlens.detection.models.runtime import TokenModel
from truthlens.lab.evaluate.metrics import touches
from truthlens.text.spans import merge_ranges, trimmed

_TOLERANCE = 1e-6


@dataclass(frozen=True, slots=True, eq=False)
class TokenReading:
    """The scores behind one verdict, without its text.

    ``p`` has shape (answer tokens,), float32, the probabilities as served: 0 where a sentence claims nothing.
    ``gold`` has the same shape: whether a token overlaps a marked span; ``None`` where no spans were marked.
    ``spans`` has one row a predicted span: its score, and 1.0 where it overlaps a marked one (``NaN`` where
    nobody marked). ``scores`` is the response score under each aggregation.
    """

    p: NDArray[np.float32]
    gold: NDArray[np.bool_] | None
    spans: NDArray[np.float64]
    scores: Mapping[Aggregation, float]


@dataclass(frozen=True, slots=True, eq=False)
class ServedAnswer:
    """What the detector said of one answer, and the windows and log-odds that it said it from.

    ``aggregation`` is the one that it was scored by.
    """

    result: DetectorResult
    manifest: Manifest
    aggregation: Aggregation
    query: str
    text: str
    tokenizer: Tokenizer
    rendering: Rendering | None
    windows: Sequence[Window]
    odds: Sequence[NDArray[np.float32]]

    @property
    def score(self) -> float | None:
        """Response score, 0..1, or ``None`` where nothing was scored."""
        return self.result.score

    @property
    def spans(self) -> Sequence[Span]:
        """Unsupported parts of the answer."""
        return self.result.spans

    @property
    def coverage(self) -> Coverage | None:
        """How much was looked at."""
        return self.result.coverage

    def reading(self, gold: Sequence[tuple[int, int]] | None) -> TokenReading | None:
        """Return the token, span and response scores, or ``None`` if nothing was scored.

        Args:
            gold: the marked spans, ``None`` where none were marked.

        Raises:
            DetectorError: the scores that are read here are not those that were served.
        """
        if self.result.score is None:
            return None
        manifest = self.manifest
        shown = self.rendering
        text = self.text if shown is None else shown.text
        encoding = self.tokenizer.encode(text, add_special_tokens=False)
        offsets = np.array(encoding.offsets, dtype=np.int64).reshape(-1, 2)
        reading = read_answer(
            self.windows, self.odds, offsets=offsets, text=text, query=self.query, fmt=manifest.input,
            languages=manifest.languages or ("*",), silent=shown.silent if shown is not None else (),
            values=shown.values if shown is not None else (),
        )  # fmt: skip
        p = reading.probabilities(temperature=manifest.temperature)
        runs = spans_of(p, offsets, manifest.tau_span, text)
        scores = {
            name: manifest.scoring.score(name, p=reading.counted(p), spans=runs) for name in Aggregation
        }
        spans = evaluated_spans(runs, p, offsets, text)
        if shown is not None:
            offsets = np.array([shown.source(start, end) for start, end in offsets]).reshape(-1, 2)
            spans = shown.sourced(spans)
        self._compare(scores[self.aggregation], spans)
        union = None if gold is None else merge_ranges(gold)
        return TokenReading(
            p=p.astype(np.float32),
            gold=None if union is None else _overlapping(_trimmed(offsets, self.text), union),
            spans=np.array([(span.score, _right(span, union)) for span in spans]).reshape(-1, 2),
            scores=scores,
        )

    def _compare(self, score: float, spans: Sequence[Span]) -> None:
        served = self.result
        same_spans = _ranges(spans) == _ranges(served.spans)
        if served.score is None or abs(score - served.score) > _TOLERANCE or not same_spans:
            raise DetectorError(
                f"token scores read back give a response score of {score:.6f} and {len(spans)} span(s), served were "
                f"{served.score} and {len(served.spans)}; expected the same: ServedAnswer.reading must follow "
                "EncoderDetector"
            )


class ServedEncoder:
    """The encoder detector of a model folder; a function from query, passages and answer to ``ServedAnswer``.

    It is also a ``detection.interfaces.Detector``, for plans that list further detectors: ``watch`` says of
    which answer ``served`` is to be kept. Not for several threads at once.

    Args:
        model: the loaded weights.
        tokenizer: the model's own, as ``load_tokenizer`` gives it.
        manifest: of the model.
        max_windows: most windows for one answer.
    """

    def __init__(
        self, model: TokenModel, tokenizer: Tokenizer, manifest: Manifest, *, max_windows: int = 256
    ) -> None:
        self.manifest = manifest
        self.served: ServedAnswer | None = None
        self._watched: Answer | None = None
        self._tokenizer = tokenizer
        self._model = _Remembering(model)
        self._detector = EncoderDetector(self._model, tokenizer, manifest, max_windows=max_windows)

    @property
    def runtime(self) -> str:
        """Kind of runtime and weights file."""
        return self._model.name

    @property
    def model(self) -> str:
        """The model's name, from its manifest."""
        return self.manifest.name

    def __call__(self, query: str, passages: Sequence[str], answer: str) -> ServedAnswer:
        """Score one answer.

        Raises:
            DetectorError: the model failed.
        """
        exchange, asked = plain_exchange(query, passages, answer)
        self.watch(asked)
        self.detect_all(exchange, [asked])
        assert self.served is not None
        return self.served

    def watch(self, answer: Answer) -> None:
        """Forget what was served, and keep what ``detect_all`` next says of ``answer``."""
        self.served, self._watched = None, answer

    def reads(self, exchange: Exchange, answer: Answer) -> bool:
        """Return whether the model reads the language of the answer."""
        return self._detector.reads(exchange, answer)

    def detect_all(
        self,
        exchange: Exchange,
        answers: Sequence[Answer],
        *,
        aggregation: Aggregation | None = None,
        stop: StopCheck = never,
    ) -> list[DetectorResult]:
        """Return the detector's own results, one per answer."""
        self._model.forget()
        results = self._detector.detect_all(exchange, answers, aggregation=aggregation, stop=stop)
        if len(answers) == 1 and answers[0] == self._watched:
            (answer,), (result,) = answers, results
            evidence = evidence_texts(exchange)
            self.served = ServedAnswer(
                result=result,
                manifest=self.manifest,
                aggregation=aggregation or self.manifest.aggregation,
                query=exchange.query,
                text=answer.text,
                tokenizer=self._tokenizer,
                rendering=render(answer.text, ValueWordings(evidence)),
                windows=self._model.windows,
                odds=self._model.odds,
            )
        return results

    def warm_up(self) -> None:
        """Score texts of our own, so that the first answer's latency is that of warmed-up weights.

        Raises:
            ModelError: the model cannot score them.
        """
        self._detector.warm_up()


def load_served(
    folder: Path, *, use_cpu: bool = True, threads: int = 1, max_windows: int = 256
) -> ServedEncoder:
    """Load the encoder of a model folder; it is not yet warm.

    Raises:
        ModelError: the folder cannot be used.
    """
    manifest = load_manifest(folder)
    verify_files(folder, manifest.files)
    model = load_model(folder, manifest=manifest, use_cpu=use_cpu, threads=threads)
    return ServedEncoder(model, load_tokenizer(folder), manifest, max_windows=max_windows)


class _Remembering:
    """A token model that keeps the windows and log-odds of its last run."""

    def __init__(self, model: TokenModel) -> None:
        self._model = model
        self.windows: Sequence[Window] = ()
        self.odds: Sequence[NDArray[np.float32]] = ()

    @property
    def name(self) -> str:
        return self._model.name

    def log_odds(self, windows: Sequence[Window], *, stop: StopCheck = never) -> list[NDArray[np.float32]]:
        odds = self._model.log_odds(windows, stop=stop)
        self.windows, self.odds = windows, odds
        return odds

    def forget(self) -> None:
        self.windows, self.odds = (), ()


def _trimmed(offsets: NDArray[np.int64], text: str) -> NDArray[np.int64]:
    """Return the tokens without the white space that byte-pair tokens begin with; shape (tokens, 2)."""
    ranges = [trimmed(text, start, end) for start, end in offsets.tolist()]
    return np.array(ranges, dtype=np.int64).reshape(-1, 2)


def _overlapping(offsets: NDArray[np.int64], ranges: Sequence[tuple[int, int]]) -> NDArray[np.bool_]:
    found = np.zeros(len(offsets), dtype=np.bool_)
    for start, end in ranges:
        found |= (offsets[:, 0] < end) & (offsets[:, 1] > start)
    return found


def _right(span: Span, gold: Sequence[tuple[int, int]] | None) -> float:
    return float("nan") if gold is None else float(touches((span.start, span.end), gold))


def _ranges(spans: Sequence[Span]) -> list[tuple[int, int]]:
    return [(span.start, span.end) for span in spans]
