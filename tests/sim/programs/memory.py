"""Programs of matrix products and of atomic operations."""

from __future__ import annotations

from tests.sim.programs.program import BITS, LANGUAGE, TOLERANCE, Data, Program

# (input type, result type, m, n, k, waves, extra arguments of tl.dot)
PRODUCTS = (
    ("fp16", "fp32", 16, 16, 16, 1, ""),
    ("fp16", "fp32", 32, 32, 32, 1, ""),
    ("fp16", "fp32", 64, 32, 64, 4, ""),
    ("fp16", "fp32", 16, 64, 128, 2, ""),
    ("fp16", "fp32", 128, 64, 32, 8, ""),
    ("fp16", "fp16", 32, 32, 16, 2, ", out_dtype=tl.float16"),
    ("bf16", "fp32", 16, 16, 32, 1, ""),
    ("bf16", "fp32", 32, 64, 16, 4, ""),
    ("bf16", "fp32", 64, 64, 64, 8, ""),
    ("bf16", "fp32", 128, 16, 32, 2, ""),
    ("fp32", "fp32", 16, 16, 16, 1, ", input_precision='ieee'"),
    ("fp32", "fp32", 32, 32, 32, 2, ", input_precision='ieee'"),
    ("fp32", "fp32", 64, 32, 16, 4, ", input_precision='ieee'"),
    ("fp32", "fp32", 32, 32, 32, 4, ", input_precision='tf32'"),
    ("fp32", "fp32", 16, 64, 32, 1, ", input_precision='tf32'"),
    ("fp32", "fp32", 32, 32, 32, 2, ", input_precision='bf16x3'"),
    ("fp32", "fp32", 32, 32, 16, 4, ", input_precision='bf16x6'"),
    ("fp64", "fp64", 16, 16, 16, 1, ", out_dtype=tl.float64"),
    ("fp64", "fp64", 32, 32, 16, 4, ", out_dtype=tl.float64"),
    ("i8", "i32", 16, 16, 32, 1, ", out_dtype=tl.int32"),
    ("i8", "i32", 32, 64, 64, 4, ", out_dtype=tl.int32"),
    ("i8", "i32", 64, 64, 32, 8, ", out_dtype=tl.int32"),
    ("fp8e4b8", "fp32", 16, 16, 32, 1, ""),
    ("fp8e4b8", "fp32", 64, 32, 64, 4, ""),
    ("fp8e5b16", "fp32", 32, 32, 32, 2, ""),
    ("fp8e5b16", "fp32", 16, 128, 64, 4, ""),
    ("fp8e4nv", "fp32", 32, 32, 32, 4, ""),
    ("fp8e5", "fp32", 32, 32, 32, 1, ""),
)


def products() -> list[Program]:
    """tl.dot, plain, with a transposed operand and onto an accumulator."""
    programs = []
    for number, (kind, result, m, n, k, warps, extra) in enumerate(PRODUCTS):
        turned, added = number % 3 == 1, number % 2 == 1
        start = f"tl.load(cs + i * {n} + j)" if added else "None"
        body = f"""
        i = tl.arange(0, {m})[:, None]
        j = tl.arange(0, {n})[None, :]
        p = tl.arange(0, {k})
        x = tl.load(xs + i * {k} + p[None, :])
        y = {"tl.trans(" if turned else ""}tl.load(ys + {_second(turned, n, k)}){")" * turned}
        r = tl.dot(x, y, {start}{extra})
        tl.store(out + i * {n} + j, r)
        """
        meaning = f"y = {'ys.T' if turned else 'ys'}\nout = xs @ y" + " + cs" * added
        low = -100 if kind in BITS else -2
        programs.append(
            Program(
                f"dot{number}_{kind}_{m}x{n}x{k}_w{warps}",
                (
                    Data("xs", kind, (m, k), low, -low),
                    Data("ys", kind, (n, k) if turned else (k, n), low, -low),
                    Data("cs", result, (m, n), low, -low),
                ),
                (Data("out", result, (m, n), 0, 0),),
                body,
                meaning,
                warps=warps,
                rtol=_product_tolerance(kind, result, extra),
                atol=4 * _product_tolerance(kind, result, extra),
            )
        )
    return programs


