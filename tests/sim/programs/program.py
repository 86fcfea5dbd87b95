"""A Triton program, its meaning in PyTorch, and the comparison of the two on the simulator."""

from __future__ import annotations

import importlib.util
import textwrap
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from kernel_gym.sim.engine.engine import Engine
from tests.sim.support import launch

TYPES = {
    "fp64": torch.float64,
    "fp32": torch.float32,
    "fp16": torch.float16,
    "bf16": torch.bfloat16,
    "fp8e4b8": torch.float8_e4m3fnuz,
    "fp8e5b16": torch.float8_e5m2fnuz,
    "fp8e4nv": torch.float8_e4m3fn,
    "fp8e5": torch.float8_e5m2,
    "i1": torch.bool,
    "i8": torch.int8,
    "i16": torch.int16,
    "i32": torch.int32,
    "i64": torch.int64,
    "u8": torch.uint8,
    "u16": torch.uint16,
    "u32": torch.uint32,
    "u64": torch.uint64,
}
BITS = {"i8": 8, "i16": 16, "i32": 32, "i64": 64, "u8": 8, "u16": 16, "u32": 32, "u64": 64}
LANGUAGE = {
    **{name: f"tl.int{name[1:]}" for name in ("i8", "i16", "i32", "i64")},
    **{name: f"tl.uint{name[1:]}" for name in ("u8", "u16", "u32", "u64")},
    "fp64": "tl.float64",
    "fp32": "tl.float32",
    "fp16": "tl.float16",
    "bf16": "tl.bfloat16",
    "fp8e4b8": "tl.float8e4b8",
    "fp8e5b16": "tl.float8e5b16",
    "fp8e4nv": "tl.float8e4nv",
    "fp8e5": "tl.float8e5",
    "i1": "tl.int1",
}
# Relative error of a few operations, by the narrowest type on the way.
TOLERANCE = {
    "fp64": 1e-12,
    "fp32": 2e-5,
    "fp16": 4e-3,
    "bf16": 3e-2,
    "fp8e4b8": 0.13,
    "fp8e4nv": 0.13,
    "fp8e5b16": 0.26,
    "fp8e5": 0.26,
}
HEADER = """
import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def larger(a, b):
    return tl.maximum(a, b)


@triton.jit
def affine(a, b, c, d):
    return a * c, b * c + d


@triton.jit
def times(a, b):
    return a * b
"""


@dataclass(frozen=True)
class Data:
    """A tensor argument.

    Attributes:
        name: The argument's name.
        type: Element type, a key of :data:`TYPES`.
        shape: Its shape.
        low: Smallest value; with ``high`` equal, every element has it.
        high: Largest value. For floats normal values are clipped to the range.
    """

    name: str
    type: str
    shape: tuple[int, ...]
    low: float = -4
    high: float = 4

    def make(self, generator: torch.Generator) -> torch.Tensor:
        """Reproducible contents."""
        if self.low == self.high:
            return torch.full(self.shape, self.low, dtype=torch.float64).to(TYPES[self.type])
        if self.type in BITS:
            low, high = int(self.low), int(self.high) + 1
            return torch.randint(low, high, self.shape, generator=generator).to(TYPES[self.type])
        values = torch.randn(self.shape, generator=generator, dtype=torch.float64)
        if self.low >= 0:
            values = values.abs() + self.low
        return values.clamp(self.low, self.high).to(TYPES[self.type])


@dataclass(frozen=True)
class Program:
    """A kernel and its meaning.

    Attributes:
        name: A Python identifier, unique among all programs.
        inputs: Tensors that are read.
        outputs: Tensors that are written; their contents before the launch count too.
        body: Statements of the kernel, over the names of the arguments.
        meaning: Python statements that bind the names of the outputs, over the inputs (floats
            as float64, integers as int64 and wrapped at the end) and the scalars.
        scalars: Further arguments: name to (type, value); type ``constexpr`` for constants.
        grid: Programs along x, y, z.
        warps: Waves of a workgroup.
        stages: Software-pipeline stages.
        rtol: Relative tolerance of float outputs.
        atol: Absolute tolerance; default the relative one.
        aligned: Whether pointers are known to be multiples of 16.
    """

    name: str
    inputs: tuple[Data, ...]
    outputs: tuple[Data, ...]
    body: str
    meaning: str
    scalars: dict[str, tuple[str, Any]] = field(default_factory=dict)
    grid: tuple[int, ...] = (1,)
    warps: int = 4
    stages: int = 2
    rtol: float = TOLERANCE["fp32"]
    atol: float | None = None
    aligned: bool = True

    @property
    def source(self) -> str:
        """The kernel as Python text."""
        arguments = [data.name for data in (*self.inputs, *self.outputs)]
        for name, (kind, _) in self.scalars.items():
            arguments.append(f"{name}: tl.constexpr" if kind == "constexpr" else name)
        body = textwrap.indent(textwrap.dedent(self.body).strip("\n"), "    ")
        return f"@triton.jit\ndef {self.name}({', '.join(arguments)}):\n{body}\n"

    @property
    def listing(self) -> str:
        """Everything a reader needs to reproduce a failure."""
        facts = [*self.inputs, *self.outputs, self.scalars, (self.grid, self.warps, self.stages)]
        lines = "\n".join(f"# {fact}" for fact in facts)
        return f"{lines}\n{self.source}\n# meaning\n{textwrap.dedent(self.meaning)}"


