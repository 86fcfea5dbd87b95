"""The operator family of a problem, derived from the PyTorch operators that its reference runs.

Each problem is in one family: the first of `FAMILIES` that matches its operators. Studies of
generalisation split by family, so that no kind of operator is on both sides.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

import torch
from torch._ops import OpOverload

from kernel_gym.tasks.operator_mode import OperatorMode
from kernel_gym.tasks.problem import Problem, Scale
from kernel_gym.tasks.sampling import make_inputs
from kernel_gym.tasks.workload import Kind, Split, Workload

_Ops = frozenset[str]


def _any(words: str) -> Callable[[_Ops], bool]:
    names = frozenset(words.split())
    return lambda ops: bool(ops & names)


_product = _any(
    "mm bmm addmm baddbmm mv dot _int_mm _grouped_mm addmv addbmm _scaled_mm triangular_solve "
    "linalg_solve_triangular linalg_cholesky_ex linalg_lu_factor_ex linalg_inv_ex linalg_qr"
)
_fused_attention = _any(
    "_scaled_dot_product_flash_attention_for_cpu _scaled_dot_product_attention_math "
    "_scaled_dot_product_efficient_attention _scaled_dot_product_flash_attention"
)
_normalised = _any("_softmax _log_softmax logsumexp")
_exponential = _any("exp")
_summed = _any("sum")


def _softmax(ops: _Ops) -> bool:
    return _normalised(ops) or (_exponential(ops) and _summed(ops))


_LAYOUT = frozenset(
    "view reshape clone copy copy_ _to_copy transpose t permute cat stack slice select expand "
    "unsqueeze squeeze split chunk contiguous empty empty_like zeros zeros_like flip as_strided "
    "_unsafe_view unbind alias detach lift_fresh constant_pad_nd repeat".split()
)

FAMILIES: dict[str, Callable[[_Ops], bool]] = {
    "attention": lambda ops: _fused_attention(ops) or (_product(ops) and _softmax(ops)),
    "convolution": _any("convolution im2col col2im unfold_backward"),
    "product": _product,
    "sort": _any("sort topk kthvalue median mode unique _unique2 searchsorted bucketize"),
    "scan": _any("cumsum cumprod logcumsumexp cummax cummin"),
    "softmax": _softmax,
    "normalisation": _any(
        "native_layer_norm native_group_norm native_batch_norm _native_batch_norm_legit rsqrt "
        "linalg_vector_norm var var_mean std _fused_rms_norm"
    ),
    "gather": _any(
        "index gather scatter scatter_ scatter_add scatter_add_ scatter_reduce index_select "
        "index_put index_put_ index_add index_add_ embedding _embedding_bag take one_hot bincount "
        "histc index_copy index_copy_ masked_select nonzero"
    ),
    "pooling": _any(
        "avg_pool2d max_pool2d_with_indices max_pool2d _adaptive_avg_pool2d avg_pool1d avg_pool3d "
        "max_pool3d_with_indices upsample_bilinear2d upsample_nearest2d upsample_bicubic2d "
        "grid_sampler_2d roll"
    ),
    "reduction": _any("sum mean amax amin max min argmax argmin prod any all aminmax"),
    "pointwise": lambda ops: bool(ops - _LAYOUT),
    "layout": lambda ops: True,
}


@lru_cache(maxsize=4096)
def operator_family(problem: Problem) -> str:
    """Returns the family of a problem. It runs the reference once, on the smallest train size."""
    dims = min(problem.train[Scale.SIM], key=problem.elements)
    workload = Workload(dims, Split.TRAIN, Kind.TRAIN, problem.distributions[0])
    inputs = make_inputs(problem, workload, seed=0)
    with torch.no_grad(), _Operators() as seen:
        problem.reference(**inputs)
    ops = frozenset(seen.names)
    return next(name for name, shows in FAMILIES.items() if shows(ops))


class _Operators(OperatorMode):
    """Records the name of every operator that runs."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()

    def __torch_dispatch__(
        self,
        func: OpOverload,
        types: object,
        args: Sequence[object] = (),
        kwargs: Mapping[str, object] | None = None,
    ) -> object:
        """Records one operator and runs it."""
        self.names.add(func.overloadpacket.__name__)
        return func(*args, **(kwargs or {}))
