"""The bounds on what one exchange may cost; a policy's ``limits`` sets them, every stage that reads keeps to them."""

from __future__ import annotations

from dataclasses import dataclass

from truthlens.core.errors import BodyTooLargeError


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds on memory and work. What is beyond one of them is not checked, and says ``too-large``.

    Bytes of one body and of all bodies held at one time; JSON values of one body; frames of a stream that is held whole;
    choices of a response, and characters of all their texts; characters of all messages of a request, or of its passages;
    passages of a request; waiting checks; model windows of an answer.
    """

    max_body_bytes: int = 16 * 1024 * 1024
    max_held_bytes: int = 512 * 1024 * 1024
    max_json_values: int = 500_000
    max_frames: int = 200_000
    max_choices: int = 128
    max_answer_chars: int = 500_000
    max_prompt_chars: int = 5_000_000
    max_passages: int = 10_000
    queue_limit: int = 64
    max_windows: int = 256


def check(measured: int, limit: int, *, key: str) -> None:
    """Raise ``BodyTooLargeError`` where ``measured`` exceeds ``limit``, which stands in the policy as ``limits.key``."""
    if measured > limit:
        raise BodyTooLargeError(f"{measured} is more than limits.{key} allows ({limit}); raise it")
