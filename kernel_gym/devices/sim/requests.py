"""What a worker asks the simulated GPU for, as typed values with bounds: it may be hostile.

Each request has a fixed set of fields, and each field a parser. Nothing else reads a worker's
requests; what is not as stated here is refused before the device does anything.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from kernel_gym.hardware import DeviceSpec
from kernel_gym.inert import inert_line
from kernel_gym.sim.engine.engine import Kernel, KernelArg

MAX_TEXT = 4 << 20
"""Most characters of an assembler text."""
MAX_NAME = 4096
"""Most characters of a symbol; compilers of C++ make long ones."""
MAX_AXES = 16
MAX_ARGUMENTS = 1 << 16
"""Most bytes of the arguments of a launch, and most of them."""
_LARGEST = 1 << 62
_TYPES = """
    bool uint8 int8 int16 uint16 int32 uint32 int64 uint64 float16 bfloat16 float32 float64
    complex64 complex128 float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu
""".split()
ELEMENT_TYPES = {name: getattr(torch, name) for name in _TYPES if hasattr(torch, name)}
"""Types of whole bytes. PyTorch ends the process for some operations on quantised ones."""


class RefusedError(Exception):
    """The worker asked for something that the device does not do for it."""


@dataclass(frozen=True)
class TensorOnDevice:
    """A tensor that is possible, whether or not its memory is allocated."""

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: torch.dtype

    @property
    def nbytes(self) -> int:
        """The bytes of all elements."""
        return math.prod(self.shape) * self.dtype.itemsize

    @property
    def extent(self) -> int:
        """The bytes from the begin of the first element to the end of the last one."""
        if 0 in self.shape:
            return 0
        steps = sum((n - 1) * s for n, s in zip(self.shape, self.strides, strict=True))
        return (1 + steps) * self.dtype.itemsize

    @property
    def repeats(self) -> bool:
        """Whether an axis goes over the same memory again and again."""
        return any(s == 0 and n > 1 for n, s in zip(self.shape, self.strides, strict=True))


@dataclass(frozen=True)
class Request:
    """A request that is well-formed: what to do, and its fields by name."""

    do: str
    fields: dict[str, Any]


def parse_request(header: Mapping[str, Any], data: bytes = b"") -> Request:
    """Reads a request of a worker.

    Args:
        header: A JSON object.
        data: The raw bytes behind it.

    Raises:
        RefusedError: There is no such request, or a field is missing, unknown or malformed.
    """
    do = header.get("do")
    if not isinstance(do, str) or do not in REQUESTS:
        raise RefusedError(f"the device does not know the request {inert_line(do, 40)!r}")
    parsers = REQUESTS[do]
    unknown = [inert_line(key, 40) for key in header if key not in (*parsers, "do")][:4]
    if unknown:
        raise RefusedError(f"{do}: unknown fields {unknown}, expected {list(parsers)}")
    fields = {name: parser(header.get(name), name) for name, parser in parsers.items()}
    if do in WITH_DATA:
        fields["data"] = data
    return Request(do, fields)


def whole(value: Any, what: str) -> int:
    """A count, size or address.

    Raises:
        RefusedError: It is none.
    """
    if type(value) is not int or not 0 <= value < _LARGEST:
        raise RefusedError(f"{what} is {_shown(value)}, expected a whole number")
    return value


def _number(value: Any, what: str) -> float | int | bool:
    if type(value) not in (int, float, bool) or (type(value) is int and abs(value) > 1 << 64):
        raise RefusedError(f"{what} is {_shown(value)}, expected a number")
    return value


def _assembler(value: Any, what: str) -> str:
    if not isinstance(value, str) or len(value) > MAX_TEXT:
        raise RefusedError(f"an assembler text must be text of at most {MAX_TEXT} characters")
    return value


def _symbol(value: Any, what: str) -> str:
    if not isinstance(value, str) or len(value) > MAX_NAME:
        raise RefusedError(f"{what} is {_shown(value)}, expected at most {MAX_NAME} characters")
    return value


def _label(value: Any, what: str) -> str:
    if not isinstance(value, str):
        raise RefusedError(f"{what} is {_shown(value)}, expected text")
    return inert_line(value, 120)


def _wholes(value: Any, what: str, most: int = MAX_ARGUMENTS) -> list[int]:
    if not isinstance(value, list) or len(value) > most:
        raise RefusedError(f"{what} is {_shown(value)}, expected a list of at most {most}")
    return [whole(one, what) for one in value]


def _three(value: Any, what: str) -> tuple[int, int, int]:
    sizes = _wholes(value, what, most=3)
    if len(sizes) != 3:
        raise RefusedError(f"invalid launch: {what} {sizes}, expected three sizes")
    return sizes[0], sizes[1], sizes[2]


def _tensor(value: Any, what: str) -> TensorOnDevice:
    if not isinstance(value, dict) or not isinstance(value.get("dtype"), str):
        raise RefusedError(f"{what} is {_shown(value)}, expected a tensor")
    dtype = ELEMENT_TYPES.get(value["dtype"])
    if dtype is None:
        raise RefusedError(f"the device has no elements of type {_shown(value['dtype'])}")
    shape = tuple(_wholes(value.get("shape"), "a shape", MAX_AXES))
    strides = tuple(_wholes(value.get("strides"), "a list of strides", MAX_AXES))
    if len(shape) != len(strides):
        raise RefusedError(f"a tensor has {len(shape)} axes and {len(strides)} strides")
    return TensorOnDevice(whole(value.get("address"), "address"), shape, strides, dtype)


def _or_none(parser: Callable[[Any, str], Any]) -> Callable[[Any, str], Any]:
    return lambda value, what: None if value is None else parser(value, what)


def _shown(value: Any) -> str:
    return inert_line(str(value) if type(value) in (bool, float) else value, 40)


REQUESTS: dict[str, dict[str, Callable[[Any, str], Any]]] = {
    "allocate": {"size": whole},
    "free": {"address": whole},
    "load": {"text": _assembler, "name": _or_none(_symbol), "shared": _or_none(whole)},
    "names": {"text": _assembler},
    "variable": {"text": _assembler, "name": _symbol},
    "fill": {"tensor": _tensor, "value": _number},
    "copy": {"source": _tensor, "target": _tensor},
    "refuse": {"operator": _label},
    "clock": {},
    "upload": {"address": whole},
    "launch": {"kernel": whole, "grid": _three, "block": _three, "sizes": _wholes, "lds": whole},
}
"""Everything that a worker may ask for: the fields of each request and their parsers."""
WITH_DATA = ("upload", "launch")
"""Requests that come with raw bytes."""


def check_kernel(kernel: Kernel, spec: DeviceSpec) -> None:
    """A kernel is one that the device can run, and its text declares what it uses.

    Raises:
        RefusedError: It is not.
    """
    if len(kernel.name) > MAX_NAME or not kernel.name.isprintable():
        raise RefusedError("the name of a kernel is too long, or not printable")
    places = [0, kernel.kernarg_size, kernel.lds_bytes, kernel.scratch_bytes]
    places += [place for arg in kernel.args for place in (arg.offset, arg.size)]
    if min(places) < 0 or max([kernel.kernarg_size, *map(_end, kernel.args)]) > MAX_ARGUMENTS:
        raise RefusedError(f"arguments must lie within {MAX_ARGUMENTS} bytes")
    check_target(kernel, spec)
    check_registers(kernel)


def _end(arg: KernelArg) -> int:
    return arg.offset + arg.size


def check_target(kernel: Kernel, spec: DeviceSpec) -> None:
    """Code for another GPU would run by that one's rules: more LDS, faster instructions."""
    if kernel.arch != spec.arch:
        raise RefusedError(
            f"{kernel.name} is compiled for {kernel.arch}, expected {spec.arch} ({spec.name})"
        )


