"""Seeded random kernels: chains of pointwise operations, reductions, scans and rearrangements."""

from __future__ import annotations

import random
from dataclasses import dataclass

from tests.sim.programs.program import TOLERANCE, Data, Program

TILES = ((16, 64), (32, 32), (8, 128), (64, 16), (16, 16), (4, 256), (1, 512))

# Each keeps values of size up to 4 near that size, and is continuous: rounding stays rounding.
# a, b, c are float tiles, k an integer tile; M and N the tile's sides.
UNARY = (
    ("tl.exp(-tl.abs({a}))", "torch.exp(-{a}.abs())"),
    ("tl.exp2({a} * 0.25)", "torch.exp2({a} * 0.25)"),
    ("tl.log(tl.abs({a}) + 0.5)", "torch.log({a}.abs() + 0.5)"),
    ("tl.log2(tl.abs({a}) + 1.0)", "torch.log2({a}.abs() + 1)"),
    ("tl.sin({a})", "torch.sin({a})"),
    ("tl.cos({a})", "torch.cos({a})"),
    ("tl.sqrt(tl.abs({a}) + 0.25)", "torch.sqrt({a}.abs() + 0.25)"),
    ("tl.rsqrt({a} * {a} + 0.5)", "torch.rsqrt({a} * {a} + 0.5)"),
    ("tl.erf({a})", "torch.erf({a})"),
    ("libdevice.tanh({a})", "torch.tanh({a})"),
    ("libdevice.atan({a})", "torch.atan({a})"),
    ("tl.sigmoid({a})", "torch.sigmoid({a})"),
    ("tl.clamp({a}, -1.0, 1.5)", "{a}.clamp(-1.0, 1.5)"),
    ("tl.maximum({a}, 0.0)", "{a}.clamp(min=0)"),
    ("(0.75 - {a} * 0.5)", "(0.75 - {a} * 0.5)"),
    ("1.0 / (1.0 + {a} * {a})", "1 / (1 + {a} * {a})"),
)
BINARY = (
    ("({a} + {b}) * 0.5", "({a} + {b}) * 0.5"),
    ("{a} - {b} * 0.5", "{a} - {b} * 0.5"),
    ("{a} * {b} * 0.25", "{a} * {b} * 0.25"),
    ("{a} / (tl.abs({b}) + 1.0)", "{a} / ({b}.abs() + 1)"),
    ("tl.maximum({a}, {b})", "torch.maximum({a}, {b})"),
    ("tl.minimum({a}, {b})", "torch.minimum({a}, {b})"),
    ("tl.where({k} % 3 == 1, {a}, {b})", "torch.where({k}.fmod(3) == 1, {a}, {b})"),
    (
        "tl.where(({k} > 7) | ({k} < -9), {a}, -{b})",
        "torch.where(({k} > 7) | ({k} < -9), {a}, -{b})",
    ),
    ("tl.fma({a}, {b}, {c}) * 0.2", "({a} * {b} + {c}) * 0.2"),
    ("{a} + ({k} % 5).to(tl.float32) * 0.25", "{a} + {k}.fmod(5).double() * 0.25"),
)
ALONG = (
    ("tl.sum({a}, {x}, keep_dims=True) / {L} + {b}", "{a}.sum({x}, True) / {L} + {b}"),
    ("{b} - tl.max({a}, {x}, keep_dims=True) * 0.5", "{b} - {a}.amax({x}, True) * 0.5"),
    ("tl.min({a}, {x})[{s}] + {b} * 0.5", "{a}.amin({x}, True) + {b} * 0.5"),
    ("tl.cumsum({a}, {x}) / {L}", "{a}.cumsum({x}) / {L}"),
    ("tl.cumprod({a} * 0.05 + 0.9, {x})", "({a} * 0.05 + 0.9).cumprod({x})"),
    ("tl.associative_scan({a}, {x}, larger)", "{a}.cummax({x}).values"),
    (
        "tl.associative_scan({a}, {x}, larger, reverse=True)",
        "{a}.flip({x}).cummax({x}).values.flip({x})",
    ),
    ("tl.flip({a}, {x}) * 0.5 + {b} * 0.5", "{a}.flip({x}) * 0.5 + {b} * 0.5"),
    (
        "tl.reshape(tl.trans({a}), (M, N)) + {b} * 0.5",
        "{a}.T.reshape(M, N) + {b} * 0.5",
    ),
    ("tl.sort({a}, 1) * 0.5 + {b}", "{a}.sort(1).values * 0.5 + {b}"),
    (
        "tl.gather({a}, tl.abs({k} * 3 + i) % {L}, {x}) + {b} * 0.25",
        "{a}.gather({x}, (wrap({k} * 3 + I, 'i32')).abs() % {L}) + {b} * 0.25",
    ),
    ("tl.softmax({a}, 1) + {b} * 0.5", "torch.softmax({a}, 1) + {b} * 0.5"),
    ("tl.sum(tl.join({a}, {b}), 2) * 0.5", "({a} + {b}) * 0.5"),
)
# Whole numbers wrap at 32 bits in both.
WHOLE = (
    ("{k} * 7 - {l}", "{k} * 7 - {l}"),
    ("({k} ^ ({l} << 3)) & 1023", "({k} ^ ({l} << 3)) & 1023"),
    ("({k} >> 2) | ({l} & 21)", "({k} >> 2) | ({l} & 21)"),
    ("{k} // (({l} & 7) + 1)", "divide({k}, ({l} & 7) + 1)"),
    ("{k} % (({l} & 15) + 3)", "{k}.fmod(({l} & 15) + 3)"),
    ("tl.minimum({k}, {l}) + tl.maximum({k}, 5)", "{k}.minimum({l}) + {k}.clamp(min=5)"),
    ("tl.where({k} > {l}, {k} - {l}, ~{l})", "torch.where({k} > {l}, {k} - {l}, ~{l})"),
    ("tl.xor_sum({k}, 1)[:, None] + {l}", "fold({k}, 1) + {l}"),
    ("tl.cumsum({k}, 1)", "{k}.cumsum(1)"),
    ("tl.sum({k}, 0)[None, :] - {l}", "{k}.sum(0, True) - {l}"),
    ("tl.max({k}, 1, keep_dims=True) - {l} + j", "{k}.amax(1, True) - {l} + J"),
    ("tl.abs({k}) + ({k} * {k} >> 5)", "{k}.abs() + (wrap({k} * {k}, 'i32') >> 5)"),
)
CASTS = (("fp16", "tl.float16"), ("bf16", "tl.bfloat16"))
FOLD = """
def fold(x, axis):
    total = 0
    for part in x.split(1, axis):
        total = total ^ part
    return total
"""


