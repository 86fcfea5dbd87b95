"""The tests of the kernel, written for pytest on a GPU."""

import pytest
import torch
from swish_gate import swish_gate


@pytest.mark.parametrize("shape", [(4, 128), (3, 5, 257), (64, 1024)])
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32])
def test_swish_gate(shape, dtype):
    torch.manual_seed(0)
    x, y = (torch.randn(shape, device="cuda", dtype=dtype) for _ in range(2))
    expected = torch.nn.functional.silu(x.float()) * y.float()
    torch.testing.assert_close(swish_gate(x, y).float(), expected, rtol=1e-2, atol=1e-2)
