"""Edits that have a program compute several rows, for any kernel that computes one.

Where rows are short, a program for each has too little to do. The edits give everything in the
kernel one more dimension: the row of a program becomes a column of rows, and what is reduced is
reduced row by row. Rows that the last program has too many are masked. A kernel that cannot be had
this way, such as one whose loop runs to a number that differs by row, is launched with one row a
program.
"""

from __future__ import annotations

FORM = "<<<<<<< SEARCH\n{}\n=======\n{}\n>>>>>>> REPLACE{}\n"
"""An edit: what is searched for, what it becomes, and " ALL" where it may occur any times."""
_HELPERS = '''import triton.language as tl


class _Rows(triton.KernelInterface):
    """Launches a kernel with several rows a program."""

    def __init__(self, kernel):
        self.kernel, self.arg_names, self.elements = kernel, kernel.arg_names, 4096

    def run(self, *args, grid, BLOCK, num_warps, **options):
        rows = max(1, min(self.elements // BLOCK, triton.next_power_of_2(grid[0] // 1024)))
        launch = {"BLOCK": BLOCK, "ROWS": rows, "TOTAL": grid[0]}
        warps = max(num_warps, rows * BLOCK // 512)
        programs = (triton.cdiv(grid[0], rows), *grid[1:])
        try:
            self.kernel.run(*args, grid=programs, num_warps=warps, **launch, **options)
        except triton.CompilationError:
            if rows == 1:
                raise
            self.elements = BLOCK
            self.run(*args, grid=grid, BLOCK=BLOCK, num_warps=num_warps, **options)


@triton.jit
def _row(ROWS: tl.constexpr):
    if ROWS == 1:
        return tl.program_id(0)
    else:
        return tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]


@triton.jit
def _inside(mask, ROWS: tl.constexpr, TOTAL: tl.constexpr):
    if TOTAL % ROWS == 0:
        return mask
    else:
        return (_row(ROWS) < TOTAL) & mask


@triton.jit
def _load(ROWS: tl.constexpr, TOTAL: tl.constexpr, at, mask=True, other=None):
    return tl.load(at, mask=_inside(mask, ROWS, TOTAL), other=other)


@triton.jit
def _store(ROWS: tl.constexpr, TOTAL: tl.constexpr, at, value, mask=True):
    at += tl.zeros([ROWS, 1], tl.int32)
    tl.store(at, value, mask=_inside(mask, ROWS, TOTAL))


@triton.jit
def _cumsum(x, axis, keep_dims):
    return tl.cumsum(x, axis=axis)'''
_EVERY = {
    "tl.program_id(0)": "_row(ROWS)",
    "tl.load(": "_load(ROWS, TOTAL,",
    "tl.store(": "_store(ROWS, TOTAL,",
    "tl.cumsum(": "_cumsum(",
    "axis=0)": "axis=1, keep_dims=True)",
    "[BLOCK]": "[ROWS, BLOCK]",
    " = 0.0\n": " = tl.zeros([ROWS, 1], tl.float32)\n",
}
_ONCE = {
    "tl.arange(0, BLOCK)": "tl.arange(0, BLOCK)[None, :]",
    "BLOCK: tl.constexpr": "BLOCK: tl.constexpr, ROWS: tl.constexpr, TOTAL: tl.constexpr",
    "@triton.jit": "@_Rows\n@triton.jit",
    "import triton.language as tl": _HELPERS,
}
ROWS = "".join(FORM.format(old, new, " ALL") for old, new in _EVERY.items()) + "".join(
    FORM.format(old, new, "") for old, new in _ONCE.items()
)
"""The edits. They need no name of the kernel's, and come after any other."""
