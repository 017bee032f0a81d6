"""The cuts that the bundled encoder was trained on stay as they are, byte for byte."""

import hashlib
import re

from hypothesis import given
from hypothesis import strategies as st

from truthlens.text.sentences_v1 import sentences_v1

_END = re.compile(r"[。！？；]+[”’」』）)\"']*|[.!?…]+[\"'”’)\]]*(?=\s)|\n+")
_ABBREVIATION = re.compile(
    r"(?:\b(?:Mr|Mrs|Ms|Dr|Prof|Sr|Jr|St|vs|etc|e\.g|i\.e|cf|No|Fig|Inc|Ltd|Co|Corp|approx|Jan|Feb|Mar"
    r"|Apr|Jun|Jul|Aug|Sep|Sept|Oct|Nov|Dec)|(?:^|[\s(])(?:[A-Z]|\d{1,2}))\.$"
)
_PIECES = st.sampled_from(
    [
        *"Ax1é中.!?… \n\t()\"'”]。！；）_",
        "...",
        "Mr",
        "e.g",
        "approx",
        "aapprox",
        "No",
        "12",
        "123",
        "word ",
        ". ",
    ]
)


def _plainly(text: str) -> list[tuple[int, int]]:
    """The rule as it reads: all that stands before a full stop decides whether that ends a sentence."""
    found = []
    start = 0
    for match in [*_END.finditer(text), None]:
        if match and match[0][0] == "." and _ABBREVIATION.search(text[start : match.start() + 1]):
            continue
        end = match.end() if match else len(text)
        bare = text[start:end].strip()
        if bare:
            first = start + len(text[start:end]) - len(text[start:end].lstrip())
            found.append((first, first + len(bare)))
        start = end
    return found


@given(st.lists(_PIECES, max_size=40).map("".join))
def test_few_characters_decide_whether_a_full_stop_ends_a_sentence(text: str) -> None:
    """Reading only the end of what stands before a full stop finds the sentences that reading all of it finds."""
    assert sentences_v1(text) == _plainly(text)


_TEXTS = (
    "The U.S. economy grew. He is 12. She is 10. No. It is not.",
    'Smith et al. found it (Fig. 3). "Stop!" she said... and left.\n\n1. One.\n2) Two; three',
    "Mr. J. R. Doe paid $3.5 m. on Jan. 5. Apple Inc. The firm: v1.2.3! https://a.example/b.c?d.",
    "他说：“好。”然后走了；真的？！是（的。）OK. 今天。",
    "| a | b |\n|---|---|\n| 1. | x. y |\n```py\nprint(1.0) # a. b\n```",
    "Das ist z. B. so.\u00a0Nr. 5 ist da.\tÉl dijo: «Sí.» Fin.\u2026 Ok.\r\nEnd",
)


def test_the_cuts_of_a_fixed_table_are_pinned() -> None:
    """A change here changes what the bundled model reads: it needs another model, not another digest."""
    cuts = repr([sentences_v1(text) for text in _TEXTS])
    assert (
        hashlib.sha256(cuts.encode()).hexdigest()
        == "f7c0066a6ca1e782c9e388b3ceddfcfaafc0126a3311450a8c33478c46a343c3"
    )
