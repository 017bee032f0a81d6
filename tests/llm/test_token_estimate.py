"""Token counts without a tokenizer."""

from __future__ import annotations

from truthlens.llm.token_estimate import prompt_tokens, text_tokens


def test_four_latin_characters_or_one_of_cjk_are_a_token() -> None:
    counts = {"": 0, "abcd": 1, "abcde": 2, "用药剂量": 4, "薬をabcd": 3, "용량": 2}
    assert {text: text_tokens(text) for text in counts} == counts


def test_a_prompt_counts_all_of_its_text_wherever_it_stands() -> None:
    body = {
        "messages": [{"role": "user", "content": [{"type": "text", "text": "x" * 40}]}],
        "tools": [{"function": {"description": "y" * 40}}],
        "temperature": 0.2,
    }
    assert 20 <= prompt_tokens(body) <= 25


def test_an_image_counts_a_flat_figure_and_not_its_base64() -> None:
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 1_000_000}}
    assert prompt_tokens({"messages": [{"content": [picture, picture]}]}) == 1600


def test_token_ids_count_one_each() -> None:
    assert prompt_tokens({"prompt": [[1, 2, 3], [4, 5]]}) == 5


def test_a_schema_whose_type_is_a_list_is_counted_like_any_text() -> None:
    assert prompt_tokens({"schema": {"type": ["string", "null"]}}) == 3


def test_nesting_as_deep_as_a_decoder_allows_is_counted() -> None:
    nested: object = "abcd"
    for _ in range(50_000):
        nested = [nested]
    assert prompt_tokens({"messages": nested}) == 1
