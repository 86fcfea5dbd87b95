"""Which operators of PyTorch are taken by name from a process that is not trusted.

`torch.ops.aten` is also the name space of TorchScript: it has operators on texts, dictionaries and
files, and some that change the state of the process. The rule here is closed. An operator is taken
only if PyTorch's dispatcher knows it, if it takes only tensors, numbers, types and a few words, if
it returns tensors, and if it runs on a CPU.
"""

from __future__ import annotations

import re
from functools import cache

import torch

_VALUES = "int float bool number Tensor str".split()
_PLACES = "ScalarType Layout MemoryFormat Device Generator".split()
TYPES = frozenset(
    f"{form}[{value}]" if form else value
    for value in _VALUES
    for form in ("", "Optional", "List")
    if (form, value) != ("List", "str")
) | frozenset(
    [
        "List[Optional[Tensor]]",
        *(f"Optional[List[{value}]]" for value in ("int", "float", "number")),
        *_PLACES,
        *(f"Optional[{place}]" for place in _PLACES),
    ]
)
"""The types of arguments that an operator may have."""
TENSORS = frozenset({"Tensor", "List[Tensor]"})
"""The types of results that an operator may have."""
NUMBERS = frozenset({"int", "float", "bool", "number"})
WORDS = frozenset(
    "none tanh floor trunc sum prod mean amax amin min max add multiply left right constant "
    "reflect replicate circular same valid linear lower higher midpoint nearest forward backward "
    "ortho reduced complete r L U fro nuc gesvd gesvdj gesvda ij xy".split()
)
"""The words that an argument may be: modes of rounding, padding and reduction, names of norms."""
MAX_EQUATION = 200
"""Most characters of an equation of `einsum`."""
STORAGE = frozenset(
    "from_file set set_ set_data resize resize_ resize_as resize_as_ resize_as_sparse "
    "resize_as_sparse_ as_strided as_strided_ as_strided_copy as_strided_scatter record_stream "
    "swap data requires_grad_ rename rename_ pin_memory".split()
)
"""Operators that change or read storage as such, or work on the autograd engine."""
CHECKS = frozenset({"_linalg_check_errors"})
"""Operators that return nothing and write nothing: they check what another operator has reported,
and fail where it did. Factorisations and solvers call them."""
_OTHER_BACKENDS = re.compile(
    r"_?(mkldnn|cudnn|miopen|mps|fbgemm|quantize|q_|sparse|to_sparse|to_mkldnn|nested|vulkan)"
)
_CPU = ("CPU", "CompositeImplicitAutograd", "CompositeExplicitAutograd",
        "CompositeExplicitAutogradNonFunctional")  # fmt: skip
_EQUATION = re.compile(r"[A-Za-z., >-]*")
_FUNCTION = re.compile(r"[a-z_.]{1,64}")


def dispatcher_operator(
    packet: str, overload: str, numbers: bool = False
) -> torch._ops.OpOverload | None:
    """Returns an operator of `aten`, or None if there is none that is taken.

    Args:
        packet: Its name, such as `add`.
        overload: The name of its overload, such as `Tensor`; `default` for none.
        numbers: Whether operators are taken, too, that return numbers, or nothing where they
            write to their arguments or only check them.
    """
    suffix = "" if overload == "default" else f".{overload}"
    if f"aten::{packet}{suffix}" not in _registered():
        return None
    operator = getattr(getattr(torch.ops.aten, packet, None), overload, None)
    if not isinstance(operator, torch._ops.OpOverload):
        return None
    return operator if _is_taken(operator, numbers) else None


def is_word(packet: str, text: str) -> bool:
    """Whether an operator may get a text as an argument."""
    if packet == "einsum":
        return len(text) <= MAX_EQUATION and _EQUATION.fullmatch(text) is not None
    if packet in CHECKS:  # the name of the function that its message names
        return _FUNCTION.fullmatch(text) is not None
    return text in WORDS


@cache
def _registered() -> frozenset[str]:
    """The full names in the registry of the dispatcher. TorchScript's operators are not in it."""
    return frozenset(torch._C._dispatch_get_all_op_names())


@cache
def _is_taken(operator: torch._ops.OpOverload, numbers: bool) -> bool:
    schema = operator._schema
    name = schema.name.removeprefix("aten::")
    if name in STORAGE or _OTHER_BACKENDS.match(name):
        return False
    results = TENSORS | NUMBERS if numbers else TENSORS
    if not schema.returns and not (numbers and (schema.is_mutable or name in CHECKS)):
        return False
    if any(str(result.type) not in results for result in schema.returns):
        return False
    if any(str(argument.real_type) not in TYPES for argument in schema.arguments):
        return False
    full = f"{schema.name}.{schema.overload_name}".rstrip(".")
    return any(torch._C._dispatch_has_kernel_for_dispatch_key(full, key) for key in _CPU)
