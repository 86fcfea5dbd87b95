"""Templates: what calls of one function share, and the axes along which their sizes may vary.

Two calls fit one template if their arguments have the same structure, dtypes and constants. Their
sizes are unified: places with the same sizes in all calls are one axis, and a size that is always
the product of two axes is that product.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from kernel_gym.imports.recorded.calls import RecordedCall, TensorForm, ValueClass
from kernel_gym.imports.recorded.size_trees import (
    MIN_SIZE,
    Place,
    seed_name,
    seeds_in,
    sizes_in,
    with_sizes,
    without_sizes,
)

PADDING = 5
"""Unused elements after each row of a padded matrix."""
WIDER = 64.0
"""By what values are larger than recorded ones: the exponential of standard normal ones then
overflows in float32."""
Dims = Mapping[str, int]
Integers = Mapping[int, ValueClass]
"""Classes of integers that belong together, by the number of the tensor."""

_CLASSES = {"tensors": {"__all__": {"values"}}}
"""The classes of values of a call, which its caller need not know."""


@dataclass(frozen=True)
class LinkedIntegers:
    """The integers that recorded calls of one size have, each set from one call.

    Attributes:
        dims: The size.
        sets: Values that the tests have drawn for it.
    """

    dims: Dims
    sets: tuple[Integers, ...]


@dataclass(frozen=True)
class CallTemplate:
    """The common form of some calls.

    Attributes:
        call: One of them. In its trees, numbers that are sizes are `{"size": "d0*d1"}`.
        shapes: For each tensor the size of each axis, as a product of axes or a number.
        grid: The same for the grid of a launch.
        axes: The names of the axes.
        linked: Integers that belong together, at each recorded size.
        seeds: The names of the seeds among its arguments, which are drawn for each call. They
            are sizes in the trees.
    """

    call: RecordedCall
    shapes: tuple[tuple[str, ...], ...]
    grid: tuple[str, ...] | None
    axes: tuple[str, ...]
    linked: tuple[LinkedIntegers, ...] = ()
    seeds: tuple[str, ...] = ()

    def to_json(self) -> dict[str, object]:
        """The template as JSON values."""
        return {
            "call": self.call.model_dump(mode="json"),
            "shapes": [list(shape) for shape in self.shapes],
            "grid": None if self.grid is None else list(self.grid),
            "axes": list(self.axes),
            "seeds": list(self.seeds),
            "linked": [
                {
                    "dims": dict(one.dims),
                    "sets": [
                        {str(k): v.model_dump(mode="json") for k, v in s.items()} for s in one.sets
                    ],
                }
                for one in self.linked
            ],
        }

    def calling(self) -> dict[str, object]:
        """Returns the template as JSON values, without the classes of values: for a caller."""
        value = self.to_json() | {"call": self.call.model_dump(mode="json", exclude=_CLASSES)}
        del value["linked"]
        return value

    def integers_at(self, dims: Dims) -> list[Integers]:
        """Returns the sets of integers that belong together at a size; none if not recorded."""
        sizes = {name: dims[name] for name in self.axes}
        return [one for linked in self.linked if linked.dims == sizes for one in linked.sets]

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> CallTemplate:
        """Reads what `to_json` has written."""
        grid = value["grid"]
        return cls(
            RecordedCall.model_validate(value["call"]),
            tuple(tuple(shape) for shape in value["shapes"]),
            None if grid is None else tuple(grid),
            tuple(value["axes"]),
            tuple(map(_linked_from_json, value.get("linked", ()))),
            tuple(value.get("seeds", ())),
        )


def _linked_from_json(value: Mapping[str, Any]) -> LinkedIntegers:
    sets = (
        {int(k): ValueClass.model_validate(one) for k, one in values.items()}
        for values in value["sets"]
    )
    return LinkedIntegers(dict(value["dims"]), tuple(sets))


def size_of(expression: str, dims: Dims) -> int:
    """Returns the value of a product of axes and numbers, such as `d0*2`."""
    return math.prod(
        int(factor) if factor.isdigit() else dims[factor] for factor in expression.split("*")
    )


def templates_of(calls: Sequence[RecordedCall]) -> list[tuple[CallTemplate, list[dict[str, int]]]]:
    """Returns templates, each with the dimensions of the calls that it describes, in their order.

    Args:
        calls: The calls of one task.
    """
    groups: dict[str, list[RecordedCall]] = {}
    for call in calls:
        groups.setdefault(_structure(call), []).append(call)
    return [_unified(group) for group in groups.values()]


def _structure(call: RecordedCall) -> str:
    """A text that is equal for calls of one template."""
    tensors = [
        (form.dtype, len(form.shape), form.device, form.gradient, form.mutated, _layout(form))
        for form in call.tensors
    ]
    trees = [without_sizes(call.args), without_sizes(call.kwargs)]
    grid = None if call.grid is None else len(call.grid)
    return json.dumps([call.function, grid, trees, tensors, call.backward], sort_keys=True)


def _layout(form: TensorForm) -> str:
    """How the axes lie in memory; `dense` for contiguous tensors."""
    if is_contiguous(form.shape, form.strides):
        return "dense"
    order = sorted(range(len(form.shape)), key=lambda i: -form.strides[i])
    return f"{order} {[stride == 0 for stride in form.strides]}"


def is_contiguous(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether elements are contiguous; axes of one element may have any stride."""
    expected = 1
    for size, stride in zip(reversed(shape), reversed(strides), strict=True):
        if size != 1 and stride != expected:
            return False
        expected *= size
    return True


