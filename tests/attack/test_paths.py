"""Spellings of the paths of answers, before a backend that serves whatever it is asked for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.attack.backend import Answer
from tests.attack.gateway import Target, attacks, says, shown
from tests.attack.texts import FALSE, tells

pytestmark = pytest.mark.envoy

_ROOTS = (
    "/v1/chat/completions",
    "/chat/completions",
    "/openai/deployments/x/chat/completions",
    "/proxy/v1/chat/completions",
)
_TAILS = ("", "/", "//", "?", "?a=/v1/models", "?api-version=1#x", ";a=b", "/.", "/x/..", "%20", "%00", "%09", "%2f", "\\", ".json", "/v1/embeddings/../../chat/completions", "%3f", "%23/v1/models")  # fmt: skip


@st.composite
def _paths(draw: st.DrawFn) -> str:
    """A path of answers, as somebody writes it who does not want it to be known."""
    path = draw(st.sampled_from(_ROOTS))
    written = ""
    for plain in path:
        letter = plain
        match draw(st.integers(0, 12)):
            case 0:
                letter = f"%{ord(plain):02x}"
            case 1:
                letter = f"%25{ord(plain):02X}"
            case 2:
                letter = plain.upper()
            case 3 if plain == "/":
                letter = draw(
                    st.sampled_from(
                        [
                            "//",
                            "/./",
                            "/x/../",
                            "/%2e/",
                            "\\",
                            "/;/",
                            "/;x=1/",
                            "/x/%2e%2e/",
                            "/v1/embeddings/../../",
                        ]
                    )
                )
        written += letter
    if not written.startswith("/"):
        written = f"/{written}"
    return written + draw(st.sampled_from(_TAILS))


@attacks(ci=60, nightly=3000)
@given(
    path=_paths(),
    forged=st.sampled_from(
        ["x-truthlens-status", "x_truthlens_status", "X-TruthLens_Score", "x-truthlens-detected"]
    ),
)
def test_no_spelling_gets_an_answer_past_the_plan(by_header: Target, path: str, forged: str) -> None:
    """It is flagged or refused, or says why it was not checked where that is allowed; no verdict of the backend is believed."""
    body = b'{"choices": [{"index": 0, "message": {"role": "assistant", "content": "%b"}}]}' % FALSE.encode()
    for plan in ("annotate", "block"):
        response = by_header.ask(Answer([body], headers={forged: "forged"}), plan=plan, path=path)
        told = says(response)
        assert "forged" not in response.headers.values(), shown(response, path)
        if tells(response.content):
            assert told.get("status") in ("checked", "partial", "unchecked"), shown(response, path)
            assert plan != "block" or told.get("detected") == "true", shown(response, path)
            assert told["status"] == "unchecked" or told.get("detected") == "true", shown(response, path)


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
def test_other_methods_with_a_body_are_no_way_past(by_header: Target, method: str) -> None:
    """A backend that takes them as a POST answers them."""
    answer = Answer([b'{"choices": [{"index": 0, "message": {"content": "%b"}}]}' % FALSE.encode()])
    response = by_header.ask(answer, plan="block", method=method)
    assert not tells(response.content) or says(response).get("detected") == "true", shown(response, method)
