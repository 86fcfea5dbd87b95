"""Classes of the values of recorded tensors."""

import torch

from kernel_gym.imports.upstream.classes import class_of, without_nan


def rows_without_repetition(count, length, most):
    generator = torch.Generator().manual_seed(0)
    return torch.stack([torch.randperm(most, generator=generator)[:length] for _ in range(count)])


def test_rows_without_a_repetition_are_told_from_others():
    rows = rows_without_repetition(64, 8, 100)
    assert class_of(rows)["distinct"] is True
    rows[3, 0] = rows[3, 1]
    assert class_of(rows)["distinct"] is False


def test_an_order_with_padding_is_kept_as_it_is():
    order = rows_without_repetition(1, 300, 400)[0]
    order[250:] = 400
    known = class_of(order)
    assert known["kind"] == "kept"
    order[:2] = order[2]
    assert class_of(order)["kind"] == "integers"


def test_the_share_of_nan_leaves_out_what_was_never_written():
    values = torch.randn(100)
    values[:10] = float("nan")
    values[10:40].view(torch.int32).fill_(-1)
    known = class_of(values)
    assert known["nans"] == 0.1
    assert without_nan(known)["nans"] == 0.0
