"""Names of tensors in messages of the simulated GPU."""

import pytest
import torch

from kernel_gym.devices.sim.labels import tensor_label

CASES = {
    "input 'x' with rows of 2048 bytes": torch.empty(4, 1024, dtype=torch.float16),
    "input 'x' with rows of 4100 bytes": torch.empty(4, 1025)[:, :1000],
    "input 'x'": torch.empty(4096),
}


@pytest.mark.parametrize("label", CASES)
def test_a_label_names_the_argument_and_its_rows(label):
    assert tensor_label("input", "x", CASES[label]) == label


def test_columns_are_no_rows():
    assert tensor_label("output", "y", torch.empty(8, 8).t()) == "output 'y'"
