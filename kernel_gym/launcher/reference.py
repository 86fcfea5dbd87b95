"""A reference in PyTorch as the work of calls that are timed: trusted code of the project.

It has a launcher of its own, with the same preparation, events and graphs as that of a plan.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from kernel_gym.launcher.driver import DriverError, GpuDriver
from kernel_gym.launcher.timing import MemoryPlace

if TYPE_CHECKING:
    import torch

_DEVICE = "cuda"


class NotCapturedError(Exception):
    """PyTorch cannot capture the call as a graph: host code of it waits for the device."""


class ReferenceExecution:
    """A call of a function on tensors of this process.

    Args:
        driver: The device. PyTorch uses its context too.
        source: The text of a module.
        entry: The name of the function.
        arguments: For each argument a scalar, or bytes of storage, offset in elements, shape,
            strides and the name of the dtype.

    Raises:
        DriverError: PyTorch failed.
    """

    def __init__(self, driver: GpuDriver, source: str, entry: str, arguments: list[object]) -> None:
        import torch

        self._driver, self._torch = driver, torch
        torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
        torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
        self._stream = torch.cuda.ExternalStream(driver.stream)
        self._function = _load(source, entry)
        self._storages: list[torch.Tensor] = []
        self._arguments = [self._argument(argument) for argument in arguments]
        self._results: tuple[Any, ...] = ()
        self.facts: list[dict[str, int | str]] = []
        self._graph: Any = None
        self._warm = False

    def prepare(self, inputs: MemoryPlace, graph: bool) -> None:
        """Calls the function once before times are taken, so that libraries are loaded.

        Args:
            inputs: The inputs of that call. An operator may end the context when it gets others:
                `repeat_interleave` does so if its counts do not have the sum that is stated.
            graph: Whether `start` replays a graph, which is captured once.

        Raises:
            NotCapturedError: PyTorch cannot capture a call.
        """
        if not self._warm:
            self.begin(inputs)
            self.queue()
            self._driver.wait()
            self._warm = True
        if graph and self._graph is None:
            self._graph = self._captured()

    def begin(self, inputs: MemoryPlace) -> None:
        """Queues copies of the inputs."""
        for storage in self._storages:
            inputs = inputs.copied(self._driver, storage.data_ptr(), storage.nbytes)

    def start(self, graph: bool) -> None:
        """Queues a call, as the graph that was captured or not."""
        if not graph:
            self.queue()
            return
        with self._torch.cuda.stream(self._stream):
            self._graph.replay()

    def queue(self, noop: bool = False) -> None:
        """Calls the function.

        Raises:
            DriverError: PyTorch failed.
        """
        with self._torch.cuda.stream(self._stream), self._torch.no_grad():
            try:
                results = self._function(*self._arguments)
            except RuntimeError as error:
                raise DriverError(f"PyTorch: {str(error).splitlines()[0][:300]}") from None
        self._results = tuple(results) if isinstance(results, tuple | list) else (results,)

    def queue_results(self, results: Sequence[MemoryPlace]) -> None:
        """Queues copies of what the function has returned, then of the inputs."""
        returned = [result.contiguous() for result in self._results]
        self._kept = returned
        for place, tensor in zip(results, (*returned, *self._storages), strict=False):
            place.receive(self._driver, tensor.data_ptr(), tensor.nbytes)

    def damaged(self) -> int | None:
        """Returns None: the code is trusted."""
        self._driver.wait()
        return None

    def close(self) -> None:
        """Frees the tensors."""
        if self._graph is not None:
            self._graph.reset()
            self._graph = None
        self._storages, self._arguments, self._results, self._kept = [], [], (), []
        self._torch.cuda.empty_cache()

    def _captured(self) -> object:
        self._driver.wait()
        graph = self._torch.cuda.CUDAGraph()
        try:
            with self._torch.cuda.graph(graph, stream=self._stream):
                self.queue()
        except (DriverError, RuntimeError) as error:
            raise NotCapturedError(str(error).splitlines()[0][:300]) from None
        return graph

    def _argument(self, described: object) -> object:
        if not isinstance(described, dict):
            return described
        torch = self._torch
        storage = torch.zeros(described["bytes"], dtype=torch.uint8, device=_DEVICE)
        self._storages.append(storage)
        dtype = getattr(torch, described["dtype"])
        empty = torch.empty(0, dtype=dtype, device=_DEVICE)
        place = described["offset"], described["shape"], described["strides"]
        return empty.set_(storage.untyped_storage(), *place)


def _load(source: str, entry: str) -> Callable[..., object]:
    names: dict[str, Any] = {"__name__": "reference"}
    exec(compile(source, "reference", "exec", dont_inherit=True), names)
    return names[entry]
