"""Yardsticks of problems with few outputs or with terms that cancel.

The tolerance is a multiple of an honest answer's error (rule 7). That error is a random sample. Of
an output with few rows, one sample may be much smaller than the error of the next honest kernel. So
such problems compute several honest answers, with other orders of sums or other common formulas.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

Attention = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
"""A function of scores [..., queries, keys] and values [..., keys, width]."""
_ROWS = 64
"""Rows whose errors are enough to know how large an error is, all answers together."""
_MOST = 8
"""The most orders of a sum."""
_STEP_TERMS = 16
"""Terms that a matrix unit adds in one step, of types of two bytes."""


def farthest(oracle: torch.Tensor, answers: Sequence[torch.Tensor]) -> torch.Tensor:
    """Returns, for each element, the answer that is farthest from the oracle.

    Args:
        oracle: The exact values, fp64.
        answers: Honest answers, each with the shape of the oracle.
    """
    stacked = torch.stack(tuple(answers))
    errors = (stacked.double() - oracle).abs()
    return stacked.gather(0, errors.argmax(0, keepdim=True))[0]


def sum_orders(rows: int, terms: int, where: torch.device) -> torch.Tensor:
    """Returns orders of a sum's terms: the given one, and random ones if there are few rows.

    Args:
        rows: The number of rows whose errors are independent.
        terms: The number of terms.
        where: The torch device of the result.

    Returns:
        Indices, int64[orders, terms].
    """
    number = max(1, min(_MOST, _ROWS // max(1, rows)))
    generator = torch.Generator().manual_seed(terms)
    with torch.device("cpu"):  # the judge makes a GPU the default
        shuffled = [torch.randperm(terms, generator=generator) for _ in range(number - 1)]
        return torch.stack([torch.arange(terms), *shuffled]).to(where)


def divided_last(scores: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """Attends with weights that are rounded before they are divided by their sum.

    Kernels with a running softmax do so. PyTorch's softmax divides first. Where few keys have most
    of the weight, one order may be exact by chance and the other not.

    Args:
        scores: float32[..., queries, keys]; scores beyond the last value count in the sum only.
        values: [..., keys of values, width], in the type to which weights and result are rounded.
    """
    weights = torch.exp(scores - scores.amax(-1, keepdim=True))
    rounded = weights[..., : values.shape[-2]].to(values.dtype).float()
    return (torch.matmul(rounded, values.float()) / weights.sum(-1, keepdim=True)).to(values.dtype)


def softmax_attention(scores: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """Attends in the type of the scores, [..., queries, keys]; values are [..., keys, width]."""
    return torch.softmax(scores, dim=-1) @ values.to(scores.dtype)


def farthest_attention(
    reference: torch.Tensor, attended: Callable[[Attention, torch.dtype], torch.Tensor]
) -> torch.Tensor:
    """Returns the reference, or the result of `divided_last` where that is farther from float32.

    Args:
        reference: What PyTorch gives.
        attended: Attends by a function, with scores of a type.
    """
    exact = attended(softmax_attention, torch.float32)
    last = attended(divided_last, torch.float32).to(reference.dtype)
    return farthest(exact, (reference, last))


def column_sums(terms: torch.Tensor) -> list[torch.Tensor]:
    """Adds up the rows of float32 terms: term by term, and as PyTorch does in several orders.

    The sums are one row of outputs, so that one large term may decide on the error of all.

    Args:
        terms: [rows, cols].

    Returns:
        Honest sums, each [cols].
    """
    in_order = torch.zeros_like(terms[0])
    for row in terms:
        in_order += row
    orders = sum_orders(1, len(terms), terms.device)
    return [in_order, *(terms[order].sum(0) for order in orders)]


def products_in_order(left: torch.Tensor, right: torch.Tensor, rows: int = _ROWS) -> torch.Tensor:
    """Multiplies float32 matrices with sums term by term, which has the largest usual error.

    Args:
        left: [..., m, terms].
        right: [..., terms, n].
        rows: The number of rows whose errors are independent; by default enough for one order.

    Returns:
        The products, [orders, ..., m, n], with one entry for each of `sum_orders`.
    """
    orders = sum_orders(rows, left.shape[-1], left.device)
    total = left.new_zeros((len(orders), *left.shape[:-1], right.shape[-1]))
    for index in orders.T:
        column = left[..., index].movedim(-1, 0)[..., None]
        other = right[..., index, :].movedim(-2, 0)[..., None, :]
        total += column * other
    return total


def products_by_matrix_units(left: torch.Tensor, right: torch.Tensor) -> list[torch.Tensor]:
    """Multiplies on NVIDIA's matrix units, which cut off the low bits of float32 sums.

    Sums that are rounded have smaller errors. So an honest kernel on such a GPU may fail against a
    yardstick of rounded sums, if its output is float32. PyTorch's library splits long sums, and a
    kernel adds all terms in one chain: each of its steps cuts off half of a last bit on average.
    Source: Fasi, Higham, Mikaitis and Pranesh, "Numerical behavior of NVIDIA tensor cores", 2021,
    section 3.

    Args:
        left: [m, terms], float16 or bfloat16.
        right: [terms, n], of the same type.

    Returns:
        The products of the library, and those of one chain, each float32[m, n]; nothing on other
        devices.
    """
    if not left.is_cuda or torch.version.hip is not None:
        return []
    products = torch.mm(left, right, out_dtype=torch.float32)
    return [products, products * cut_off_in_chain(left.shape[-1])]


def cut_off_in_chain(terms: int) -> float:
    """Returns what is left of a sum of so many terms after a chain of steps on matrix units."""
    return 1.0 - terms / _STEP_TERMS * torch.finfo(torch.float32).eps / 4
