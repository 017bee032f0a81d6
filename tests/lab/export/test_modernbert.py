"""Tests of ``truthlens.lab.export.modernbert``: block-local layers compute exactly what the original masks out."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import transformers
from hypothesis import given, settings
from hypothesis import strategies as st

from truthlens.core.errors import ModelError
from truthlens.lab.export.modernbert import BlockLocalClassifier


def original(**changes: Any) -> Any:
    """A random ModernBERT whose local layers see 12 tokens on either side, in eager attention."""
    torch.manual_seed(11)
    values: dict[str, Any] = {
        "vocab_size": 90,
        "hidden_size": 36,
        "intermediate_size": 50,
        "num_hidden_layers": 5,
        "num_attention_heads": 3,
        "max_position_embeddings": 512,
        "local_attention": 24,
        "pad_token_id": 0,
        "cls_token_id": 1,
        "sep_token_id": 2,
        "bos_token_id": 1,
        "eos_token_id": 2,
        "initializer_range": 0.3,
        "attn_implementation": "eager",
    }
    config = transformers.ModernBertConfig(**{**values, **changes})
    return transformers.ModernBertForTokenClassification(config).eval()


MODEL = original()
BLOCKS = BlockLocalClassifier(MODEL).eval()


@settings(deadline=None, max_examples=12)
@given(st.lists(st.integers(1, 90), min_size=1, max_size=4), st.integers(0, 2**31))
def test_logits_are_those_of_the_original(lengths: list[int], seed: int) -> None:
    """At any length, alone or padded in a batch, every real token gets the original's logits."""
    dice = torch.Generator().manual_seed(seed)
    ids = torch.randint(3, 90, (len(lengths), max(lengths)), generator=dice)
    mask = torch.zeros_like(ids)
    for row, length in enumerate(lengths):
        mask[row, :length] = 1
        ids[row, length:] = 0
    with torch.inference_mode():
        expected, found = MODEL(input_ids=ids, attention_mask=mask).logits, BLOCKS(ids, mask)
    assert bool(torch.isfinite(found[mask == 1]).all())
    torch.testing.assert_close(found[mask == 1], expected[mask == 1], atol=2e-4, rtol=1e-4)


def test_the_window_decides_what_a_local_layer_sees() -> None:
    """With the first layer global and one local, a token further away than both windows changes nothing there."""
    model = original(num_hidden_layers=2, layer_types=["sliding_attention", "sliding_attention"])
    blocks = BlockLocalClassifier(model).eval()
    ids = torch.arange(3, 83)[None]
    other = ids.clone()
    other[0, 0] = 85
    mask = torch.ones_like(ids)
    with torch.inference_mode():
        changed = (blocks(ids, mask) - blocks(other, mask)).abs().amax(dim=-1)[0]
    # Two local layers reach 2 x 12 tokens.
    assert float(changed[24]) > 0
    assert float(changed[25:].max()) == 0.0


def test_biases_are_carried_over() -> None:
    """A variant with biases in attention, feed-forward and norms is exact as well."""
    model = original(attention_bias=True, mlp_bias=True, norm_bias=True, classifier_bias=True)
    for name, values in model.named_parameters():
        if name.endswith("bias"):
            torch.nn.init.normal_(values, std=0.3)
    ids = torch.arange(3, 63)[None]
    with torch.inference_mode():
        expected = model(input_ids=ids).logits
        found = BlockLocalClassifier(model).eval()(ids, torch.ones_like(ids))
    torch.testing.assert_close(found, expected, atol=2e-4, rtol=1e-4)


def test_other_layouts_are_refused() -> None:
    """A BERT has no local layers; positions scaled beyond training are not exported."""
    bert = transformers.BertForTokenClassification(
        transformers.BertConfig(
            hidden_size=8, num_hidden_layers=1, num_attention_heads=1, intermediate_size=8
        )
    )
    with pytest.raises(ModelError, match="type bert"):
        BlockLocalClassifier(bert)
    scaled = {"rope_type": "linear", "factor": 2.0, "rope_theta": 10_000.0}
    plain = {"rope_type": "default", "rope_theta": 10_000.0}
    stretched = original(rope_parameters={"full_attention": scaled, "sliding_attention": plain})
    with pytest.raises(ModelError, match="linear"):
        BlockLocalClassifier(stretched)
