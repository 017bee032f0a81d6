"""Whatever stands in a policy file or in its place: it is used, or refused with a line and a remedy, and nothing breaks."""

from __future__ import annotations

import os
import random
import stat
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cli.test_cli import run
from truthlens.policy import InvalidPolicyError, check_file, compile_policy, load_policy

SHIPPED = (Path(__file__).parents[2] / "config" / "truthlens.yaml").read_text()
_LAUGH = "".join(f"a{i}: &a{i} [{','.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 12))
_MERGED = "".join(f"a{i}: &a{i} {{<<: [{','.join([f'*a{i - 1}'] * 10)}], k{i}: 1}}\n" for i in range(1, 14))
_SEXAGESIMAL = "0:" * 400 + "0.0"


def in_threshold(value: str) -> str:
    return f"hallucination: {{enabled: true, threshold: {value}}}\n"


# Each with what its message says.
TEXTS = {
    "empty int": (in_threshold("!!int ''"), "is no int"),
    "empty float": (in_threshold("!!float ''"), "is no float"),
    "word as bool": ("hallucination: {enabled: !!bool x}\n", "is no bool"),
    "word as date": (in_threshold("!!timestamp x"), "is no timestamp"),
    "word as null": (in_threshold("!!null x"), "is no null"),
    "a date": (in_threshold("2024-01-01"), "quotes"),
    "no date": (in_threshold("2024-13-45"), "looks like a date"),
    "a date out of range": (in_threshold("0001-01-01T00:00:00+23:59"), "quotes"),
    "binary": (in_threshold("!!binary '=='"), "is not allowed"),
    "set": ("hallucination: !!set {a}\n", "is not allowed"),
    "omap": ("hallucination: !!omap [a: 1]\n", "is not allowed"),
    "pairs": ("hallucination: !!pairs [a: 1]\n", "is not allowed"),
    "map on a scalar": ("hallucination: !!map x\n", "is not allowed"),
    "python object": ("hallucination: !!python/object/apply:os.getcwd []\n", "is not allowed"),
    "own tag": (in_threshold("!x 1"), "is not allowed"),
    "value sign": (in_threshold("="), "is not allowed"),
    "merge sign": (in_threshold("<<"), "is not allowed"),
    "merge of a scalar": ("hallucination: {<<: 1}\n", "merging"),
    "merge of itself": ("hallucination: &h {<<: *h}\n", ""),
    "merges of merges": (f"a0: &a0 {{x: 1}}\n{_MERGED}", "levels or"),
    "aliases of aliases": (f"a0: &a0 [x]\n{_LAUGH}", "levels or"),
    "alias of itself": ("review: &a [*a]\n", "levels or"),
    "alias of itself as key": ("review: &a {? *a : 1}\n", "must be text"),
    "aliases of aliases as key": (f"a0: &a0 [x]\n{_LAUGH}? *a11\n: 1\n", ""),
    "merge with such a key": (f"a0: &a0 [x]\n{_LAUGH}b: {{<<: {{? *a11 : 1}}}}\n", ""),
    "list as key": ("? [a, b]\n: 1\n", "must be text"),
    "null as key": ("~: 1\n", "must be text"),
    "number as key": ("1: 1\n", "must be text"),
    "same key twice": ("hallucination: {}\nhallucination: {}\n", "written twice"),
    "deep lists": ("review: " + "[" * 5_000 + "]" * 5_000, "levels or"),
    "deep mappings": ("".join(" " * i + "a:\n" for i in range(900)), "levels or"),
    "open lists": ("[" * 100_000, "levels or"),
    "many values": ("review: [" + "1," * 120_000 + "]", "levels or"),
    "a long comment": ("#" + "x" * (2 << 20) + "\nhallucination: {enabled: true}\n", "larger than 1 MiB"),
    "not a number": (in_threshold(".nan"), "cannot stand here"),
    "infinite": (in_threshold("-.inf"), "cannot stand here"),
    "infinite price": ("models: [{name: m, price: {input: .inf, output: 1}}]\n", "cannot stand here"),
    "huge number": ("limits: {queue_limit: 0x" + "f" * 9_000 + "}\n", "more digits"),
    "huge decimal": ("limits: {queue_limit: " + "9" * 9_000 + "}\n", "looks like a date or number"),
    "huge priority": (f"decisions: [{{name: a, priority: {10**40}, rules: {{type: model, name: m}}}}]\n", "digits"),
    "base sixty": (in_threshold(_SEXAGESIMAL), "looks like a date or number"),
    "empty binary number": (in_threshold("0b_"), "looks like a date or number"),
    "half a character": ('hallucination: {warning_template: "\\ud800"}\n', "half of a character"),
    "half a character as key": ('"\\udfff": 1\n', "half of a character"),
    "no character": ('hallucination: {warning_template: "\\UFFFFFFFF"}\n', "names no character"),
    "nearly a character": ('hallucination: {warning_template: "\\U00110000"}\n', "names no character"),
    "control character": ("hallucination: {warning_template: \x07}\n", "U+0007"),
    "zero in a folder": ('hallucination: {model_id: "a\\0b"}\n', ""),
    "a long folder": (f"hallucination: {{model_id: {'x' * 6_000}}}\n", ""),
    "zero in a record": (in_threshold('{max_miss_rate: 0.1, calibration: "a\\0b"}'), "cannot be read"),
    "record is a folder": (in_threshold("{max_miss_rate: 0.1, calibration: .}"), "no regular file"),
    "record is a device": (in_threshold("{max_miss_rate: 0.1, calibration: /dev/zero}"), "no regular file"),
    "line break in a key": ('"a\\nb": 1\n', "a\\nb"),
    "a long key": (f"{'k' * 900}: 1\n", "unknown key"),
    "nested groups": (f"hallucination: {{evidence: {{user_patterns: ['{'(' * 500}x{')' * 500}']}}}}\n", "deeply"),
    "more groups": (f"hallucination: {{evidence: {{user_patterns: ['{'(' * 5_000}']}}}}\n", "at most"),
    "no pattern": ("hallucination: {evidence: {user_patterns: ['(']}}\n", "not a regular expression"),
    "another engine's": ("hallucination: {evidence: {user_patterns: ['(\\p{Foo})']}}\n", "not a regular expression"),
    "address with a bracket": ("models: [{name: m, base_url: 'http://[/v1'}]\n", "no URL of a host"),
    "address with a bad port": ("models: [{name: m, base_url: 'http://h:x/v1'}]\n", "no URL of a host"),
    "address without host": ("models: [{name: m, base_url: 'http:///v1'}]\n", "no URL of a host"),
    "a scalar": ("x", "expected a mapping"),
    "two documents": ("{}\n---\n{}\n", "not valid YAML"),
}  # fmt: skip


@pytest.mark.parametrize("name", TEXTS)
def test_a_policy_is_used_or_refused_with_a_remedy(name: str, tmp_path: Path) -> None:
    """Loading gives a policy or diagnostics, each on one line; checking says the same."""
    text, said = TEXTS[name]
    path = tmp_path / "p.yaml"
    path.write_text(text)
    if not said:
        assert all("in TruthLens" not in each.message for each in check_file(path))
        return
    with pytest.raises(InvalidPolicyError) as caught:
        load_policy(path)
    lines = str(caught.value).split("\n")
    assert len(lines) == len(caught.value.diagnostics)
    assert any(said in line for line in lines)
    assert all(line.startswith(f"{path}:") and "; " in line and line.isprintable() for line in lines)
    assert "in TruthLens" not in str(caught.value)
    assert check_file(path)[: len(lines)] == list(caught.value.diagnostics)


@pytest.mark.parametrize(
    "name", ["empty int", "nested groups", "half a character as key", "huge number", "deep lists"]
)
def test_check_shows_no_traceback(name: str, tmp_path: Path) -> None:
    """The command ends with status 1 and one line a mistake."""
    path = tmp_path / "p.yaml"
    path.write_text(TEXTS[name][0])
    result = run("check", str(path))
    assert result.returncode == 1
    assert TEXTS[name][1] in result.stdout
    assert "Traceback" not in result.stdout + result.stderr


def test_what_is_no_file_is_refused_at_once(tmp_path: Path) -> None:
    """A folder, a pipe that nobody writes to, a device without end, a link to itself, a file that is gone."""
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to("loop")
    for place in (
        tmp_path / "folder",
        tmp_path / "pipe",
        Path("/dev/zero"),
        tmp_path / "loop",
        tmp_path / "gone",
    ):
        with pytest.raises(InvalidPolicyError):
            load_policy(place)
    with pytest.raises(InvalidPolicyError):
        load_policy("a\0b")


def test_reading_what_cannot_be_read_leaves_nothing_open(tmp_path: Path) -> None:
    """The watcher looks every few seconds."""
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(20):
        with pytest.raises(InvalidPolicyError):
            load_policy(tmp_path)
    assert len(list(Path("/proc/self/fd").iterdir())) == before


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission_is_refused(tmp_path: Path) -> None:
    """The message says why."""
    path = tmp_path / "p.yaml"
    path.write_text("hallucination: {}\n")
    path.chmod(stat.S_IWUSR)
    with pytest.raises(InvalidPolicyError, match="Permission denied"):
        load_policy(path)


def test_a_record_that_nests_too_deeply_is_no_record(tmp_path: Path) -> None:
    """A threshold record is read from beside the policy, and may hold anything as well."""
    (tmp_path / "r.json").write_text("[" * 60_000)
    path = tmp_path / "p.yaml"
    path.write_text(in_threshold("{max_miss_rate: 0.1, calibration: r.json}"))
    with pytest.raises(InvalidPolicyError, match="no threshold record"):
        load_policy(path)


def test_a_failure_of_our_own_is_a_diagnostic() -> None:
    """Whatever is raised while a policy is compiled refuses the policy, by its type and without its message."""

    def broken(_: str) -> bool:
        raise ZeroDivisionError("secret")

    with pytest.raises(InvalidPolicyError, match="ZeroDivisionError in TruthLens") as caught:
        compile_policy("hallucination: {model_id: m}\n", file="p.yaml", model_exists=broken)
    assert "secret" not in str(caught.value)


def load(text: str) -> None:
    """Compile ``text``; a refusal has diagnostics that are not our own failures."""
    refusal: InvalidPolicyError | None = None
    try:
        compile_policy(text, file="p.yaml")
    except InvalidPolicyError as error:
        refusal = error
    assert refusal is None or (refusal.diagnostics and "in TruthLens" not in str(refusal))


@settings(deadline=None, max_examples=300)
@given(st.text(alphabet="ab:-[]{}&*!|>'\"#%@,?=<~.0179ef_\\ux \n\t\ud7ff\U0001f600", max_size=80))
def test_any_text(text: str) -> None:
    """Random YAML, and what is none."""
    load(text)


_SCALARS = st.one_of(
    st.sampled_from(
        ["!!int ''", "!!float x", "!!bool ''", "!!set {}", "*a", "&a x", "<<", "=", "~", ".nan", "0x", "[]", "{}", '"\\ud800"',
         "1e999", "0b_", "2024-01-01", "!!str", "- -", "{a: {a: {a: 1}}}", "'", "\t", "[[[", "(((", "9" * 50, "-1", "yes"]
    ),
    st.text(max_size=12),
)  # fmt: skip


@settings(deadline=None, max_examples=200)
@given(st.integers(0, 2**32), st.lists(_SCALARS, min_size=1, max_size=4))
def test_any_edit_of_the_shipped_policy(seed: int, parts: list[str]) -> None:
    """Values, words and lines of a real policy replaced by others."""
    rng = random.Random(seed)
    text = SHIPPED
    for part in parts:
        words = [i for i, c in enumerate(text) if c in ": {[,\n"]
        start = rng.choice(words) + 1
        end = min(len(text), start + rng.choice((0, 1, 5, 20, 200)))
        text = f"{text[:start]}{part}{text[end:]}"
    load(text.encode("utf-8", "replace").decode())
