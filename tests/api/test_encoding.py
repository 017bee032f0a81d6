"""Bodies are decoded to the byte, never beyond the limit, and damage is an error."""

from __future__ import annotations

import gzip
import tracemalloc
import zlib
from collections.abc import Callable

import brotli
import pytest
from hypothesis import given
from hypothesis import strategies as st

from truthlens.api.encoding import decode_body
from truthlens.core.errors import BodyEncodingError, BodyTooLargeError

LIMIT = 1 << 20


def raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


CODINGS: list[tuple[str, Callable[[bytes], bytes]]] = [
    ("gzip", gzip.compress),
    ("x-gzip", gzip.compress),
    ("GZip", gzip.compress),
    ("deflate", zlib.compress),
    ("deflate", raw_deflate),
    ("br", brotli.compress),
]


@pytest.mark.parametrize(("name", "encode"), CODINGS)
@given(data=st.binary(max_size=5000))
def test_every_coding_gives_back_the_bytes(name: str, encode: Callable[[bytes], bytes], data: bytes) -> None:
    """What was encoded comes back unchanged."""
    assert decode_body(encode(data), name, limit=LIMIT) == data


@pytest.mark.parametrize("name", ["", "identity", " identity , identity "])
def test_identity_is_the_body_itself(name: str) -> None:
    """No coding leaves the body as it is."""
    assert decode_body(b"\x00\xff", name, limit=LIMIT) == b"\x00\xff"


def test_stacked_codings_are_undone_last_first() -> None:
    """Codings are listed in the order in which they were applied."""
    assert decode_body(brotli.compress(gzip.compress(b"plain")), "gzip, br", limit=LIMIT) == b"plain"


def test_a_gzip_body_may_have_several_members() -> None:
    """Members one after the other are one body."""
    assert decode_body(gzip.compress(b"one ") + gzip.compress(b"two"), "gzip", limit=LIMIT) == b"one two"


@pytest.mark.parametrize("name", ["gzip", "br", "deflate"])
def test_an_empty_body_stays_empty(name: str) -> None:
    """An empty body that carries a coding's header is no damage."""
    assert decode_body(b"", name, limit=LIMIT) == b""


@pytest.mark.parametrize(("name", "encode"), CODINGS)
def test_a_bomb_stops_at_the_limit(name: str, encode: Callable[[bytes], bytes]) -> None:
    """A small body that decodes to 64 MiB is refused, and memory stays near the limit."""
    bomb = encode(bytes(64 << 20))
    tracemalloc.start()
    try:
        with pytest.raises(BodyTooLargeError, match="larger than 1048576 bytes"):
            decode_body(bomb, name, limit=LIMIT)
        assert tracemalloc.get_traced_memory()[1] < 4 * LIMIT
    finally:
        tracemalloc.stop()


def test_the_limit_itself_is_allowed() -> None:
    """A body of exactly the limit passes, one more byte does not."""
    assert len(decode_body(gzip.compress(bytes(100)), "gzip", limit=100)) == 100
    with pytest.raises(BodyTooLargeError):
        decode_body(gzip.compress(bytes(101)), "gzip", limit=100)
    with pytest.raises(BodyTooLargeError):
        decode_body(bytes(101), "", limit=100)


@pytest.mark.parametrize(("name", "encode"), CODINGS)
@pytest.mark.parametrize("damage", [lambda body: body[:-3], lambda body: body[: len(body) // 2]])
def test_a_body_cut_short_is_an_error(
    name: str, encode: Callable[[bytes], bytes], damage: Callable[[bytes], bytes]
) -> None:
    """Half an answer is never taken for the answer."""
    body = damage(encode(bytes(range(256)) * 40))
    with pytest.raises(BodyEncodingError):
        decode_body(body, name, limit=LIMIT)


@pytest.mark.parametrize("name", ["gzip", "br", "deflate"])
def test_bytes_that_were_never_encoded_are_an_error(name: str) -> None:
    """A header that lies about the body is found out."""
    with pytest.raises(BodyEncodingError):
        decode_body(b'{"choices": []}', name, limit=LIMIT)


@pytest.mark.parametrize("tail", [b"junk", b"\x00\x01"])
def test_bytes_after_the_end_are_an_error(tail: bytes) -> None:
    """What follows a finished stream is not silently dropped."""
    for name, encode in [("gzip", gzip.compress), ("deflate", zlib.compress), ("br", brotli.compress)]:
        with pytest.raises(BodyEncodingError):
            decode_body(encode(b"x") + tail, name, limit=LIMIT)


@pytest.mark.parametrize("name", ["zstd", "compress", "gzip, zstd", "foo\r\nbar"])
def test_unknown_codings_are_refused_by_name(name: str) -> None:
    """The error says what is known, and repeats no strange text."""
    with pytest.raises(BodyEncodingError, match="expected one of br, deflate, gzip, x-gzip") as caught:
        decode_body(b"x", name, limit=LIMIT)
    assert "\n" not in str(caught.value)


def test_a_long_list_of_codings_is_refused() -> None:
    """Work does not grow with the header."""
    with pytest.raises(BodyEncodingError, match="lists 5 codings"):
        decode_body(b"x", "gzip,gzip,gzip,gzip,gzip", limit=LIMIT)
