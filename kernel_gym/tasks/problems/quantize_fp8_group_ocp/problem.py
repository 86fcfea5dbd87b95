"""Dynamic quantisation of activations to fp8, for devices that compute with OCP floats."""

from __future__ import annotations

import torch

from kernel_gym.tasks.problem import Check, Output
from kernel_gym.tasks.problems.quantize_fp8_group.problem import QuantizeFp8Group


class QuantizeFp8GroupOcp(QuantizeFp8Group):
    """`scale = max(max|x|, 1e-10) / 448` by group of 128 columns, `q = fp8(x / scale)`."""

    name = "quantize_fp8_group_ocp"
    summary = "e4m3fn codes and a float32 scale for each group of 128 columns"

    outputs = (
        Output("q", torch.float8_e4m3fn, check=Check.CUSTOM, shape="rows, cols"),
        Output("scale", torch.float32, check=Check.CUSTOM, shape="rows, cols / 128"),
    )

    def reference(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Operator by operator in float32."""
        groups = x.float().view(x.shape[0], -1, 128)
        scale = groups.abs().amax(dim=2).clamp(min=1e-10) / 448
        q = (groups / scale[:, :, None]).clamp(-448, 448)
        return q.to(torch.float8_e4m3fn).view(x.shape), scale


PROBLEM = QuantizeFp8GroupOcp()
