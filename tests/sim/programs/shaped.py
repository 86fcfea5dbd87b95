"""Programs of one reduction, scan, rearrangement, product or atomic operation each."""

from __future__ import annotations

from tests.sim.programs.program import BITS, LANGUAGE, TOLERANCE, Data, Program

WARPS = (1, 2, 4, 8)
TILES = ((16, 64), (64, 16), (8, 128), (32, 32), (1, 256), (128, 4))
LOAD = """
i = tl.arange(0, {0})[:, None]
j = tl.arange(0, {1})[None, :]
x = tl.load(xs + i * {1} + j)
"""
# name: (Triton, PyTorch); A is the axis.
REDUCTIONS = {
    "sum": ("tl.sum(x, axis=A)", "x.sum(A)"),
    "max": ("tl.max(x, axis=A)", "x.amax(A)"),
    "min": ("tl.min(x, axis=A)", "x.amin(A)"),
    "argmax": ("tl.argmax(x, axis=A)", "x.argmax(A)"),
    "argmin": ("tl.argmin(x, axis=A)", "x.argmin(A)"),
    "product": ("tl.reduce(x, A, times)", "x.prod(A)"),
}
INTEGER_REDUCTIONS = {
    "xor_sum": ("tl.xor_sum(x, axis=A)", "fold(x, A, torch.bitwise_xor)"),
    "or_sum": ("tl.reduce_or(x, A)", "fold(x, A, torch.bitwise_or)"),
}
SCANS = {
    "cumsum": ("tl.cumsum(x, axis=A)", "x.cumsum(A)"),
    "cumsum_back": ("tl.cumsum(x, axis=A, reverse=True)", "x.flip(A).cumsum(A).flip(A)"),
    "cumprod": ("tl.cumprod(x, axis=A)", "x.cumprod(A)"),
    "running_max": ("tl.associative_scan(x, A, larger)", "x.cummax(A).values"),
}
FOLD = """
def fold(x, axis, combine):
    parts = x.unbind(axis)
    total = parts[0]
    for part in parts[1:]:
        total = combine(total, part)
    return total
"""


def _values(name: str, kind: str, shape: tuple[int, ...]) -> Data:
    """Inputs whose sums and products stay in range."""
    if kind in BITS:
        return Data("xs", kind, shape, -1 if "prod" in name and kind[0] == "i" else 0, 3)
    if "prod" in name:
        return Data("xs", kind, shape, 0.9, 1.05)
    return Data("xs", kind, shape)


