"""The base of modes that see every operator of PyTorch."""

from __future__ import annotations

from torch.utils._python_dispatch import TorchDispatchMode


class OperatorMode(TorchDispatchMode):
    """A mode whose first operator does not import PyTorch's compiler.

    PyTorch marks `__torch_dispatch__` as code that its compiler must not trace. The mark imports
    the whole compiler at the first operator of each process, which takes 3 seconds. Nothing is
    compiled within our modes.
    """

    def __init__(self) -> None:
        super().__init__()

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Whether PyTorch marks the methods of the class. Versions without the mark ignore it."""
        return False
