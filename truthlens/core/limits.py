"""The bounds on what one exchange may cost; a policy's ``limits`` sets them, all stages keep to them.

What is beyond one of them is not checked, and says ``too-large`` or ``overloaded``.
"""

from __future__ import annotations

from pydantic import Field

from truthlens.core.records.settings import Section


class Limits(Section):
    """Bounds on memory and work."""

    max_body_bytes: int = Field(
        default=16 * 1024 * 1024, ge=1024, description="Larger bodies are not checked."
    )
    max_held_bytes: int = Field(
        default=512 * 1024 * 1024, ge=1024, description="All answers being checked at one time."
    )
    max_json_values: int = Field(
        default=500_000,
        ge=1000,
        description="JSON values of one body (of one frame, in a stream); bodies with more are not checked. With "
        "logprobs a token of the answer is some ten values, and eight more for each of its top_logprobs.",
    )
    max_frames: int = Field(
        default=200_000,
        ge=100,
        description="Frames of a stream under `streaming: buffer`; streams with more are not checked.",
    )
    max_choices: int = Field(
        default=128, ge=1, description="Choices of a response; responses with more are not checked."
    )
    max_answer_chars: int = Field(
        default=500_000,
        ge=1000,
        description="Characters of the answers of a response, all choices together; longer ones are not checked.",
    )
    max_prompt_chars: int = Field(
        default=5_000_000,
        ge=1000,
        description="Characters of all messages of a request, and of all passages in it; answers to requests with more "
        "are not checked.",
    )
    max_passages: int = Field(
        default=10_000,
        ge=1,
        description="Passages of a request; answers to requests with more are not checked.",
    )
    queue_limit: int = Field(
        default=64, ge=1, description="Checks waiting; one more is refused (overloaded)."
    )
    max_windows: int = Field(default=256, ge=1, description="Model windows for one answer.")
    max_streams: int = Field(
        default=1_000,
        ge=1,
        description="Streams under `observe` and `gate` at one time; one more is refused (overloaded).",
    )
    max_stream_bytes: int = Field(
        default=64 * 1024 * 1024,
        ge=65_536,
        description="Bytes that wait of all these streams together. Each has an equal part, beyond which it is not read "
        "on; a new one is refused (overloaded) while the bound is reached.",
    )
    max_stream_frames: int = Field(
        default=200_000, ge=1000, description="Frames that wait of all these streams together, likewise."
    )
    max_questions: int = Field(
        default=4,
        ge=0,
        le=1000,
        description="Questions of `/v1/ask` that are answered at one time; one more is refused (503). "
        "0: none is answered.",
    )
    questions_per_minute: int = Field(
        default=10,
        ge=1,
        le=10_000,
        description="Questions of `/v1/ask` that one user, and one client address, may ask in a minute; "
        "more are refused (429).",
    )
