"""Files as tests need them: PDFs with a text, and folders with an index."""

from __future__ import annotations

import io
import zlib
from collections.abc import Mapping
from pathlib import Path

from pypdf import PdfReader, PdfWriter

from truthlens.retrieval.sources.folder.options import FolderOptions
from truthlens.retrieval.sources.folder.updating import UpdateReport, update_index


def pdf(*lines: str, title: str = "", password: str = "", bomb: int = 0) -> bytes:
    """Return a PDF of one page; ``bomb`` is how many blanks its content unpacks to beside its lines."""
    written = "".join(f"({line}) Tj 0 -20 Td " for line in lines)
    content = zlib.compress(f"BT /F1 12 Tf 72 720 Td {written}ET".encode() + b" " * bomb)
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R /Resources 5 0 R >>",
        b"<< /Filter /FlateDecode /Length %d >> stream\n%s\nendstream" % (len(content), content),
        b"<< /Font << /F1 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >> >>",
    ]
    out = io.BytesIO(b"%PDF-1.4\n")
    out.seek(0, io.SEEK_END)
    places = []
    for number, each in enumerate(objects, 1):
        places.append(out.tell())
        out.write(b"%d 0 obj\n%s\nendobj\n" % (number, each))
    start = out.tell()
    out.write(b"xref\n0 6\n0000000000 65535 f \n" + b"".join(b"%010d 00000 n \n" % place for place in places))
    out.write(b"trailer << /Size 6 /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF" % start)
    if not title and not password:
        return out.getvalue()
    writer = PdfWriter(clone_from=PdfReader(out))
    if title:
        writer.add_metadata({"/Title": title})
    if password:
        writer.encrypt(password, algorithm="RC4-128")
    made = io.BytesIO()
    writer.write(made)
    return made.getvalue()


def folder_of(root: Path, files: Mapping[str, str | bytes]) -> Path:
    """Write files below ``root``, which is made, and return it."""
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return root


def update(root: Path, file: Path, **options: object) -> UpdateReport:
    """Bring the index of a folder up to date."""
    settings = FolderOptions.model_validate({"path": str(root), **options})
    return update_index(root.resolve(), file, settings)
