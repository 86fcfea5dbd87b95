"""Programs of one pointwise operation each, for every type it exists for."""

from __future__ import annotations

from tests.sim.programs.program import BITS, LANGUAGE, TOLERANCE, Data, Program

SIZE = 256
LOAD = "i = tl.program_id(0) * 256 + tl.arange(0, 256)\n"

# name: (Triton, PyTorch, lowest, highest argument)
FLOAT_MATH = {
    "exp": ("tl.exp(x)", "torch.exp(x)", -4, 4),
    "exp2": ("tl.exp2(x)", "torch.exp2(x)", -4, 4),
    "log": ("tl.log(x)", "torch.log(x)", 0.1, 4),
    "log2": ("tl.log2(x)", "torch.log2(x)", 0.1, 4),
    "sin": ("tl.sin(x)", "torch.sin(x)", -4, 4),
    "cos": ("tl.cos(x)", "torch.cos(x)", -4, 4),
    "sqrt": ("tl.sqrt(x)", "torch.sqrt(x)", 0, 4),
    "sqrt_rn": ("tl.sqrt_rn(x)", "torch.sqrt(x)", 0, 4),
    "rsqrt": ("tl.rsqrt(x)", "torch.rsqrt(x)", 0.1, 4),
    "erf": ("tl.erf(x)", "torch.erf(x)", -4, 4),
    "floor": ("tl.floor(x)", "torch.floor(x)", -4, 4),
    "ceil": ("tl.ceil(x)", "torch.ceil(x)", -4, 4),
    "sigmoid": ("tl.sigmoid(x)", "torch.sigmoid(x)", -4, 4),
    "tanh": ("libdevice.tanh(x)", "torch.tanh(x)", -4, 4),
    "tan": ("libdevice.tan(x)", "torch.tan(x)", -1, 1),
    "asin": ("libdevice.asin(x)", "torch.asin(x)", -1, 1),
    "acos": ("libdevice.acos(x)", "torch.acos(x)", -1, 1),
    "atan": ("libdevice.atan(x)", "torch.atan(x)", -4, 4),
    "sinh": ("libdevice.sinh(x)", "torch.sinh(x)", -4, 4),
    "cosh": ("libdevice.cosh(x)", "torch.cosh(x)", -4, 4),
    "asinh": ("libdevice.asinh(x)", "torch.asinh(x)", -4, 4),
    "acosh": ("libdevice.acosh(x)", "torch.acosh(x)", 1, 4),
    "atanh": ("libdevice.atanh(x)", "torch.atanh(x)", -0.9, 0.9),
    "log1p": ("libdevice.log1p(x)", "torch.log1p(x)", -0.5, 4),
    "log10": ("libdevice.log10(x)", "torch.log10(x)", 0.1, 4),
    "expm1": ("libdevice.expm1(x)", "torch.expm1(x)", -4, 4),
    "erfc": ("libdevice.erfc(x)", "torch.erfc(x)", -2, 2),
    "erfinv": ("libdevice.erfinv(x)", "torch.erfinv(x)", -0.9, 0.9),
    "lgamma": ("libdevice.lgamma(x)", "torch.lgamma(x)", 0.5, 4),
    "i0": ("libdevice.cyl_bessel_i0(x)", "torch.special.i0(x)", -2, 2),
    "j0": ("libdevice.j0(x)", "torch.special.bessel_j0(x)", -4, 4),
    "y1": ("libdevice.y1(x)", "torch.special.bessel_y1(x)", 0.5, 4),
    "trunc": ("libdevice.trunc(x)", "torch.trunc(x)", -4, 4),
    "rint": ("libdevice.rint(x * 2)", "torch.round(x * 2)", -4, 4),
    "signbit": ("tl.where(libdevice.signbit(x) != 0, 1.0, 2.0)", "2.0 - (x < 0).double()", -4, 4),
    "ldexp": ("libdevice.ldexp(x, 3)", "torch.ldexp(x, torch.tensor(3))", -4, 4),
}
FLOAT_BINARY = {
    "add": ("x + y", "x + y"),
    "sub": ("x - y", "x - y"),
    "mul": ("x * y", "x * y"),
    "div": ("x / (y * y + 1.0)", "x / (y * y + 1.0)"),
    "maximum": ("tl.maximum(x, y)", "torch.maximum(x, y)"),
    "minimum": ("tl.minimum(x, y)", "torch.minimum(x, y)"),
    "where": ("tl.where(x > y, x, -y)", "torch.where(x > y, x, -y)"),
    "clamp": ("tl.clamp(x, -1.0, 1.5)", "x.clamp(-1.0, 1.5)"),
    "abs": ("tl.abs(x) - y", "x.abs() - y"),
    "fma": ("tl.fma(x, y, x)", "x * y + x"),
    "compare": ("tl.where((x < y) | (x == 1.0), 1.0, 0.0)", "((x < y) | (x == 1)).double()"),
    "scaled": ("tl.maximum(x * 0.5 + y * 2.0, 0.0)", "(x * 0.5 + y * 2).clamp(min=0)"),
}
FLOAT_TWO = {
    "pow": ("libdevice.pow(tl.abs(x) + 0.5, y)", "(x.abs() + 0.5) ** y"),
    "atan2": ("libdevice.atan2(x, y)", "torch.atan2(x, y)"),
    "fmod": ("libdevice.fmod(x, tl.abs(y) + 1.0)", "torch.fmod(x, y.abs() + 1)"),
    "hypot": ("libdevice.hypot(x, y)", "torch.hypot(x, y)"),
    "copysign": ("libdevice.copysign(x, y)", "torch.copysign(x, y)"),
    "div_rn": ("tl.div_rn(x, y + 8.0)", "x / (y + 8)"),
}
INTEGER = {
    "add": ("x + y", "x + y"),
    "sub": ("x - y", "x - y"),
    "mul": ("x * y", "x * y"),
    "divide": ("x // y + (x * 3) // 7", "divide(x, y) + divide(wrap(x * 3, T), 7)"),
    "modulo": ("x % y - x % 5", "torch.fmod(x, y) - torch.fmod(x, 5)"),
    "shift": ("(x << (y & 3)) ^ (x >> (y & 7))", "(x << (y & 3)) ^ (x >> (y & 7))"),
    "bits": ("(x & y) | (~x ^ (y | 5))", "(x & y) | (~x ^ (y | 5))"),
    "limits": ("tl.minimum(x, y) * 2 - tl.maximum(x, 3)", "x.minimum(y) * 2 - x.clamp(min=3)"),
    "compare": (
        "tl.where((x > y) & (x != 4), x, y) + (x <= y)",
        "torch.where((x > y) & (x != 4), x, y) + (x <= y).long()",
    ),
}


