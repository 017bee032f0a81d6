"""Files become titled pieces, in a process of their own that no file can hold up."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.retrieval.folder.made_files import pdf
from truthlens.retrieval.sources.folder.documents import UnreadableError
from truthlens.retrieval.sources.folder.reading import DocumentReader

PAGE = """\
---
title: From the front
---
Before.

# Refunds

Ask at *the* desk.

## Limits

| days | sum |
| --- | --- |
| 30 | 100 |

```sh
# no heading
refund --all
```

# Other

<!-- a note -->
Last.
"""


@pytest.fixture(scope="module")
def reader() -> Iterator[DocumentReader]:
    with DocumentReader(300) as reader:
        yield reader


def test_a_piece_stands_below_its_headings(reader: DocumentReader) -> None:
    """A heading in a block of code is none; tables and code stay as written; comments are left out."""
    document = reader.read("markdown", PAGE.encode())
    assert document.title == "Refunds"
    assert [(piece.headings, piece.text) for piece in document.pieces] == [
        (("Refunds",), "Before."),
        (("Refunds",), "Ask at *the* desk."),
        (
            ("Refunds", "Limits"),
            "| days | sum |\n| --- | --- |\n| 30 | 100 |\n\n```sh\n# no heading\nrefund --all\n```",
        ),
        (("Other",), "Last."),
    ]
    told = reader.read("markdown", b"---\ntitle: A [plan]\n---\nText.")
    assert (told.title, told.pieces[0].headings) == ("A [plan]", ("A [plan]",))


def test_long_texts_are_cut_at_sentences_and_tables_at_rows(reader: DocumentReader) -> None:
    """No piece is much longer than asked for, nothing is lost, and rows keep the names of their columns."""
    sentence = "The desk is open on all days but one. "
    pieces = reader.read("text", (sentence * 40).encode()).pieces
    assert all(len(piece.text) <= 300 and piece.text.endswith("but one.") for piece in pieces)
    assert " ".join(piece.text for piece in pieces) == (sentence * 40).strip()
    unbroken = reader.read("text", b"x" * 5000).pieces
    assert max(len(piece.text) for piece in unbroken) <= 300
    assert sum(len(piece.text) for piece in unbroken) == 5000

    names = "| city | days |\n| --- | --- |\n"
    short = names + "| Rome | 3 |\n" * 20
    assert [piece.text for piece in reader.read("markdown", short.encode()).pieces] == [short.strip()]
    pieces = reader.read("markdown", (names + "| Rome | 3 |\n" * 200).encode()).pieces
    assert len(pieces) > 1
    assert all(piece.text.startswith(names) for piece in pieces)
    assert sum(piece.text.count("Rome") for piece in pieces) == 200


def test_html_is_read_without_what_is_no_text(reader: DocumentReader) -> None:
    """Scripts, navigation and comments are left out; the cells of a table become lines."""
    page = """<html><head><title>Shop</title><script>var x = "bad"</script></head><body><nav>bad</nav>
    <h1>Refunds <em>now</em></h1><p>Within <b>30</b>\n days.</p><!-- bad --><ul><li>one<li>two</ul>
    <table><tr><th>city</th><th>days</th></tr><tr><td>Rome</td><td>3 | 4</td></tr></table>
    <pre>a\n  b</pre><style>bad</style></body></html>"""
    (piece,) = reader.read("html", page.encode()).pieces
    assert piece.headings == ("Refunds now",)
    table = "| city | days |\n| --- | --- |\n| Rome | 3 \\| 4 |"
    assert piece.text == f"Within 30 days.\n\n- one\n\n- two\n\n{table}\n\na\n  b"
    assert reader.read("html", b"<title>Shop</title><p>Tea.").title == "Shop"


def test_a_pdf_gives_its_lines_and_title(reader: DocumentReader) -> None:
    """The title is that of its metadata."""
    document = reader.read("pdf", pdf("Refunds take", "five days.", title="Handbook"))
    assert document.title == "Handbook"
    assert [(piece.headings, piece.text) for piece in document.pieces] == [
        (("Handbook",), "Refunds take\nfive days.")
    ]


@pytest.mark.parametrize(
    ("kind", "data", "reason"),
    [
        ("pdf", pdf("secret", password="pw"), "it is encrypted"),
        ("pdf", pdf("text")[:300], "it is broken, or not what its name says"),
        ("pdf", b"GIF89a", "it is broken, or not what its name says"),
        ("pdf", pdf("text", bomb=200_000_000), "it is broken, or not what its name says"),
        ("pdf", pdf(), "there is no text in it"),
        ("text", b"Caf\xe9", "its text is not UTF-8"),
        ("text", b"a\0b", "it is not text"),
        ("text", b" \n\n", "there is no text in it"),
        ("markdown", b"# Only a heading\n", "there is no text in it"),
        ("text", b"word " * 3_000_000, "it holds too much text"),
    ],
)
def test_what_cannot_be_read_says_why(reader: DocumentReader, kind: str, data: bytes, reason: str) -> None:
    """And the next file is read."""
    with pytest.raises(UnreadableError, match=reason):
        reader.read(kind, data)
    assert reader.read("text", "fine\r\nstill".encode("utf-16")).pieces[0].text == "fine\nstill"


def test_deep_pages_and_nested_lists_end(reader: DocumentReader) -> None:
    """A page of a hundred thousand open elements is read or refused, never a crash."""
    deep = b"<div>" * 20_000 + b"<p>Tea is free.</p>"
    assert "Tea is free." in reader.read("html", deep).pieces[0].text
    reader.read("markdown", b"> " * 50_000 + b"x")
    assert reader.read("text", b"fine").pieces


def test_a_file_that_takes_too_long_costs_itself_alone() -> None:
    """The process that reads it is ended; another one reads the next file."""
    with DocumentReader(300, file_s=0.01) as hurried:
        with pytest.raises(UnreadableError, match="too much time or memory"):
            hurried.read("html", b"<b>" * 3_000_000)
        hurried._file_s = 30.0
        assert hurried.read("text", b"fine").pieces[0].text == "fine"
