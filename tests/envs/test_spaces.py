"""The space of source texts."""

import pytest
from gymnasium import spaces
from gymnasium.vector.utils import batch_space
from hypothesis import given
from hypothesis import strategies as st

from kernel_gym.envs.spaces import MAX_SAMPLE_CHARS, SourceText


@given(st.text(max_size=50))
def test_any_unicode_is_contained(text):
    assert SourceText(50).contains(text)


@pytest.mark.parametrize("value", ["x" * 51, b"bytes", None, 3, ["a"]])
def test_anything_else_is_not(value):
    assert not SourceText(50).contains(value)


def test_samples_are_printable_and_repeatable():
    one, other = SourceText(seed=3), SourceText(seed=3)
    samples = [one.sample() for _ in range(20)]
    assert samples == [other.sample() for _ in range(20)]
    assert len(set(samples)) > 1
    assert all(len(text) <= MAX_SAMPLE_CHARS and text in one for text in samples)
    assert all(ord(char) < 128 for text in samples for char in text)


def test_a_mask_may_ask_for_a_length():
    assert len(SourceText(5000).sample(mask=(4000, None))) == 4000


def test_equality_is_by_length():
    assert SourceText(10) == SourceText(10) != SourceText(11)
    assert SourceText(10) != spaces.Text(10)


def test_it_batches_like_any_text():
    assert "a" * 3 in batch_space(SourceText(10), 2).spaces[1]