def float_programs() -> list[Program]:
    """Mathematical functions in fp32 and fp64, arithmetic in every float type."""
    programs = []
    for name, (triton, torch, low, high) in FLOAT_MATH.items():
        for kind in ("fp32", "fp64"):
            if (name, kind) == ("sqrt_rn", "fp64"):
                continue
            programs.append(one(name, kind, triton, torch, low, high))
    for kind in ("fp32", "fp16", "bf16", "fp64"):
        for name, (triton, torch) in FLOAT_BINARY.items():
            programs.append(one(name, kind, triton, torch, -4, 4, two=True))
    for name, (triton, torch) in FLOAT_TWO.items():
        for kind in ("fp32", "fp64"):
            if (name, kind) != ("div_rn", "fp64"):
                programs.append(one(name, kind, triton, torch, -4, 4, two=True))
    return programs


def one(
    name: str, kind: str, triton: str, torch: str, low: float, high: float, two: bool = False
) -> Program:
    """A program that stores one expression of x (and y)."""
    shape = (2 * SIZE - 17,)
    inputs = [Data("xs", kind, shape, low, high)]
    inputs += [Data("ys", kind, shape, low, high)] if two else []
    body = LOAD + f"m = i < {shape[0]}\nx = tl.load(xs + i, mask=m, other=1.0)\n"
    body += "y = tl.load(ys + i, mask=m, other=1.0)\n" if two else ""
    body += f"tl.store(out + i, ({triton}).to({LANGUAGE[kind]}), mask=m)\n"
    meaning = ("x, y = xs, ys\n" if two else "x = xs\n") + f"out = {torch}\n"
    precise = 5e-10 if kind == "fp64" and "libdevice" in triton else TOLERANCE[kind]
    return Program(
        f"{name}_{kind}",
        tuple(inputs),
        (Data("out", kind, shape, 0, 0),),
        body,
        meaning,
        grid=(2,),
        warps=4 if kind == "fp32" else 2,
        rtol=precise,
    )


def integer_programs() -> list[Program]:
    """Integer arithmetic for every width and sign."""
    programs = []
    for kind in BITS:
        if kind == "u64":
            continue
        for name, (triton, torch) in INTEGER.items():
            top = min(2 ** (BITS[kind] - 1) - 1, 2**40)
            low = -top - 1 if kind[0] == "i" else 0
            xs = Data("xs", kind, (SIZE,), low, top)
            ys = Data("ys", kind, (SIZE,), 1, min(top, 1000))
            body = LOAD + "x = tl.load(xs + i)\ny = tl.load(ys + i)\n"
            body += f"tl.store(out + i, ({triton}).to({LANGUAGE[kind]}))\n"
            meaning = f"T = {kind!r}\nx, y = xs, ys\nout = {torch}\n"
            outputs = (Data("out", kind, (SIZE,), 0, 0),)
            programs.append(Program(f"{name}_{kind}", (xs, ys), outputs, body, meaning, warps=1))
    return programs


CASTS = ("fp64", "fp32", "fp16", "bf16", "i8", "i16", "i32", "i64", "u8", "u16", "u32")


def cast_programs() -> list[Program]:
    """Each type converted to all the others."""
    programs = []
    for kind in (*CASTS, "fp8e4b8", "fp8e5b16", "fp8e4nv", "fp8e5"):
        narrow = kind.startswith("fp8")
        targets = [t for t in CASTS if t != kind]
        if narrow:
            targets = ["fp32", "fp16", "bf16"]
        elif kind in ("fp32", "fp16", "bf16"):
            targets += ["fp8e4b8", "fp8e5b16", "fp8e4nv", "fp8e5"]
        # Beyond the range of the target a float's conversion is not defined.
        signed = narrow or kind[0] == "i"
        xs = Data("xs", kind, (SIZE,), -100 if signed else 0, 100)
        body, meaning = LOAD + "x = tl.load(xs + i)\n", ""
        for target in targets:
            body += f"tl.store({target} + i, x.to({LANGUAGE[target]}))\n"
            meaning += f"{target} = xs\n"
        outputs = tuple(Data(target, target, (SIZE,), 0, 0) for target in targets)
        programs.append(Program(f"cast_{kind}", (xs,), outputs, body, meaning, rtol=0, atol=0))
    return programs


def pointwise_programs() -> list[Program]:
    """All of them."""
    return [*float_programs(), *integer_programs(), *cast_programs()]
