"""Plain bytes of an encoded HTTP body, never more of them than a limit.

Content codings: ``identity``, ``gzip``, ``x-gzip``, ``deflate`` (zlib-wrapped as the RFC says, or the raw
stream that some servers send) and ``br``. Nothing else is tried: an unknown coding is an error, so that
the caller passes the body untouched and says so.

Source: RFC 9110 section 8.4 (content codings are listed in the order in which they were applied).
"""

from __future__ import annotations

import zlib
from collections.abc import Callable

import brotli

from truthlens.core.cancellation import checkpoint
from truthlens.core.errors import BodyEncodingError, BodyTooLargeError

_STEP = 1 << 14
# Real responses carry one coding, rarely two; more only multiplies the work of a hostile header.
_MAX_CODINGS = 4
_GZIP_WBITS = 31
_ZLIB_WBITS = 15
_RAW_WBITS = -15


def decode_body(body: bytes, content_encoding: str, *, limit: int) -> bytes:
    """Return the bytes of ``body`` with every content coding undone.

    Args:
        body: The body as it was transferred.
        content_encoding: Value of the ``content-encoding`` header; ``""`` means identity.
        limit: Largest size in bytes that any stage may reach; memory beyond it is not used.

    Raises:
        BodyEncodingError: A coding is unknown, or the data are damaged or cut short.
        BodyTooLargeError: The body, or what it decodes to, is larger than ``limit``.
    """
    codings = [name for part in content_encoding.split(",") if (name := part.strip().lower())]
    codings = [name for name in codings if name != "identity"]
    if len(codings) > _MAX_CODINGS:
        raise BodyEncodingError(
            f"content-encoding lists {len(codings)} codings; at most {_MAX_CODINGS} are undone"
        )
    decoders = [_decoder_of(name) for name in codings]
    _check_size(len(body), limit)
    for decoder in reversed(decoders):
        # An empty body may carry the header of the representation that it stands for.
        body = decoder(body, limit) if body else body
    return body


def _decoder_of(name: str) -> Callable[[bytes, int], bytes]:
    decoder = _DECODERS.get(name)
    if decoder is None:
        known = ", ".join(sorted(_DECODERS))
        shown = name if name.isascii() and name.isalnum() and len(name) <= 20 else "(not a coding name)"
        raise BodyEncodingError(f"content-encoding {shown} is not known; expected one of {known}, identity")
    return decoder


def _check_size(size: int, limit: int) -> None:
    if size > limit:
        raise BodyTooLargeError(f"body is larger than {limit} bytes after decoding; raise the body limit")


def _gunzip(body: bytes, limit: int) -> bytes:
    # A gzip body may be several members, one after the other.
    plain = bytearray()
    place = 0
    while place < len(body):
        place = _inflate_into(plain, body, place, _GZIP_WBITS, limit)
    return bytes(plain)


def _undeflate(body: bytes, limit: int) -> bytes:
    plain = bytearray()
    try:
        end = _inflate_into(plain, body, 0, _ZLIB_WBITS, limit)
    except BodyEncodingError:
        plain.clear()
        end = _inflate_into(plain, body, 0, _RAW_WBITS, limit)
    if end < len(body):
        raise BodyEncodingError(f"deflate body has {len(body) - end} bytes after its end")
    return bytes(plain)


def _inflate_into(plain: bytearray, body: bytes, place: int, wbits: int, limit: int) -> int:
    """Append the bytes of the deflate stream at ``place`` to ``plain``; the place behind its end."""
    stream = zlib.decompressobj(wbits)
    try:
        given = b""
        while not stream.eof:
            checkpoint()
            if not given:
                # In small pieces: what a stream leaves of a piece is copied, once for each of a million tiny
                # streams.
                given = body[place : place + _STEP]
                place += len(given)
            chunk = stream.decompress(given, _STEP)
            given = stream.unconsumed_tail
            plain += chunk
            _check_size(len(plain), limit)
            if not (chunk or given or stream.eof) and place >= len(body):
                raise BodyEncodingError("compressed body ends early")
    except zlib.error as error:
        raise BodyEncodingError("compressed body is damaged") from error
    return place - len(stream.unused_data)


def _unbrotli(body: bytes, limit: int) -> bytes:
    stream = brotli.Decompressor()
    plain = bytearray()
    data = body
    try:
        while not stream.is_finished():
            checkpoint()
            chunk = stream.process(data, output_buffer_limit=_STEP)
            data = b""
            plain += chunk
            _check_size(len(plain), limit)
            if not chunk and not stream.is_finished() and stream.can_accept_more_data():
                raise BodyEncodingError("compressed body ends early")
    except brotli.error as error:
        raise BodyEncodingError("compressed body is damaged") from error
    return bytes(plain)


_DECODERS: dict[str, Callable[[bytes, int], bytes]] = {
    "gzip": _gunzip,
    "x-gzip": _gunzip,
    "deflate": _undeflate,
    "br": _unbrotli,
}
