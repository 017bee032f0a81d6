"""Every policy in ``tests/policies`` gives exactly the diagnostics in the text file beside it."""

from pathlib import Path

import pytest

from truthlens.policy import InvalidPolicyError, Severity, check_file, load_policy

FOLDER = Path(__file__).parent.parent / "policies"
FILES = sorted(FOLDER.glob("*.yaml"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_diagnostics(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The checker names file, line, key and remedy of each mistake."""
    monkeypatch.chdir(FOLDER)
    found = [diagnostic.render() for diagnostic in check_file(file.name)]
    assert found == file.with_suffix(".txt").read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_loading_agrees(file: Path) -> None:
    """Loading fails with just the errors that the checker tells, or gives just its warnings."""
    diagnostics = check_file(file)
    errors = tuple(d for d in diagnostics if d.severity is Severity.ERROR)
    if errors:
        with pytest.raises(InvalidPolicyError) as caught:
            load_policy(file)
        assert caught.value.diagnostics == errors
        assert str(caught.value).splitlines() == [error.render() for error in errors]
    else:
        assert load_policy(file).warnings == tuple(diagnostics)


def test_folder_is_not_empty() -> None:
    """There are fixtures to check."""
    assert len(FILES) > 50
