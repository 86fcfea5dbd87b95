"""The data sheets of devices: dense peak rates, never the figures with sparsity.

They are used for the physics floor, the roofline and the model of PyTorch operators.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

# Limit of the share, side with half of it, largest share: for matrix and for vector types.
_LIBRARY_SHARES = {True: (0.957, 4524.0, 0.62), False: (1.03, 624.0, 0.93)}


def library_share(flops: int, matrix: bool) -> float:
    """Share of the arithmetic peak that a library's matrix product reaches.

    Computed from hipBLASLt's rates on an MI300X for products of 4096^3 and 8192^3: geometric means
    of 0.503 and 0.640 (bf16), 0.411 and 0.599 (fp16), 0.455 and 0.611 (fp8) of the matrix peak;
    0.893 and 0.956 (fp32) of the vector peak. Between and below: s / (1 + half / side), where side
    is the cube root of FLOPs / 2. Larger ones stay below the power limit, 0.62. Source:
    hibagus/SC25_AMD_CDNA3_Artifact@06e0811, data/7_1_GEMM/hipblaslt/MI300X_750W.

    Args:
        flops: FLOPs of the product; 0 gives the largest share.
        matrix: Whether the type has a matrix rate of its own.
    """
    limit, half, most = _LIBRARY_SHARES[matrix]
    if flops <= 0:
        return most
    side: float = (flops / 2) ** (1 / 3)
    return min(most, limit / (1 + half / side))


@dataclass(frozen=True)
class DeviceSpec:
    """Peak rates of one device. Bandwidth in bytes/s, rates in FLOP/s, sizes in bytes."""

    name: str
    arch: str
    memory_bandwidth: float
    matrix_rate: dict[torch.dtype, float]
    vector_rate: float
    compute_units: int
    lds_bytes: int
    wavefront: int
    flush_bytes: int
    launch_seconds: float = 2e-6
    """Device-side cost of one launch in a busy stream (assumed, not measured)."""
    trip_seconds: float = 0.0
    """Seconds of the shortest kernel that reads and writes memory beyond its launch, as the timing
    model of the simulator has them; 0 for a GPU without such a model."""
    achievable: float = 0.8
    """Share of the memory bandwidth that a good kernel reaches (assumed, not measured)."""

    @property
    def shortest_kernel_seconds(self) -> float:
        """Seconds of the shortest kernel that reads and writes memory, with its launch."""
        return self.launch_seconds + self.trip_seconds

    def roofline_seconds(self, moved_bytes: int, flops: int, *dtypes: torch.dtype) -> float:
        """Returns the roofline time in seconds: Williams et al., CACM 52(4), 2009.

        Args:
            moved_bytes: The least bytes that are moved.
            flops: The least operations.
            dtypes: What is computed with; the type with the highest rate counts.
        """
        rate = max(self.matrix_rate.get(dtype, self.vector_rate) for dtype in dtypes)
        return max(moved_bytes / self.memory_bandwidth, flops / rate)

    def operator_seconds(self, moved_bytes: int, flops: int, dtype: torch.dtype) -> float:
        """Returns the modelled time of one kernel of a library.

        It is that of the shortest kernel and the achievable roofline, so that a library's kernel
        pays what a simulated kernel has to pay.
        """
        moving = self.roofline_seconds(moved_bytes, 0, dtype) / self.achievable
        share = library_share(flops, dtype in self.matrix_rate)
        computing = self.roofline_seconds(0, flops, dtype) / share
        return self.shortest_kernel_seconds + max(moving, computing)

    @property
    def facts(self) -> str:
        """One paragraph for prompts."""
        tera = self.matrix_rate[torch.float16] / 1e12
        return (
            f"{self.name} ({self.arch}): {self.compute_units} compute units of 4 SIMDs, wavefront "
            f"of {self.wavefront} lanes, {self.lds_bytes // 1024} KiB LDS per compute unit, "
            f"{self.memory_bandwidth / 1e12:.1f} TB/s memory, {tera:.0f} TFLOP/s fp16/bf16 matrix, "
            f"{self.vector_rate / 1e12:.0f} TFLOP/s fp32 vector."
        )


MI300X = DeviceSpec(
    name="AMD Instinct MI300X",
    arch="gfx942",
    memory_bandwidth=5.3e12,
    matrix_rate={
        torch.float16: 1307.4e12,
        torch.bfloat16: 1307.4e12,
        torch.float8_e4m3fnuz: 2614.9e12,
        torch.float8_e5m2fnuz: 2614.9e12,
        torch.int8: 2614.9e12,
    },
    vector_rate=163.4e12,
    compute_units=304,
    lds_bytes=64 * 1024,
    wavefront=64,
    flush_bytes=512 << 20,
    trip_seconds=0.55e-6,
)
"""AMD Instinct MI300X data sheet, dense peaks at 2.1 GHz."""

MI250X = DeviceSpec(
    name="AMD Instinct MI250X, one of two dies",
    arch="gfx90a",
    memory_bandwidth=1.638e12,
    matrix_rate={torch.float16: 191.5e12, torch.bfloat16: 191.5e12, torch.int8: 191.5e12},
    vector_rate=23.9e12,
    compute_units=110,
    lds_bytes=64 * 1024,
    wavefront=64,
    flush_bytes=64 << 20,
    trip_seconds=0.54e-6,
)
"""AMD Instinct MI250X data sheet, half of the package: one HIP device."""

MI355X = DeviceSpec(
    name="AMD Instinct MI355X",
    arch="gfx950",
    memory_bandwidth=8.0e12,
    matrix_rate={
        torch.float16: 2500e12,
        torch.bfloat16: 2500e12,
        torch.float8_e4m3fn: 5000e12,
        torch.float8_e5m2: 5000e12,
        torch.int8: 5000e12,
    },
    vector_rate=157.3e12,
    compute_units=256,
    lds_bytes=160 * 1024,
    wavefront=64,
    flush_bytes=512 << 20,
    trip_seconds=0.485e-6,
)
"""AMD Instinct MI355X data sheet, dense peaks."""

SIMULATED = {spec.arch: spec for spec in (MI300X, MI250X, MI355X)}
"""The devices that can be simulated, the default first."""
