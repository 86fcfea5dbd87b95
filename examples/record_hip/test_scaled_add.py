"""The tests of the extension, written for pytest on a GPU."""

import pytest
import torch
from scaled_add import scaled_add


@pytest.mark.parametrize("shape", [(16, 64), (3, 5, 257), (128, 256)])
def test_scaled_add(shape):
    torch.manual_seed(0)
    x, y = (torch.randn(shape, device="cuda") for _ in range(2))
    torch.testing.assert_close(scaled_add(x, y, 2.5), x + 2.5 * y)
