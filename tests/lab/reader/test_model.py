"""Tests of the trainable reader: what is trained, kept and merged."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.fakes.tiny_base import write_base
from truthlens.core.errors import ModelError
from truthlens.lab.reader.model import build_reader, load_trained, restore_reader, trained_state


@pytest.mark.parametrize(("frozen_layers", "rank"), [(0, 2), (1, 2), (0, None), (1, None)])
def test_a_restored_reader_computes_what_was_trained(
    tmp_path: Path, frozen_layers: int, rank: int | None
) -> None:
    """The trained parameters alone restore the model over its base; low-rank layers are merged into plain ones."""
    base = write_base(tmp_path, layers=2)
    torch.manual_seed(5)
    model = build_reader(base, frozen_layers=frozen_layers, rank=rank).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.requires_grad:
                parameter.add_(0.1 * torch.randn_like(parameter))
    ids = torch.arange(5, 17).reshape(2, 6)
    inputs = (ids, torch.ones_like(ids), torch.tensor([[0, 0, 0, 1, 1, 0]] * 2))
    restored = restore_reader(base, trained_state(model)).eval()
    assert torch.allclose(model(*inputs), restored(*inputs), atol=1e-5)
    assert not torch.allclose(model(*inputs), build_reader(base).eval()(*inputs), atol=1e-2)
    assert not any(".down" in name for name, _ in restored.named_parameters())


def test_with_a_rank_only_narrow_matrices_and_the_head_are_trained(tmp_path: Path) -> None:
    """The wide weights of the pretrained encoder stay, so a checkpoint is small."""
    names = trained_state(build_reader(write_base(tmp_path), rank=2))
    assert names
    assert all(name.startswith("head.") or name.endswith((".down", ".up")) for name in names)


def test_weights_of_another_rank_are_refused(tmp_path: Path) -> None:
    """Nothing is loaded half."""
    base = write_base(tmp_path)
    with pytest.raises(ModelError, match="other trained layers"):
        load_trained(build_reader(base, rank=2), trained_state(build_reader(base, rank=3)))