def _second(turned: bool, n: int, k: int) -> str:
    """Where the second factor's elements lie."""
    if turned:
        return f"tl.arange(0, {n})[:, None] * {k} + p[None, :]"
    return f"p[:, None] * {n} + j"


def _product_tolerance(kind: str, result: str, extra: str) -> float:
    if "tf32" in extra:
        return 4e-3
    if result == "fp16" or "bf16x3" in extra:
        return TOLERANCE["fp16"]
    return 0 if kind in BITS else TOLERANCE["fp64" if kind == "fp64" else "fp32"]


# operation: (PyTorch meaning over the addressed cells, first contents)
ATOMICS = {
    "add": ("out.index_add(0, at, xs)", 1),
    "max": ("out.index_reduce(0, at, xs, 'amax')", 1),
    "min": ("out.index_reduce(0, at, xs, 'amin')", 1),
    "and": ("combine(out, at, xs, torch.bitwise_and)", 127),
    "or": ("combine(out, at, xs, torch.bitwise_or)", 0),
    "xor": ("combine(out, at, xs, torch.bitwise_xor)", 0),
}
COMBINE = """
def combine(cells, at, values, operation):
    cells = cells.clone()
    for place, value in zip(at.tolist(), values):
        cells[place] = operation(cells[place], value)
    return cells
"""


def atomics() -> list[Program]:
    """Each atomic operation, by type, on cells that several lanes share."""
    programs = []
    for kind in ("fp32", "fp64", "fp16", "bf16", "i32", "i64", "u32"):
        for number, (name, (torch, first)) in enumerate(ATOMICS.items()):
            narrow = kind in ("fp16", "bf16")
            if (kind not in BITS and name in ("and", "or", "xor")) or (narrow and name != "add"):
                continue
            # Triton 3.9 combines equal cells in a wave by unsigned minimum and maximum, which is
            # wrong for signed values: give every lane of these its own cell.
            cells = 512 if kind in ("i32", "i64") and name in ("max", "min") else 16
            sem = ("'relaxed'", "'acq_rel'", "'release'")[number % 3]
            body = f"""
            i = tl.program_id(0) * 128 + tl.arange(0, 128)
            x = tl.load(xs + i, mask=i < 250, other=0)
            tl.atomic_{name}(out + (i * 5) % {cells}, x, mask=i < 250, sem={sem})
            """
            meaning = (
                f"CELLS = {cells}" + COMBINE + "at = torch.arange(250) * 5 % CELLS\nout = " + torch
            )
            values = Data("xs", kind, (250,), 0 if kind[0] == "u" else -100, 100)
            if narrow:
                values = Data("xs", kind, (250,), -1, 1)
            programs.append(
                Program(
                    f"atomic_{name}_{kind}",
                    (values,),
                    (Data("out", kind, (cells,), first, first),),
                    body,
                    meaning,
                    grid=(2,),
                    warps=(1, 2, 4)[number % 3],
                    rtol=10 * TOLERANCE.get(kind, 0),
                )
            )
    return [*programs, *_exchanges()]


def _exchanges() -> list[Program]:
    """Exchange and compare-and-swap: results that do not depend on the order."""
    programs = []
    for kind in ("i32", "i64", "fp32"):
        body = f"""
        i = tl.arange(0, 256)
        x = tl.load(xs + i)
        old = tl.atomic_xchg(cells + i, x)
        tl.store(out + i, old)
        was = tl.atomic_cas(flags + i, (i % 2).to({LANGUAGE[kind]}), x)
        tl.store(seen + i, was)
        """
        meaning = """
        out, cells, seen = cells, xs, flags
        flags = torch.where(torch.arange(256) % 2 == flags, xs, flags)
        """
        data = [Data(name, kind, (256,), 0, 3) for name in ("cells", "flags")]
        data += [Data(name, kind, (256,), 0, 0) for name in ("out", "seen")]
        if kind == "fp32":
            data[1] = Data("flags", kind, (256,), 1, 1)
        inputs = (Data("xs", kind, (256,), -100, 100),)
        programs.append(Program(f"exchange_{kind}", inputs, tuple(data), body, meaning))
    return programs