def check_registers(kernel: Kernel) -> None:
    """The text may not declare fewer vector registers than it uses: occupancy rests on that."""
    builder = kernel.decoded.builder
    used = builder.vector_registers + builder.accumulators
    if used > kernel.total_registers:
        raise RefusedError(
            f"{kernel.name} declares {kernel.total_registers} vector registers and uses {used}"
        )


def split(data: bytes, sizes: list[int]) -> list[bytes]:
    """The values of the arguments of a launch."""
    if sum(sizes) != len(data):
        raise RefusedError("the arguments do not have the sizes that are said")
    values, at = [], 0
    for size in sizes:
        values.append(data[at : at + size])
        at += size
    return values


def check_geometry(
    kernel: Kernel,
    grid: tuple[int, int, int],
    block: tuple[int, int, int],
    lds: int,
    spec: DeviceSpec,
) -> None:
    """The shape of a launch is one that the device has."""
    threads = block[0] * block[1] * block[2]
    limit = min(1024, kernel.max_workgroup or 1024)
    if min(block) < 1 or threads > limit:
        raise RefusedError(f"invalid launch: grid {grid}, block {block} (at most {limit} threads)")
    if grid[0] * grid[1] * grid[2] > 1 << 31:
        raise RefusedError(f"invalid launch: grid {grid} is too large")
    total = kernel.lds_bytes + lds
    if total > spec.lds_bytes:
        raise RefusedError(
            f"{kernel.name} asks for {total} bytes of LDS, {spec.lds_bytes} are there"
        )
