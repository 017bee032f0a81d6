"""Read the bytes of a Markdown, HTML, PDF or text file as blocks; ``reading`` runs this apart."""

from __future__ import annotations

import codecs
import io
from collections.abc import Callable, Iterator, Mapping
from importlib.util import find_spec
from itertools import groupby
from pathlib import PurePosixPath

from truthlens.retrieval.sources.folder.documents import DocumentBlock, UnreadableError

Blocks = tuple[list[DocumentBlock], str]
"""A document's blocks and the title that the file tells beside them."""

_MOST_CHARS = 10_000_000
_MOST_PAGES = 5000
_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
_NOT_READ = ("script", "style", "template", "noscript", "svg", "nav", "head")
_HTML_BLOCKS = frozenset({
    *_HEADINGS, "body", "main", "article", "section", "header", "footer", "aside", "div", "p", "ul", "ol",
    "li", "dl", "dt", "dd", "blockquote", "pre", "table", "caption", "tr", "td", "th", "figure", "figcaption",
    "form", "details", "summary",
})  # fmt: skip
_TEXT_OF_CELLS_ALONE = (*_HEADINGS, "table", "pre", "ul", "ol", "dl", "p", "div")


def kind_of(path: str) -> str:
    """Return how a file is read, by the ending of its name: ``markdown``, ``html``, ``pdf`` or ``text``."""
    ending = PurePosixPath(path).suffix.lower()
    kinds = {".md": "markdown", ".markdown": "markdown", ".htm": "html", ".html": "html", ".pdf": "pdf"}
    return kinds.get(ending, "text")


def missing_library(kind: str) -> str | None:
    """Return the library that is needed for files of ``kind`` and not installed, or ``None``."""
    name = {"html": "bs4", "pdf": "pypdf"}.get(kind)
    return name if name is not None and find_spec(name) is None else None


def read_blocks(kind: str, data: bytes) -> Blocks:
    """Return the blocks of a file and the title that it tells beside them.

    Raises:
        UnreadableError: it cannot be read, says why.
    """
    blocks, title = _READERS[kind](data)
    if sum(len(block.text) for block in blocks) > _MOST_CHARS:
        raise UnreadableError("it holds too much text")
    return blocks, title


def _text_of(data: bytes) -> str:
    encoding = next((name for mark, name in _BYTE_ORDER_MARKS if data.startswith(mark)), "utf-8")
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError:
        raise UnreadableError("its text is not UTF-8") from None
    if "\0" in text:
        raise UnreadableError("it is not text")
    return "\n".join(text.splitlines())


def _plain(data: bytes) -> Blocks:
    return [DocumentBlock(text) for text in _paragraphs(_text_of(data))], ""


def _paragraphs(text: str) -> Iterator[str]:
    for blank, lines in groupby(text.split("\n"), key=lambda line: not line.strip()):
        if not blank:
            yield "\n".join(lines)


def _markdown(data: bytes) -> Blocks:
    from markdown_it import MarkdownIt

    text, title = _front_matter(_text_of(data))
    lines = text.split("\n")
    blocks: list[DocumentBlock] = []
    # What stands within a paragraph is kept as it is written.
    tokens = MarkdownIt("commonmark").enable("table").disable("inline").parse(text)
    for token, inner in zip(tokens, [*tokens[1:], None], strict=True):
        if token.level or token.map is None:
            continue
        if token.type == "heading_open" and inner is not None:
            blocks.append(DocumentBlock(inner.content, level=int(token.tag[1])))
            continue
        written = "\n".join(lines[slice(*token.map)])
        if token.type == "html_block" and written.lstrip().startswith("<!--"):
            continue
        if token.type == "table_open":
            blocks.append(DocumentBlock(written, kind="table"))
        elif token.type in ("fence", "code_block"):
            blocks.append(DocumentBlock(written, kind="code"))
        elif token.type != "hr":
            blocks.append(DocumentBlock(written))
    return blocks, title


def _front_matter(text: str) -> tuple[str, str]:
    """Return a Markdown text without the YAML that it begins with, and the title that stands there."""
    import yaml

    end = text.find("\n---\n", 3)
    if not text.startswith("---\n") or end < 0:
        return text, ""
    try:
        told = yaml.safe_load(text[4 : end + 1])
    except yaml.YAMLError:
        return text, ""
    if not isinstance(told, dict):
        return text, ""
    title = told.get("title")
    return text[end + 5 :], title if isinstance(title, str) else ""


def _html(data: bytes) -> Blocks:
    from bs4 import BeautifulSoup
    from bs4.element import NavigableString, PreformattedString, Tag

    soup = BeautifulSoup(data, "html.parser")
    title = soup.title.get_text() if soup.title else ""
    for tag in soup.find_all(_NOT_READ):
        tag.extract()
    for table in soup.find_all("table"):
        if table.find(_TEXT_OF_CELLS_ALONE) is None and (rows := _rows(table)):
            table.clear()
            table.append(rows)
    blocks: list[DocumentBlock] = []

    def block_around(text: NavigableString) -> Tag | None:
        return text.find_parent(lambda tag: tag.name in _HTML_BLOCKS)

    top = soup.find("main") or soup.body or soup
    assert isinstance(top, Tag)
    texts = (
        each
        for each in top.descendants
        # Comments, declarations and the like.
        if isinstance(each, NavigableString) and not isinstance(each, PreformattedString)
    )
    for _, group in groupby(texts, key=lambda text: id(block_around(text))):
        parts = list(group)
        around = block_around(parts[0])
        blocks.append(_html_block(around.name if around is not None else "", "".join(parts)))
    return [block for block in blocks if block.text], title


def _html_block(name: str, written: str) -> DocumentBlock:
    """Return the text of an element of that name as a block, its white space as a browser shows it."""
    if name in ("pre", "table"):
        return DocumentBlock(written, kind="code" if name == "pre" else "table")
    words = " ".join(written.split())
    if name in _HEADINGS:
        return DocumentBlock(words, level=int(name[1]))
    return DocumentBlock(f"- {words}" if name == "li" and words else words)


def _rows(table: object) -> str:
    """Return a table's cells as lines, its first row as the names of its columns."""
    from bs4.element import Tag

    assert isinstance(table, Tag)
    rows = [
        [" ".join(cell.get_text(" ").split()).replace("|", "\\|") for cell in row.find_all(["th", "td"])]
        for row in table.find_all("tr")
    ]
    rows = [row for row in rows if any(row)]
    if not rows:
        return ""
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([lines[0], "|" + " --- |" * len(rows[0]), *lines[1:]])


def _pdf(data: bytes) -> Blocks:
    from pypdf import PdfReader
    from pypdf.errors import DependencyError, FileNotDecryptedError

    blocks: list[DocumentBlock] = []
    length = 0
    try:
        reader = PdfReader(io.BytesIO(data))
        if len(reader.pages) > _MOST_PAGES:
            raise UnreadableError("it has too many pages")
        told = reader.metadata.title if reader.metadata is not None else None
        for page in reader.pages:
            text = page.extract_text()
            length += len(text)
            if length > _MOST_CHARS:
                raise UnreadableError("it holds too much text")
            blocks += [DocumentBlock(part) for part in _paragraphs("\n".join(text.splitlines()))]
    except (FileNotDecryptedError, DependencyError):
        raise UnreadableError("it is encrypted") from None
    return blocks, told if isinstance(told, str) else ""


_READERS: Mapping[str, Callable[[bytes], Blocks]] = {
    "text": _plain,
    "markdown": _markdown,
    "html": _html,
    "pdf": _pdf,
}