def write_module(programs: Sequence[Program], folder: Path, name: str) -> ModuleType:
    """A module with the kernels of the programs: Triton wants to read their source."""
    path = folder / f"{name}.py"
    path.write_text(HEADER + "".join(f"\n\n{program.source}" for program in programs))
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def compile_program(program: Program, module: ModuleType, arch: str = "gfx942") -> tuple[str, int]:
    """Assembler text and LDS bytes."""
    function = getattr(module, program.name)
    signature = {data.name: f"*{data.type}" for data in (*program.inputs, *program.outputs)}
    signature |= {name: kind for name, (kind, _) in program.scalars.items()}
    constants = {n: value for n, (kind, value) in program.scalars.items() if kind == "constexpr"}
    pointers = range(len(program.inputs) + len(program.outputs))
    known = {(i,): [["tt.divisibility", 16]] for i in pointers if program.aligned}
    source = ASTSource(function, signature, constants, attrs=known)
    options = {"num_warps": program.warps, "num_stages": program.stages}
    kernel = triton.compile(source, target=GPUTarget("hip", arch, 64), options=options)
    return kernel.asm["amdgcn"], kernel.metadata.shared


def widened(value: torch.Tensor) -> torch.Tensor:
    """float64 for floats, int64 for integers."""
    return value.to(torch.float64 if value.is_floating_point() else torch.int64)


def wrap(value: torch.Tensor, kind: str) -> torch.Tensor:
    """int64 values as a narrower integer type sees them."""
    bits = BITS[kind]
    if bits == 64:
        return value
    value = value & ((1 << bits) - 1)
    return value - ((value >> (bits - 1)) << bits) if kind[0] == "i" else value


def divide(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Integer division that truncates, as in C."""
    return torch.div(a, b, rounding_mode="trunc")


def rounded(value: torch.Tensor, kind: str) -> torch.Tensor:
    """float64 values after a conversion to a narrower type."""
    return value.float().to(TYPES[kind]).double() if kind != "fp64" else value


def expect(program: Program, inputs: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """The outputs by the meaning."""
    names: dict[str, Any] = {name: widened(value) for name, value in inputs.items()}
    names |= {name: value for name, (_, value) in program.scalars.items()}
    names |= {"torch": torch, "wrap": wrap, "divide": divide, "rounded": rounded}
    exec(textwrap.dedent(program.meaning), names)
    return {data.name: names[data.name] for data in program.outputs}


def compare(program: Program, data: Data, actual: torch.Tensor, wanted: torch.Tensor) -> None:
    """Raise AssertionError if an output is not as expected."""
    wanted = wanted.broadcast_to(data.shape)
    if data.type in BITS or data.type == "i1":
        wanted = wanted.long() if data.type == "i1" else wrap(wanted.long(), data.type)
        actual = actual.view(torch.int64) if data.type == "u64" else actual.long()
        torch.testing.assert_close(actual, wanted, rtol=0, atol=0)
        return
    atol = program.rtol if program.atol is None else program.atol
    wanted = rounded(wanted.double(), data.type)
    torch.testing.assert_close(
        actual.double(), wanted, rtol=program.rtol, atol=atol, equal_nan=True
    )


def check(
    program: Program,
    module: ModuleType,
    engine: Engine,
    audit: bool = False,
    arch: str = "gfx942",
) -> None:
    """Compile for a target, execute and compare a program.

    Raises:
        AssertionError: If it faults or a value is wrong.
    """
    generator = torch.Generator().manual_seed(zlib.crc32(program.name.encode()))
    tensors = {d.name: d.make(generator) for d in (*program.inputs, *program.outputs)}
    wanted = expect(program, {name: value.clone() for name, value in tensors.items()})
    text, shared = compile_program(program, module, arch)
    kernel = engine.load(text, shared=shared)
    scalars = [value for kind, value in program.scalars.values() if kind != "constexpr"]
    values = [*tensors.values(), *scalars]
    block = (64 * program.warps,)
    result = launch(engine, kernel, program.grid, block, values, audit=audit)
    assert result.fault is None, result.fault.message
    for data in program.outputs:
        compare(program, data, tensors[data.name], wanted[data.name])


def failures(
    programs: Sequence[Program], module: ModuleType, engine: Engine, arch: str = "gfx942"
) -> list[str]:
    """Returns the failure of each faulty program, with its source."""
    problems = []
    for program in programs:
        try:
            check(program, module, engine, arch=arch)
        except Exception as error:
            problems.append(f"{program.name}: {type(error).__name__}: {error}\n{program.listing}")
    return problems