def reductions() -> list[Program]:
    """Each reduction and scan, by type, along both axes, over tiles and waves."""
    programs, number = [], 0
    kinds = ("fp32", "fp16", "bf16", "fp64", "i32", "i8", "i16", "i64", "u8", "u32")
    for kind in kinds:
        table = {**REDUCTIONS, **SCANS} | (INTEGER_REDUCTIONS if kind in BITS else {})
        for name, (triton, torch) in table.items():
            if name.startswith("arg") and kind not in ("fp32", "fp64"):
                continue  # equal values would make the position ambiguous
            axis, warps = number % 2, WARPS[number // 2 % 4]
            tile = TILES[number % len(TILES)]
            number += 1
            programs.append(_along(name, kind, triton, torch, axis, tile, warps))
    return programs


def _along(
    name: str, kind: str, triton: str, torch: str, axis: int, tile: tuple[int, int], warps: int
) -> Program:
    m, n = tile
    narrow = kind in BITS and BITS[kind] < 32
    result = ("i32" if kind[0] == "i" else "u32") if narrow else kind
    if name.startswith("arg"):
        result = "i32"
    shape: tuple[int, ...] = tile
    place = f"i * {n} + j"
    if name not in SCANS:
        shape = (n,) if axis == 0 else (m,)
        place = f"tl.arange(0, {shape[0]})"
    if narrow and name not in ("sum", "cumsum", "cumsum_back"):
        result = kind  # only sums are widened
    body = LOAD.format(m, n) + f"r = {triton.replace('A', str(axis))}\n"
    body += f"tl.store(out + {place}, r.to({LANGUAGE[result]}))\n"
    meaning = FOLD + f"x = xs\nout = {torch.replace('A', str(axis))}\n"
    wide = TOLERANCE[kind] * 4 if kind in TOLERANCE else 0
    return Program(
        f"{name}{axis}_{kind}_{m}x{n}_w{warps}",
        (_values(name, kind, tile),),
        (Data("out", result, shape, 0, 0),),
        body,
        meaning,
        warps=warps,
        rtol=wide,
        atol=4 * wide,
    )


# name: (Triton, PyTorch, rows and columns of the result); the tile is 16 by 64.
MOVES = {
    "transpose": ("tl.trans(x)", "x.T", (64, 16)),
    "flip0": ("tl.flip(x, 0)", "x.flip(0)", (16, 64)),
    "flip1": ("tl.flip(x, 1)", "x.flip(1)", (16, 64)),
    "reshape": ("tl.reshape(x, (32, 32))", "x.reshape(32, 32)", (32, 32)),
    "view": ("tl.reshape(tl.trans(x), (8, 128))", "x.T.reshape(8, 128)", (8, 128)),
    "sort": ("tl.sort(x)", "x.sort(1).values", (16, 64)),
    "sort_down": ("tl.sort(x, descending=True)", "x.sort(1, True).values", (16, 64)),
    "topk": ("tl.topk(x, 8)", "x.topk(8, 1).values", (16, 8)),
    "interleave": ("tl.interleave(x, x + x)", "torch.stack((x, 2 * x), 2).flatten(1)", (16, 128)),
    "join": (
        "tl.reshape(tl.join(x, -x), (16, 128))",
        "torch.stack((x, -x), 2).flatten(1)",
        (16, 128),
    ),
    "split": (
        "tl.join(*tl.split(tl.reshape(x, (16, 32, 2)))).trans(0, 2, 1).reshape((16, 64))",
        "x.reshape(16, 32, 2).transpose(1, 2).reshape(16, 64)",
        (16, 64),
    ),
    "permute": (
        "tl.reshape(tl.permute(tl.reshape(x, (4, 4, 64)), (1, 2, 0)), (16, 64))",
        "x.reshape(4, 4, 64).permute(1, 2, 0).reshape(16, 64)",
        (16, 64),
    ),
    "gather1": (
        "tl.gather(x, ((i * 7 + j * 3) % 64), 1)",
        "x.gather(1, (I * 7 + J * 3) % 64)",
        (16, 64),
    ),
    "gather0": (
        "tl.gather(x, ((i * 7 + j * 3) % 16), 0)",
        "x.gather(0, (I * 7 + J * 3) % 16)",
        (16, 64),
    ),
    "broadcast": (
        "tl.max(x, 1, keep_dims=True) + tl.zeros((16, 32), x.dtype)",
        "x.amax(1, True).expand(16, 32)",
        (16, 32),
    ),
    "cat": (
        "tl.reshape(tl.join(tl.ravel(x), tl.ravel(x + x)), (32, 64))",
        "torch.stack((x.ravel(), 2 * x.ravel()), 1).reshape(32, 64)",
        (32, 64),
    ),
}


def moves() -> list[Program]:
    """Each rearrangement, by type and number of waves."""
    programs = []
    for number, (name, (triton, torch, shape)) in enumerate(MOVES.items()):
        for offset, kind in enumerate(("fp32", "fp16", "i8", "i64")):
            if kind == "fp16" and name == "topk":
                continue
            body = LOAD.format(16, 64) + f"r = {triton}\n"
            body += f"k = tl.arange(0, {shape[0]})[:, None] * {shape[1]}\n"
            body += f"tl.store(out + k + tl.arange(0, {shape[1]})[None, :], r)\n"
            meaning = "I, J = torch.arange(16)[:, None], torch.arange(64)[None, :]\n"
            programs.append(
                Program(
                    f"{name}_{kind}",
                    (Data("xs", kind, (16, 64), -50, 50),),
                    (Data("out", kind, shape, 0, 0),),
                    body,
                    meaning + f"x = xs\nout = {torch}\n",
                    warps=WARPS[(number + offset) % 4],
                    rtol=0,
                    atol=0,
                )
            )
    return programs


def histograms() -> list[Program]:
    """Counts of small integers, with and without a mask."""
    programs = []
    for bins, warps in ((16, 1), (64, 4), (128, 8)):
        body = f"""
        i = tl.arange(0, 512)
        x = tl.load(xs + i)
        r = tl.histogram(x, {bins}, mask=i < 400)
        tl.store(out + tl.arange(0, {bins}), r)
        """
        programs.append(
            Program(
                f"histogram_{bins}",
                (Data("xs", "i32", (512,), 0, bins - 1),),
                (Data("out", "i32", (bins,), 0, 0),),
                body,
                f"out = torch.bincount(xs[:400], minlength={bins})\n",
                warps=warps,
            )
        )
    return programs