def _places(call: RecordedCall) -> dict[Place, int]:
    """The size at each place of a call: axes of tensors, numbers, and the grid."""
    places: dict[Place, int] = {}
    for k, form in enumerate(call.tensors):
        places |= {("tensor", k, axis): size for axis, size in enumerate(form.shape)}
    for what in ("args", "kwargs"):
        places |= {(what, *path): value for path, value in sizes_in(getattr(call, what))}
    for axis, size in enumerate(call.grid or ()):
        places["grid", axis] = size
    return places


def _unified(calls: list[RecordedCall]) -> tuple[CallTemplate, list[dict[str, int]]]:
    columns = [_places(call) for call in calls]
    vectors = {place: tuple(column[place] for column in columns) for place in columns[0]}
    axes: dict[tuple[int, ...], str] = {}
    for place, vector in vectors.items():
        if max(vector) > 1 and place[0] != "grid" and vector not in axes:
            axes[vector] = f"d{len(axes)}"
    products = _products(axes)
    free = {vector: name for vector, name in axes.items() if vector not in products}

    def expression(vector: tuple[int, ...]) -> str:
        if vector in products:
            return products[vector]
        return free.get(vector) or (str(vector[0]) if len(set(vector)) == 1 else "")

    texts = {place: expression(vector) for place, vector in vectors.items()}
    for place, text in texts.items():
        if not text:  # a grid or a size that varies and is nothing else: an axis of its own
            name = f"d{len(axes)}"
            axes[vectors[place]] = free[vectors[place]] = name
            texts[place] = name
    first = calls[0]
    shapes = tuple(
        tuple(texts["tensor", k, axis] for axis in range(len(form.shape)))
        for k, form in enumerate(first.tensors)
    )
    grid = None if first.grid is None else tuple(texts["grid", i] for i in range(len(first.grid)))
    bound = _bound(first, calls, free | products)
    call = first.model_copy(
        update={
            "args": with_sizes(first.args, texts, ("args",)),
            "kwargs": with_sizes(first.kwargs, texts, ("kwargs",)),
            "tensors": bound,
            "variants": [],
        }
    )
    names = tuple(free.values())
    dims = [{name: vector[i] for vector, name in free.items()} for i in range(len(calls))]
    linked = tuple(
        LinkedIntegers(sizes, sets)
        for sizes, sets in zip(dims, (_sets(call, bound) for call in calls), strict=True)
        if sets
    )
    seeds = tuple(seed_name(number) for number in sorted(seeds_in([first.args, first.kwargs])))
    return CallTemplate(call, shapes, grid, names, linked, seeds), dims


def _sets(call: RecordedCall, forms: Sequence[TensorForm]) -> tuple[Integers, ...]:
    """Returns the integers of a call that are no function of its sizes."""
    own = {
        k: form.values
        for k, form in enumerate(call.tensors)
        if form.values.kind in ("kept", "constant")
        and not form.type.is_floating_point
        and not forms[k].values.bound
    }
    others = [{int(k): v for k, v in variant.items() if int(k) in own} for variant in call.variants]
    return (own, *others) if own else ()


def strided(template: CallTemplate) -> CallTemplate | None:
    """Returns a template whose matrices lie in memory as transposed ones; None without any.

    Launches are left out: their arguments state the strides.

    Args:
        template: The template of calls that were recorded.
    """
    call = template.call
    forms = [
        _transposed(form) if _is_matrix(call, k) else form for k, form in enumerate(call.tensors)
    ]
    if call.grid is not None or call.backward or forms == call.tensors:
        return None
    return replace(template, call=call.model_copy(update={"tensors": forms}))


