"""The size of the memory that judge and workers share on a GPU."""

import pytest

from kernel_gym.devices.gpu.shared_memory import VARIABLE, arena_bytes
from kernel_gym.errors import InputError


def test_the_size_is_set_by_a_variable(monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    assert arena_bytes() == 4 << 30
    monkeypatch.setenv(VARIABLE, "32")
    assert arena_bytes() == 32 << 30


@pytest.mark.parametrize("text", ["", "0", "-1", "4.5", "four"])
def test_another_text_is_refused(monkeypatch, text):
    monkeypatch.setenv(VARIABLE, text)
    with pytest.raises(InputError, match="expected a whole number of GiB above 0"):
        arena_bytes()
