"""The main loop of a tracer: loads a user's files, traces their module at sizes, runs it on values.

The process is confined like a candidate's, and the caller checks every answer: the module may be
hostile. Nothing of it runs in another process.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence
from typing import Any, TypedDict

import torch

from kernel_gym.imports.tracing.built import Built, build
from kernel_gym.imports.tracing.evidence import spreads
from kernel_gym.imports.tracing.profile import profile
from kernel_gym.imports.tracing.record import of_call, of_construction, of_forward
from kernel_gym.imports.tracing.sources import Sources
from kernel_gym.sandbox import confine, failures
from kernel_gym.sandbox.channel import Channel

MAX_BUFFERS = 4096
"""Most tensors in one request."""


def main(fds: list[int], options: dict[str, object]) -> None:
    """Serves the caller over the first descriptor."""
    torch.set_num_threads(1)
    confine.forbid_inspection()
    caller = Channel(socket.socket(fileno=fds[0]), buffers=MAX_BUFFERS)
    tracer = TracingWorker()
    while True:
        message = caller.recv()
        try:
            handler = HANDLERS[message.header.pop("do")]
            header, buffers = handler(tracer, message.buffers, **message.header)
        except BaseException as error:  # user code may raise anything, SystemExit included
            header, buffers = {"error": failures.describe(error)}, []
        caller.send(header, *buffers)


Answer = tuple[dict[str, object], list[bytes]]


class TensorDescription(TypedDict):
    """A tensor whose elements are a buffer of the message."""

    name: str
    dtype: str
    shape: list[int]


class TracingWorker:
    """One module or function of a user."""

    def __init__(self) -> None:
        self._sources: Sources | None = None

    def load(self, buffers: Sequence[bytes], **spec: Any) -> Answer:
        """Takes the files and what to trace. Nothing is executed yet."""
        self._sources = Sources(**spec)
        return {}, []

    def profile(self, buffers: Sequence[bytes], files: dict[str, str], script: str) -> Answer:
        """Runs a script and lists its modules by time."""
        return {"modules": profile(files, script)}, []

    def trace(self, buffers: Sequence[bytes], sizes: dict[str, int], train: bool) -> Answer:
        """Traces the construction of all values and the forward pass, without computing them."""
        built = self._build(sizes, train, fake=True)
        return {
            "construction": of_construction(built),
            "forward": of_forward(built),
            "kinds": built.kinds,
            "call": of_call(built),
            "doc": built.doc,
        }, []

    def spreads(self, buffers: Sequence[bytes], sizes: dict[str, int], train: bool) -> Answer:
        """Constructs the module and returns statistics of each floating-point value."""
        return {"spreads": spreads(self._build(sizes, train, fake=False))}, []

    def run(
        self,
        buffers: Sequence[bytes],
        sizes: dict[str, int],
        train: bool,
        values: list[TensorDescription],
    ) -> Answer:
        """Runs the forward pass on given values and returns its outputs."""
        built = self._build(sizes, train, fake=False)
        given = {
            value["name"]: torch.frombuffer(bytearray(data), dtype=getattr(torch, value["dtype"]))
            .reshape(value["shape"])
            .clone()
            for value, data in zip(values, buffers, strict=True)
        }
        outputs = built.outputs({name: given.get(name, old) for name, old in built.values.items()})
        dense = [out.detach().contiguous() for out in outputs]
        described = [{"dtype": str(t.dtype)[6:], "shape": list(t.shape)} for t in dense]
        return {"outputs": described}, [_bytes(t) for t in dense]

    def _build(self, sizes: dict[str, int], train: bool, fake: bool) -> Built:
        assert self._sources is not None
        return build(self._sources, sizes, train, fake)


def _bytes(tensor: torch.Tensor) -> bytes:
    return tensor.reshape(-1).view(torch.uint8).numpy().tobytes() if tensor.numel() else b""


HANDLERS: dict[str, Callable[..., Answer]] = {
    "load": TracingWorker.load,
    "profile": TracingWorker.profile,
    "trace": TracingWorker.trace,
    "spreads": TracingWorker.spreads,
    "run": TracingWorker.run,
}
