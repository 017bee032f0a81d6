"""Score answers with a token classifier over [evidence, query, answer]: from windows to spans and a score.

CPU-bound and synchronous; safe to use from several threads. It decides nothing: thresholds, fusion with other
detectors and deadlines are the engine's.
"""

from __future__ import annotations

from collections.abc import Sequence

from tokenizers import Tokenizer

from truthlens.core.cancellation import StopCheck, never
from truthlens.core.errors import DetectorError, ModelError
from truthlens.core.records.enums import Aggregation, DetectorName
from truthlens.core.records.exchange import Answer, Exchange
from truthlens.core.records.verdict import DetectorResult
from truthlens.detection.detectors.encoder.session import EncoderFollower, evidence_texts
from truthlens.detection.models.inputs.manifest import Manifest
from truthlens.detection.models.inputs.windows import build_windows
from truthlens.detection.models.runtime import TokenModel
from truthlens.text.language import is_read, readable, unread

REMEMBERED_BYTES = 16 << 20
"""Of the windows of one exchange: with the bundled model those of about 9,000 answer tokens."""

_WARM_UP_TEXT = "The reading room opens at nine and closes at six. "


class EncoderDetector:
    """Scores answers with a token classifier.

    Args:
        model: the loaded weights.
        tokenizer: the model's tokenizer, without padding and truncation.
        manifest: how the model's input is built and its output is read.
        max_windows: most windows for one answer; beyond that coverage is not complete.
        remembered_bytes: what ``follow`` may remember of one exchange; windows beyond are run again with each
            call.
    """

    name: str = DetectorName.ENCODER

    def __init__(
        self,
        model: TokenModel,
        tokenizer: Tokenizer,
        manifest: Manifest,
        *,
        max_windows: int = 256,
        remembered_bytes: int = REMEMBERED_BYTES,
    ) -> None:
        self.manifest = manifest
        self._model = model
        self._tokenizer = tokenizer
        self._max_windows = max_windows
        self._remembered_bytes = remembered_bytes

    @property
    def model(self) -> str:
        """The model's name, from its manifest."""
        return self.manifest.name

    def detect(
        self,
        exchange: Exchange,
        answer: Answer,
        *,
        aggregation: Aggregation | None = None,
        stop: StopCheck = never,
    ) -> DetectorResult:
        """Score one answer; see ``detect_all``."""
        return self.detect_all(exchange, [answer], aggregation=aggregation, stop=stop)[0]

    def detect_all(
        self,
        exchange: Exchange,
        answers: Sequence[Answer],
        *,
        aggregation: Aggregation | None = None,
        stop: StopCheck = never,
    ) -> list[DetectorResult]:
        """Score the answers of one exchange, their windows batched together.

        Args:
            exchange: query and passages.
            answers: choices of the response; only their text is read.
            aggregation: how token scores become the response score; by default as the manifest says.
            stop: called between batches; once it returns true, the result is no longer needed.

        Returns:
            One result per answer, in order. A result without score says why in ``reason``: ``empty-answer``,
            ``no-context``, ``language`` (the model does not read the language of the answer or of any passage) or
            ``too-large`` (no token could be scored within bounds). A result with a score *and* reason
            ``language`` scored only what the model can read, which its coverage shows. ``duration_s`` is that of
            the whole call.

        Raises:
            DetectorError: the model failed, or ``stop`` said true.
        """
        follower = self._follower(exchange, most_bytes=0)
        return follower.detect_all(answers, [()] * len(answers), aggregation=aggregation, stop=stop)

    def follow(self, exchange: Exchange) -> EncoderFollower:
        """Return a scorer for the answers of ``exchange`` while they grow; see ``EncoderFollower``."""
        return self._follower(exchange, most_bytes=self._remembered_bytes)

    def reads(self, exchange: Exchange, answer: Answer) -> bool:
        """Return whether the model reads the language of the answer and of any passage; known before scoring."""
        languages = self.manifest.languages or ("*",)
        foreign = unread(answer.text, languages, before=exchange.query)
        return is_read(answer.text, foreign) and any(
            readable(text, languages) for text in evidence_texts(exchange)
        )

    def warm_up(self) -> None:
        """Score a short and a longer text of our own, so that the first exchange meets warmed-up weights.

        Raises:
            ModelError: the model cannot score them.
        """
        for passages in (1, 12):
            windows = build_windows(
                self._tokenizer,
                self.manifest.input,
                query="When does the reading room open?",
                passages=(_WARM_UP_TEXT * 2,) * passages,
                answer=_WARM_UP_TEXT * passages,
            )
            try:
                self._model.log_odds(windows.windows)
            except DetectorError as error:
                raise ModelError(
                    f"model {self.model} ({self._model.name}) fails on a test text: {error}"
                ) from error

    def _follower(self, exchange: Exchange, *, most_bytes: int) -> EncoderFollower:
        return EncoderFollower(
            exchange,
            model=self._model,
            tokenizer=self._tokenizer,
            manifest=self.manifest,
            max_windows=self._max_windows,
            most_bytes=most_bytes,
        )
