"""Rewrites: edits that are the same for every kernel.

They do not depend on names in the kernel and can be combined, in this order:

- `shaped`: specialises the kernel for its inputs. A block is no wider than a row of the first
  tensor and has at most one warp per 512 elements. Sizes and strides become constants.
- `rows`: a program computes several rows if rows are short and numerous. Everything in the kernel
  gets one more dimension: the row index becomes a column of row indices, reductions run along each
  row, and surplus rows of the last program are masked. If a program has one row, it compiles to
  the code without the rewrite. So does a kernel that does not compile with several rows, such as
  one whose loop bound differs between rows.
"""

from __future__ import annotations

FORM = "<<<<<<< SEARCH\n{}\n=======\n{}\n>>>>>>> REPLACE{}\n"
"""Format of an edit: the text to find, its replacement, and " ALL" to replace all occurrences."""


def _once(changes: dict[str, str]) -> str:
    return "".join(FORM.format(old, new, "") for old, new in changes.items())


def _all(changes: dict[str, str]) -> str:
    return "".join(FORM.format(old, new, " ALL") for old, new in changes.items())


_FITTED = {
    "BLOCK": 'min(args["BLOCK"], triton.next_power_of_2([*args.values()][0].shape[-1]))',
    "num_warps": 'max(1, min(args["num_warps"], args["BLOCK"] // 512))',
}
_HEURISTICS = ", ".join(f'"{name}": lambda args: {value}' for name, value in _FITTED.items())
_SHAPED = _once(
    {
        "@triton.jit": f"@triton.heuristics({{{_HEURISTICS}}})\n@triton.jit",
        "](": "](*(tl.constexpr(a) if type(a) is int else a for a in (",
        " BLOCK=": " )), BLOCK=",
    }
)
_CONSTANTS = ("BLOCK", "ROWS", "TOTAL", "AXIS")
_HELPERS = '''import triton.language as tl


class _Rows(triton.KernelInterface):
    """Launches a kernel with several rows a program."""

    def __init__(self, kernel):
        self.kernel, self.arg_names, self.elements = kernel, kernel.arg_names, 2048

    def run(self, *args, grid, BLOCK, num_warps=4, **options):
        rows = max(1, min(self.elements // BLOCK, triton.next_power_of_2(grid[0] // 1024)))
        launch = {"BLOCK": BLOCK, "ROWS": rows, "AXIS": int(rows > 1)}
        launch["TOTAL"] = grid[0] % rows and grid[0]
        warps = max(num_warps, rows * BLOCK // 512) if rows > 1 else num_warps
        programs = (triton.cdiv(grid[0], rows), *grid[1:])
        try:
            self.kernel.run(*args, grid=programs, num_warps=warps, **launch, **options)
        except triton.CompilationError:
            if rows == 1:
                raise
            self.elements = 0
            self.run(*args, grid=grid, BLOCK=BLOCK, num_warps=num_warps, **options)


@triton.jit
def _row(ROWS: tl.constexpr):
    if ROWS == 1:
        return tl.program_id(0)
    else:
        return tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]


@triton.jit
def _lane(ROWS: tl.constexpr, BLOCK: tl.constexpr):
    if ROWS == 1:
        return tl.arange(0, BLOCK)
    else:
        return tl.arange(0, BLOCK)[None, :]


@triton.jit
def _inside(mask, ROWS: tl.constexpr, TOTAL: tl.constexpr):
    if mask is None:
        return _row(ROWS) < TOTAL
    else:
        return (_row(ROWS) < TOTAL) & mask


@triton.jit
def _load(ROWS: tl.constexpr, TOTAL: tl.constexpr, at, mask=None, other=None):
    if TOTAL == 0:  # every program has all its rows
        return tl.load(at, mask=mask, other=other)
    else:
        return tl.load(at, mask=_inside(mask, ROWS, TOTAL), other=other)


@triton.jit
def _store(ROWS: tl.constexpr, TOTAL: tl.constexpr, at, value, mask=None):
    if ROWS > 1:
        at += tl.zeros([ROWS, 1], tl.int32)
    if TOTAL == 0:
        tl.store(at, value, mask=mask)
    else:
        tl.store(at, value, mask=_inside(mask, ROWS, TOTAL))


@triton.jit
def _cumsum(x, axis, keep_dims):
    return tl.cumsum(x, axis=axis)'''
_ROWS = _once({"@triton.jit": "@_Rows\n@triton.jit"}) + _all(
    {
        "tl.program_id(0)": "_row(ROWS)",
        "tl.arange(0, BLOCK)": "_lane(ROWS, BLOCK)",
        "tl.load(": "_load(ROWS, TOTAL,",
        "tl.store(": "_store(ROWS, TOTAL,",
        "tl.cumsum(": "_cumsum(",
        "axis=0)": "axis=AXIS, keep_dims=AXIS == 1)",
        "[BLOCK]": "[BLOCK] if ROWS == 1 else [ROWS, BLOCK]",
        " = 0.0\n": " = 0.0 if ROWS == 1 else tl.zeros([ROWS, 1], tl.float32)\n",
        "BLOCK: tl.constexpr": ", ".join(f"{name}: tl.constexpr" for name in _CONSTANTS),
        "import triton.language as tl": _HELPERS,
    }
)
REWRITES = {"shaped": _SHAPED, "rows": _ROWS}
"""The rewrites by name, in the order in which they are applied."""
