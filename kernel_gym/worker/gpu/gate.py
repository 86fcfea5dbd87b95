"""The torch operators that a candidate may use on a GPU: they allocate, view or copy.

They are the same operators as on the simulated device. Every other operator on a GPU tensor is
refused, with its name in the message. Candidates of imported tasks may also use operators that move
data, those that the suite's own code calls, and read a few bytes on the host in each call.
Candidates run in this process and can remove this gate. For hostile code it is one barrier of
several, beside the no-op replay and the count of launches. A suite's own code may use every
operator. It passes through the gate as well, because the gate takes time of the host in each call
and its candidates pay it too.
"""

from __future__ import annotations

from collections.abc import Set
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from kernel_gym.devices.operators import COMPUTING, MOST_READ, Operators
from kernel_gym.worker.gpu.stand_in_tensor import ALLOWED, METADATA

aten = torch.ops.aten
_MOVES = frozenset({aten.copy_, aten._to_copy})
MOST_REPORTED = 16


class GateMode(TorchDispatchMode):
    """Runs allowed operators and notes the names of refused ones.

    Args:
        operators: Which operators that compute are allowed.
        permitted: Their names, where `operators` says that some are.
    """

    def __init__(
        self, operators: Operators = Operators.NONE, permitted: Set[str] = frozenset()
    ) -> None:
        super().__init__()
        self.refused: list[str] = []
        self.computed: set[str] = set()
        """The operators that compute and that a suite's own code has run."""
        self._permitted = permitted
        self._usual = operators is not Operators.NONE
        self._all = operators is Operators.ALL
        self._read = 0

    def __enter__(self) -> GateMode:
        """Begins a call, in which the host may read so many bytes again."""
        self._read = 0
        super().__enter__()
        return self

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        """Runs one operator.

        Raises:
            RuntimeError: The operator computes on the device, or reads device memory on the host.
        """
        kwargs = kwargs or {}
        packet = func.overloadpacket
        if packet in _MOVES:
            self._check_move(func, args, kwargs)
        elif self._usual and packet is aten._local_scalar_dense:
            self._count_read(func, args[0])
        elif self._all and packet._qualified_op_name in COMPUTING:
            self.computed.add(packet._qualified_op_name)
        elif self._usual and packet._qualified_op_name in self._permitted:
            pass
        elif not (func.is_view or packet in ALLOWED or packet in METADATA) and _on_gpu(
            args, kwargs
        ):
            self._refuse(
                str(func),
                f"torch operator {func} is refused on device tensors: only allocation and view "
                "operations are allowed here; do the work in your kernel",
            )
        return func(*args, **kwargs)

    def _check_move(self, func: Any, args: tuple, kwargs: dict[str, Any]) -> None:
        source = args[1] if func.overloadpacket is aten.copy_ else args[0]
        if not source.is_cuda:
            return
        target = args[0] if func.overloadpacket is aten.copy_ else None
        device = target.device if target is not None else kwargs.get("device") or source.device
        dtype = target.dtype if target is not None else kwargs.get("dtype") or source.dtype
        if torch.device(device).type != "cuda":
            self._count_read(func, source)
        if dtype != source.dtype and not self._usual:
            self._refuse(
                f"conversion from {source.dtype} to {dtype}",
                f"converting {source.dtype} to {dtype} with torch is refused: "
                "convert in your kernel",
            )

    def _count_read(self, func: Any, source: torch.Tensor) -> None:
        """Refuses to read device memory on the host, beyond what a call may read."""
        if not source.is_cuda:
            return
        self._read += source.nbytes
        if not self._usual or self._read > MOST_READ:
            self._refuse(
                f"{func} (host reads device memory)",
                "reading device memory on the host is refused: keep the work in your kernel",
            )

    def _refuse(self, operator: str, text: str) -> None:
        if self._all:
            return
        if len(self.refused) < MOST_REPORTED:
            self.refused.append(operator[:120])
        raise RuntimeError(text)


def _on_gpu(args: tuple, kwargs: dict[str, Any]) -> bool:
    device = kwargs.get("device")
    if device is not None and torch.device(device).type == "cuda":
        return True
    return any(
        isinstance(leaf, torch.Tensor) and leaf.is_cuda for leaf in tree_leaves((args, kwargs))
    )