@dataclass
class Lines:
    """Two texts that grow together."""

    kernel: list[str]
    meaning: list[str]

    def add(self, name: str, forms: tuple[str, str], wrapped: bool = False, **names: str) -> None:
        """Bind a name to an expression in both."""
        first, second = (form.format(**names) for form in forms)
        self.kernel.append(f"{name} = {first}")
        self.meaning.append(f"{name} = wrap({second}, 'i32')" if wrapped else f"{name} = {second}")


class Generator:
    """Writes one random program."""

    def __init__(self, seed: int) -> None:
        """The same seed gives the same program."""
        self.seed = seed
        self.random = random.Random(seed)
        self.tile = self.random.choice(TILES)
        self.floats = ["a0", "a1"]
        self.whole = ["k0", "k1"]
        self.narrowest = "fp32"
        self.lines = Lines([], [])
        self.count = 0

    def program(self) -> Program:
        """The program."""
        choose = self.random
        m, n = self.tile
        rows, columns = m - choose.randrange(m // 2 + 1), n - choose.randrange(n // 2 + 1)
        kinds = [choose.choice(("fp32", "fp32", "fp16", "bf16")) for _ in range(2)]
        for _ in range(choose.randint(2, 6)):
            choose.choice(
                (self.unary, self.binary, self.binary, self.along, self.integer, self.cast)
            )()
        if choose.random() < 0.35:
            self.loop()
        shape = (2 * rows, columns)
        inputs = (
            *(Data(f"x{i}", kind, shape) for i, kind in enumerate(kinds)),
            Data("y0", "i32", shape, -50, 50),
            Data("y1", choose.choice(("i32", "i8", "i16")), shape, -20, 20),
        )
        outputs = (Data("out", "fp32", shape, 0, 0), Data("count", "i32", shape, 0, 0))
        return Program(
            f"fused_{self.seed}",
            inputs,
            outputs,
            self._kernel(rows, columns),
            self._meaning(rows, columns),
            scalars={"steps": ("i32", choose.randint(1, 4)), "factor": ("fp32", 0.375)},
            grid=(2,),
            warps=choose.choice((1, 2, 4, 8)),
            stages=choose.randint(1, 3),
            rtol=TOLERANCE[self.narrowest] * (4 if self.narrowest == "fp32" else 2),
            aligned=choose.random() < 0.7,
        )

    # ---- steps
    def _bind(self, forms: tuple[str, str], **names: str) -> None:
        self.count += 1
        name = f"a{self.count + 1}"
        self.lines.add(name, forms, **names)
        self.floats.append(name)

    def _names(self) -> dict[str, str]:
        choose = self.random
        names = {key: choose.choice(self.floats[-3:]) for key in "bc"}
        return names | {"a": self.floats[-1], "k": choose.choice(self.whole)}

    def unary(self) -> None:
        self._bind(self.random.choice(UNARY), **self._names())

    def binary(self) -> None:
        self._bind(self.random.choice(BINARY), **self._names())

    def along(self) -> None:
        axis = self.random.randrange(2)
        length = self.tile[axis]
        where = ("None, :", ":, None")[axis]
        names = self._names() | {"x": str(axis), "s": where, "L": str(length)}
        self._bind(self.random.choice(ALONG), **names)

    def cast(self) -> None:
        kind, text = self.random.choice(CASTS)
        self._bind(
            (f"{{a}}.to({text}).to(tl.float32)", f"rounded({{a}}, '{kind}')"), **self._names()
        )
        if TOLERANCE[kind] > TOLERANCE[self.narrowest]:
            self.narrowest = kind

    def integer(self) -> None:
        self.count += 1
        name = f"k{self.count + 1}"
        names = {"k": self.whole[-1], "l": self.random.choice(self.whole)}
        self.lines.add(name, self.random.choice(WHOLE), wrapped=True, **names)
        self.whole.append(name)

    def loop(self) -> None:
        """A loop over a scalar argument, or one that is unrolled."""
        a, b = self.floats[-1], self.random.choice(self.floats)
        unrolled = self.random.random() < 0.4
        bound = "tl.static_range(3)" if unrolled else "range(steps)"
        self.lines.kernel += [
            f"r = {a}",
            f"for step in {bound}:",
            f"    r = r * factor + tl.sin({b} + step)",
        ]
        self.lines.meaning += [
            f"r = {a}",
            f"for step in range({3 if unrolled else 'steps'}):",
            f"    r = r * factor + torch.sin({b} + step)",
        ]
        self.floats.append("r")

    # ---- texts
    def _kernel(self, rows: int, columns: int) -> str:
        m, n = self.tile
        lines = [
            f"M: tl.constexpr = {m}",
            f"N: tl.constexpr = {n}",
            "i = tl.arange(0, M)[:, None]",
            "j = tl.arange(0, N)[None, :]",
            f"at = (tl.program_id(0) * {rows} + i) * {columns} + j",
            f"mask = (i < {rows}) & (j < {columns})",
        ]
        for name, source in (("a0", "x0"), ("a1", "x1")):
            lines.append(f"{name} = tl.load({source} + at, mask=mask, other=0.0).to(tl.float32)")
        for name, source in (("k0", "y0"), ("k1", "y1")):
            lines.append(f"{name} = tl.load({source} + at, mask=mask, other=0).to(tl.int32)")
        lines += self.lines.kernel
        lines.append(f"tl.store(out + at, {self.floats[-1]}, mask=mask)")
        lines.append(f"tl.store(count + at, {self.whole[-1]}, mask=mask)")
        return "\n".join(lines)

    def _meaning(self, rows: int, columns: int) -> str:
        m, n = self.tile
        steps = "\n".join(f"    {line}" for line in self.lines.meaning)
        return f"""{FOLD}
def tile(value):
    padded = torch.zeros(M, N, dtype=value.dtype)
    padded[:{rows}, :{columns}] = value
    return padded

def part(a0, a1, k0, k1):
{steps}
    return {self.floats[-1]}[:{rows}, :{columns}], {self.whole[-1]}[:{rows}, :{columns}]

M, N = {m}, {n}
I, J = torch.arange(M)[:, None], torch.arange(N)[None, :]
parts = [part(*map(tile, p)) for p in zip(*(v.split({rows}) for v in (x0, x1, y0, y1)))]
out, count = (torch.cat(p) for p in zip(*parts))
"""


def fused_programs(count: int, first: int = 0) -> list[Program]:
    """Programs of consecutive seeds."""
    return [Generator(seed).program() for seed in range(first, first + count)]
