"""Tests of a step that was copied to matmul_nt.py; a task is recorded from them."""

import pytest
import torch
from matmul_nt import matmul_nt


@pytest.mark.parametrize("shape", [(256, 256, 512), (512, 256, 1024), (200, 300, 640)])
def test_matmul_nt(shape):
    m, n, k = shape
    x = torch.randn(m, k, device="cuda").half()
    weight = (torch.randn(n, k, device="cuda") * k**-0.5).half()
    expected = x.float() @ weight.float().t()
    torch.testing.assert_close(matmul_nt(x, weight).float(), expected, rtol=1e-2, atol=1e-2)
