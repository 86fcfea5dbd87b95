"""The caller's side of a tracer: a confined process that holds a user's code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

import torch

from kernel_gym.devices.meter import Meter
from kernel_gym.imports.authoring.request import FoundSizes, TracingRequest
from kernel_gym.imports.traced.graph import DTYPES, GraphError, Traced, parse_trace
from kernel_gym.inert import inert_line
from kernel_gym.sandbox.channel import ChannelError, ChannelTimeout
from kernel_gym.sandbox.confine import WorkerLimits
from kernel_gym.sandbox.spawn import Child, shared_template

if TYPE_CHECKING:
    from kernel_gym.imports.tracing.evidence import Spread

TIMEOUT_SECONDS = 120.0
"""Host seconds that one request may take: work and idle time, without waits for a processor."""
MEMORY = 6 << 30
MAX_OUTPUTS = 256


class CodeError(ValueError):
    """The user's code cannot be a problem, or fails. The message says why and what to do."""


class Tracer:
    """A confined process with a user's code. Use it in a `with` statement.

    Args:
        request: What to trace.
        found: The sizes that may vary.
    """

    def __init__(self, request: TracingRequest, found: FoundSizes) -> None:
        self._spec = {
            "files": dict(request.files),
            "target": request.target,
            "inputs": request.inputs,
            "init": request.init,
            "shapes": [shape.to_json() for shape in request.shapes],
            "literals": [list(literal) for literal in found.literals],
        }
        self._child = _fork()
        try:
            self._ask("load", **self._spec)
        except CodeError:
            self._child.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._child.close()

    def trace(self, sizes: Mapping[str, int], train: bool) -> Traced:
        """Traces the code at some sizes.

        Raises:
            CodeError: It cannot be traced.
        """
        header, _ = self._ask("trace", sizes=dict(sizes), train=train)
        try:
            return parse_trace(header)
        except GraphError as error:
            raise CodeError(str(error)) from None

    def spreads(self, sizes: Mapping[str, int], train: bool) -> dict[str, Spread]:
        """Returns the statistics of the values that the code starts with.

        Raises:
            CodeError: It fails, or answers with something else.
        """
        header, _ = self._ask("spreads", sizes=dict(sizes), train=train)
        spreads = header.get("spreads")
        if not isinstance(spreads, dict):
            raise CodeError("the tracer's answer is malformed: it has no spreads")
        return spreads

    def run(
        self, sizes: Mapping[str, int], train: bool, values: Mapping[str, torch.Tensor]
    ) -> list[torch.Tensor]:
        """Runs the code on values and returns its outputs.

        Raises:
            CodeError: It fails, or answers with something else.
        """
        described = [
            {"name": k, "dtype": str(v.dtype)[6:], "shape": list(v.shape)}
            for k, v in values.items()
        ]
        data = [
            v.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes() for v in values.values()
        ]
        header, buffers = self._ask("run", *data, sizes=dict(sizes), train=train, values=described)
        try:
            outputs = header["outputs"]
            if not isinstance(outputs, list):
                raise TypeError("its outputs are no list")
            pairs = zip(outputs, buffers, strict=True)
            return [_tensor(one, buffer) for one, buffer in pairs]
        except (KeyError, TypeError, ValueError, RuntimeError) as error:
            raise CodeError(f"the tracer's answer is malformed: {inert_line(str(error))}") from None

    def _ask(
        self, verb: str, *buffers: bytes, **fields: object
    ) -> tuple[dict[str, object], tuple[bytes, ...]]:
        return _asked(self._child, verb, *buffers, **fields)


def ask_once(verb: str, **fields: object) -> dict[str, object]:
    """Asks a new tracer one thing and returns its answer, which may be forged.

    Raises:
        CodeError: The user's code fails.
    """
    child = _fork()
    try:
        return _asked(child, verb, **fields)[0]
    finally:
        child.close()


def _fork() -> Child:
    limits = WorkerLimits(memory=MEMORY, cpu_seconds=3600)
    return shared_template().fork("tracer", [], {}, limits, buffers=MAX_OUTPUTS)


def _asked(
    child: Child, verb: str, *buffers: bytes, **fields: object
) -> tuple[dict[str, object], tuple[bytes, ...]]:
    meter = Meter(child.pid, None, TIMEOUT_SECONDS, None)
    try:
        message = child.channel.request({"do": verb, **fields}, *buffers, timeout=meter.patience)
    except ChannelTimeout:
        sizes = f" at {fields['sizes']}" if "sizes" in fields else ""
        raise CodeError(f"it takes more than {TIMEOUT_SECONDS:g} s{sizes}") from None
    except ChannelError:
        raise CodeError("the process ended: a crash, exit(), or too much memory") from None
    error = message.header.get("error")
    if error is not None:
        raise CodeError(_explained(error))
    return message.header, message.buffers


def _tensor(described: Mapping[str, Any], buffer: bytes) -> torch.Tensor:
    if described["dtype"] not in DTYPES:
        raise ValueError("an unknown dtype")
    dtype = getattr(torch, described["dtype"])
    shape = [int(size) for size in described["shape"]]
    if not buffer:
        return torch.empty(shape, dtype=dtype)
    return torch.frombuffer(bytearray(buffer), dtype=dtype).reshape(shape)


_ADVICE = {
    "ModuleNotFoundError": "install it, or leave out what needs it",
    "DataDependentOutputException": (
        "it reads a value of a tensor (.item(), or `if tensor`): sizes and branches must not "
        "depend on values"
    ),
    "DynamicOutputShapeException": (
        "the shape of a result depends on values, as of nonzero, unique and a boolean index: make "
        "what was chosen an input, such as the routing of experts, or compute all and mask"
    ),
    "OSError": "it has no network and sees no files but the Python files beside its own",
    "FileNotFoundError": "it has no network and sees no files but the Python files beside its own",
    "ConnectionError": "it has no network",
    "gaierror": "it has no network",
    "URLError": "it has no network: weights must be made in the code",
}


_NO_DRIVER = "active drivers"
"""The words of Triton's message where it finds no GPU."""


def _explained(error: object) -> str:
    """Returns one line on a failure of the user's code, with what to do about it."""
    if not isinstance(error, Mapping):
        return "the process answers with something else than a message of the tracer"
    kind, message = inert_line(error.get("type", ""), 60), inert_line(error.get("message", ""), 300)
    if _NO_DRIVER in message:
        return (
            "it launches a Triton kernel, and there is no GPU here: record its tests with --record "
            "'pytest test_FILE.py', or give the same operation in PyTorch, and put the kernel into "
            "the problem's folder as baseline.py"
        )
    text = message if kind == "BuildError" else f"{kind}: {message}"
    return f"{text} ({_ADVICE[kind]})" if kind in _ADVICE else text
