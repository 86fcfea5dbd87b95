"""YAML that others wrote: an error says what is wrong with a file."""

from __future__ import annotations

import pytest

from kernel_gym.imports.readers.base import CheckoutError
from kernel_gym.imports.readers.yaml_files import MAX_CHARACTERS, read_keys

LAUGHS = "a0: &a0 [x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 9)
)
BROKEN = {
    "open list": "a: [",
    "a number": "3",
    "no date": "a: 2024-13-45",
    "no integer": "a: !!int x",
    "no number": "a: !!float x",
    "no flag": "a: !!bool x",
    "no time": "a: !!timestamp x",
    "an unhashable key": "? [a]\n: b",
    "an unknown reference": "- *a",
    "a circle": "a: &a [*a]",
    "references to references": LAUGHS,
    "depth": "[" * 100_000,
    "many characters": "#" * (MAX_CHARACTERS + 1),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_file_is_told(tmp_path, kind):
    (tmp_path / "a.yaml").write_text(BROKEN[kind])
    with pytest.raises(CheckoutError, match=r"a\.yaml: found"):
        read_keys(tmp_path, "a.yaml")


def test_keys_and_references_are_read(tmp_path):
    (tmp_path / "a.yaml").write_text("a: &a [modelled]\nb: *a\nc: 2\n")
    assert read_keys(tmp_path, "a.yaml") == {"a": ["modelled"], "b": ["modelled"], "c": 2}
