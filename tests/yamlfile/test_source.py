import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from truthlens.yamlfile.diagnostics import render_path
from truthlens.yamlfile.source import read_document


def test_lines_of_keys_and_items() -> None:
    """Every key and list item has the line where it stands; what is missing has that of its parent."""
    document = read_document("a:\n  b: 1\n  c:\n    - x\n    - {d: 2}\n", file="f")
    line = document.report.line
    assert [line(p) for p in [("a",), ("a", "b"), ("a", "c", 0), ("a", "c", 1), ("a", "c", 1, "d")]] == [
        1,
        2,
        4,
        5,
        5,
    ]
    assert line(("a", "c", 1, "nowhere")) == 5
    assert document.data == {"a": {"b": 1, "c": ["x", {"d": 2}]}}


def test_anchors_and_merges() -> None:
    """Aliases and merge keys give the data that YAML says, and own keys win."""
    document = read_document("x: &x {a: 1, b: 2}\ny:\n  <<: *x\n  b: 3\n", file="f")
    assert document.data == {"x": {"a": 1, "b": 2}, "y": {"a": 1, "b": 3}}
    assert document.report.errors == ()


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("a: [1\n", 2, "not valid YAML"),
        ("a: 1\n---\nb: 2\n", 2, "not valid YAML"),
        ("a: !!python/object:os.system {}\n", 1, "not valid YAML"),
        ("a: 2024-13-45\n", 1, "looks like a date"),
        ("a: *nowhere\n", 1, "not valid YAML"),
        ("ok: 1\na: \x07\n", 2, "U+0007"),
        ("on: 1\n", 1, "a key must be text"),
        ("a: &a [*a]\n", 1, "more than"),
        ("a: " + "[" * 200 + "]" * 200, 1, "more than"),
    ],
)
def test_unusable_yaml(text: str, line: int, message: str) -> None:
    """Each way of not being YAML for a policy is told with its line."""
    (error,) = read_document(text, file="f").report.errors
    assert error.line == line
    assert message in error.message


@settings(deadline=None)
@given(st.text(alphabet="ab:-[]{}&*!|>'\"#%@,? \n\t0", max_size=60))
def test_any_text_is_told_of(text: str) -> None:
    """Whatever the text, there are data or there is an error, and never an exception."""
    document = read_document(text, file="f")
    assert document.data is not None or document.report.errors


def test_render_path() -> None:
    """A path reads as it would be written in code."""
    assert render_path(("decisions", 0, "plugins", 1, "type")) == "decisions[0].plugins[1].type"
    assert render_path(()) == "(file)"