def padded(template: CallTemplate) -> CallTemplate | None:
    """Returns a template whose matrices have padded rows and an odd start; None without any.

    Launches are left out, as in `strided`.
    """
    call = template.call
    forms = [
        form.model_copy(update={"padding": PADDING}) if _is_matrix(call, k) else form
        for k, form in enumerate(call.tensors)
    ]
    if call.grid is not None or call.backward or forms == call.tensors:
        return None
    return replace(template, call=call.model_copy(update={"tensors": forms}))


def widened(template: CallTemplate) -> CallTemplate | None:
    """Returns a template whose real numbers of both signs are larger; None without any."""
    call = template.call
    forms = [
        form.model_copy(update={"values": _wider(form.values)}) if _has_signs(form) else form
        for form in call.tensors
    ]
    if forms == call.tensors:
        return None
    return replace(template, call=call.model_copy(update={"tensors": forms}))


def _has_signs(form: TensorForm) -> bool:
    """Whether a tensor holds real numbers of both signs, which no rule of the test has limited."""
    values = form.values
    plain = values.kind == "float" and not (values.whole or values.pattern)
    return plain and form.type.itemsize > 1 and float(values.low) < 0 < float(values.high)


def _wider(values: ValueClass) -> ValueClass:
    update = {
        name: float(getattr(values, name)) * WIDER for name in ("mean", "deviation", "low", "high")
    }
    return values.model_copy(update=update)


def _is_matrix(call: RecordedCall, number: int) -> bool:
    """Whether another layout of a tensor changes only the layout."""
    form = call.tensors[number]
    alone = form.shares is None and all(other.shares != number for other in call.tensors)
    large = len(form.shape) > 1 and min(form.shape[-2:]) > 1
    return alone and large and not form.mutated and is_contiguous(form.shape, form.strides)


def _transposed(form: TensorForm) -> TensorForm:
    *lead, _, _ = form.strides
    return form.model_copy(update={"strides": (*lead, 1, form.shape[-2])})


def _products(axes: Mapping[tuple[int, ...], str]) -> dict[tuple[int, ...], str]:
    """The vectors that are products of two others which are no products themselves."""
    products: dict[tuple[int, ...], str] = {}
    ordered = sorted(axes, key=max)
    for vector in ordered:
        smaller = [v for v in ordered if v not in products and max(v) < max(vector) and min(v) > 1]
        for i, one in enumerate(smaller):
            for other in smaller[i:]:
                if all(a * b == c for a, b, c in zip(one, other, vector, strict=True)):
                    products.setdefault(vector, f"{axes[one]}*{axes[other]}")
    return products


def _bound(
    first: RecordedCall, calls: list[RecordedCall], known: Mapping[tuple[int, ...], str]
) -> list[TensorForm]:
    """Gives tensors the classes of values of all calls.

    The largest values of integer tensors are tied to axes of the same size, such as indices.
    """
    forms = []
    for k, form in enumerate(first.tensors):
        same = [call.tensors[k] for call in calls]
        values = _widest([one.values for one in same], [math.prod(one.shape) for one in same])
        form = form.model_copy(update={"values": values})
        if not form.type.is_floating_point and values.kind in _BOUND:
            vector = tuple(_limit(call.tensors[k]) for call in calls)
            if min(vector) >= MIN_SIZE and vector in known:
                form = form.model_copy(
                    update={"values": values.model_copy(update={"bound": known[vector]})}
                )
        forms.append(form)
    return forms


def _widest(classes: Sequence[ValueClass], elements: Sequence[int]) -> ValueClass:
    """Returns the class of real numbers with the widest range.

    Few integers say little of how they were drawn, so that the class of most integers counts.
    """
    ranges = [value_class for value_class in classes if value_class.kind == "float"]
    most = classes[max(range(len(classes)), key=lambda i: elements[i])]
    if not ranges and most.kind in ("range", "integers", "permutation"):
        return most
    if not ranges or any(value_class.kind not in ("float", "constant") for value_class in classes):
        return classes[0]
    return max(ranges, key=lambda one: float(one.high) - float(one.low))


_BOUND = ("constant", "range", "permutation", "integers")


def _limit(form: TensorForm) -> int:
    values = form.values
    if values.kind == "constant":
        return int(values.value)
    return int(values.high) + 1 if values.kind in _BOUND else -1
