"""Tests of the trainable reader: what is trained, kept and merged."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.fakes.tiny_base import write_base
from truthlens.core.errors import ModelError
from truthlens.lab.reader.model import (
    Int8Linear,
    build_reader,
    freeze_in_int8,
    load_trained,
    restore_reader,
    trained_state,
)


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


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("magnitude", [1e-9, 1.0, 1e6])
def test_products_of_whole_numbers_are_off_by_a_hundredth(bias: bool, magnitude: float) -> None:
    """Forward and back, whatever the size of a row; a row of zeros gives the bias alone."""
    torch.manual_seed(3)
    plain = torch.nn.Linear(64, 48, bias=bias).requires_grad_(False)
    states = torch.randn(2, 300, 64) * magnitude * torch.logspace(-3, 3, 300)[:, None]
    states[0, 7] = 0.0
    found = []
    for layer in (plain, Int8Linear.of(plain)):
        own = states.clone().requires_grad_(True)
        out = layer(own)
        (out * torch.linspace(0.1, 3.0, 48)).sum().backward()
        assert own.grad is not None
        found.append((out.detach(), own.grad))
    (out, gradient), (quick, quick_gradient) = found
    shift = plain.bias if bias else torch.zeros(48)
    assert torch.equal(quick[0, 7], shift)
    assert ((quick - out).norm(dim=-1) <= 0.02 * (out - shift).norm(dim=-1) + 1e-6).all()
    assert (quick_gradient - gradient).norm() < 0.02 * gradient.norm()


def test_a_reader_in_whole_numbers_learns_the_same_parameters(tmp_path: Path) -> None:
    """What is trained has the same names and nearly the same gradients; measured, it is the plain reader."""
    base = write_base(tmp_path, layers=2)
    ids = torch.arange(5, 17).reshape(2, 6)
    inputs = (ids, torch.ones_like(ids), torch.tensor([[0, 0, 0, 1, 1, 0]] * 2))
    gradients, measured = [], []
    for in_int8 in (False, True):
        torch.manual_seed(5)
        model = build_reader(base, frozen_layers=1, rank=2)
        if in_int8:
            freeze_in_int8(model)
            assert sum(isinstance(each, Int8Linear) for each in model.modules()) == 12
        measured.append(model.eval()(*inputs).detach())
        model.encoder.train()
        model(*inputs).logsumexp(-1).sum().backward()
        gradients.append({name: p.grad for name, p in model.named_parameters() if p.grad is not None})
    assert torch.equal(*measured)
    plain, quick = gradients
    assert plain.keys() == quick.keys()
    both = [torch.cat([each.flatten() for each in found.values()]) for found in (plain, quick)]
    assert torch.cosine_similarity(both[0], both[1], dim=0) > 0.98
