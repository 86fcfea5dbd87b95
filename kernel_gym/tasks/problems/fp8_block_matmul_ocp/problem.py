"""Matrix product of fp8 operands with block scales, for devices that compute with OCP floats."""

from __future__ import annotations

import torch

from kernel_gym.tasks.problem import TensorArg
from kernel_gym.tasks.problems.fp8_block_matmul.problem import Fp8BlockMatmul


class Fp8BlockMatmulOcp(Fp8BlockMatmul):
    """`out = dequant(a) @ dequant(b)^T`.

    `a[i, k]` is scaled by `a_scale[i, k // 128]`, `b[j, k]` by `b_scale[j // 128, k // 128]`.
    """

    name = "fp8_block_matmul_ocp"
    summary = "fp8 (e4m3fn) product with 1 x 128 scales of a and 128 x 128 scales of b"

    args = (
        TensorArg("a", torch.float8_e4m3fn, shape="m, k"),
        TensorArg("a_scale", torch.float32, shape="m, k / 128"),
        TensorArg("b", torch.float8_e4m3fn, shape="n, k"),
        TensorArg("b_scale", torch.float32, shape="ceil(n / 128), k / 128"),
    )


PROBLEM = Fp8BlockMatmulOcp()
