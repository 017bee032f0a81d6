"""What a stream that has ended tells of its own completeness, and what that makes of verdicts on its answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from truthlens.api.sse.chunks import Transcript
from truthlens.core.records.enums import Reason, Status
from truthlens.core.records.verdict import Verdict

STREAM_ERROR = "stream-error"
"""The note of a stream within which the backend reported an error."""


def reason_of(transcript: Transcript, *, overflowed: bool) -> Reason | None:
    """Return why a stream that has ended cannot have been checked wholly, as far as the stream itself tells."""
    if overflowed:
        return Reason.TOO_LARGE
    text = any(choice.text.strip() for choice in transcript.choices.values())
    # Text beside choices that never came belongs to no answer that could say so.
    if transcript.opaque or (transcript.unread_tokens and not transcript.choices):
        return Reason.DIALECT
    return Reason.UPSTREAM_ERROR if transcript.failed and not text else None


def limited(verdicts: Sequence[Verdict], reason: Reason | None) -> tuple[Verdict, ...]:
    """Return the verdicts of answers of which, for ``reason``, not everything was seen."""
    if reason is None:
        return tuple(verdicts)
    return tuple(_limited(verdict, reason) for verdict in verdicts)


def _limited(verdict: Verdict, reason: Reason) -> Verdict:
    if verdict.score is not None:
        return replace(verdict, status=Status.PARTIAL, reason=reason)
    # What seems empty may have its text in what was not seen.
    return replace(verdict, reason=reason) if verdict.reason is Reason.EMPTY_ANSWER else verdict
