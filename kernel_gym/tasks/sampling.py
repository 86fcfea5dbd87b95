"""Makes the workloads of a problem, and the tensors of one call from a workload.

The problem states its train workloads. Unseen workloads are drawn around them from a seed that only
the judge knows: one of each kind, legal, within the element budget of the scale, and never with the
dimensions of a train workload. Adversarial workloads have tiny sizes, odd layouts (Triton only),
sizes that are no multiple of any tile, and the far end of each axis. The declared values of scalar
arguments take turns on train workloads. The others draw from the whole range of each argument.
"""

from __future__ import annotations

import contextlib
import itertools
import random
from collections.abc import Callable, Mapping, Sequence
from functools import cache

import torch

from kernel_gym.tasks.contrasts import contrast_workloads, contrasted
from kernel_gym.tasks.far_ends import (
    MAX_EDGE_STEPS,
    budget,
    far_ends,
    fits_memory,
    near_ends,
    near_far_end,
)
from kernel_gym.tasks.problem import Dims, Problem, Scale, Value
from kernel_gym.tasks.ranges import special_distributions, widen
from kernel_gym.tasks.scalar_draws import draw_all_between, draw_ends, draw_scalars
from kernel_gym.tasks.workload import UNSEEN_KINDS, Kind, Layout, Split, Workload

UNSEEN_DISTRIBUTIONS = 2
"""Number of distributions that the unseen workloads of one evaluation use."""
ATTEMPTS = 4000
"""Number of proposals for one kind before the problem's space is reported as too narrow."""
CPU = torch.device("cpu")
UNTIMED_KINDS = frozenset({Kind.EDGE, Kind.REACH})
"""Unseen workloads of these kinds are checked and not timed, since a launch or one long row takes
most of their time."""
MIN_TIMED_SHARE = 0.1
"""Least elements of a drawn workload that is timed, as a share of the smallest train workload's."""
PRODUCTION_POINTS = 12
"""Least number of production points; the declared ones are combined until there are so many."""
_TILES = (16, 32, 64, 128, 256, 512, 1024, 2048)


def train_workloads(problem: Problem, scale: Scale) -> list[Workload]:
    """Returns the train workloads. Distributions and scalars cycle through those declared."""
    stated = problem.stated_workloads(Split.TRAIN)
    if stated is not None:
        return stated
    menu = problem.distributions
    return [
        Workload(
            dims,
            Split.TRAIN,
            Kind.TRAIN,
            distribution=menu[i % len(menu)],
            name=f"train-{i}",
            scalars=_scalars_in_turn(problem, i),
        )
        for i, dims in enumerate(problem.train[scale])
    ]


def _scalars_in_turn(problem: Problem, turn: int) -> dict[str, int | float]:
    """Returns the scalars of workload number `turn`; each argument starts at another value."""
    return {
        arg.name: arg.values[(turn + i) % len(arg.values)] for i, arg in enumerate(problem.declared)
    }


def adversarial_workloads(
    problem: Problem, scale: Scale, language: str, seed: int = 0
) -> list[Workload]:
    """Returns tiny sizes, odd layouts if language and problem allow them, and extreme sizes.

    Tiny sizes are checked under every legal distribution, the larger ones under one each, which
    does not depend on the order of the problem's distributions. The layouts are a strided and an
    offset one of the smallest train workload. Then comes the far end of each axis. The first two of
    these have special values, as far as the problem takes them. The next workload has odd sizes,
    and tiny values where the problem allows them. Then comes the least legal size of each axis that
    none of these has. What equals a train workload is left out. Last come contrasts (`contrasts`).
    The seed decides the scalars, from their whole ranges. The workload with special values and the
    one with odd sizes have opposite ends of each range: both hold small values, on which a term
    such as eps shows. Tiny sizes with tiny values have a scalar between the ends.
    """
    stated = problem.stated_workloads(Split.ADVERSARIAL)
    if stated is not None:
        return stated
    menu = sorted(problem.distributions)
    tiny = [(dims, Layout.CONTIGUOUS, name) for dims in problem.adversarial for name in menu]
    if problem.tiny_inputs and "tiny" not in menu and problem.declared:
        tiny.append((problem.adversarial[0], Layout.CONTIGUOUS, "tiny"))
    known, odd = problem.train[scale], _off_tiles(problem, scale)
    smallest = min(known, key=problem.elements)
    layouts = (Layout.STRIDED, Layout.OFFSET) if language == "triton" and problem.strided else ()
    cases: list[tuple[Dims, Layout]] = [(smallest, layout) for layout in layouts]
    ends = far_ends(problem, scale)
    cases += [(dims, Layout.CONTIGUOUS) for dims in ends if dims not in known]
    special = special_distributions(problem)
    cases += [(smallest, Layout.CONTIGUOUS)] * (len(special) - len(cases))
    large = [(dims, layout, menu[i % len(menu)]) for i, (dims, layout) in enumerate(cases)]
    for i, distribution in zip((0, 1 if layouts else -1), special, strict=False):
        large[i] = (*cases[i], distribution)
    if odd not in known:
        last = "tiny" if problem.tiny_inputs else menu[len(cases) % len(menu)]
        large.append((odd, Layout.CONTIGUOUS, last))
    large += [(dims, Layout.CONTIGUOUS, menu[0]) for dims in near_ends(problem, scale)]
    rng = random.Random(f"{problem.name}/{scale}/{language}/adversarial/{seed}")
    low_or_high = draw_ends(problem, rng)

    def scalars(dims: Dims, distribution: str) -> dict[str, int | float]:
        drawn = (draw_all_between if distribution == "tiny" else draw_scalars)(problem, rng)
        if distribution in special[:1]:
            return low_or_high[0]
        return low_or_high[1] if dims == odd else drawn

    made = [
        Workload(
            dims,
            Split.ADVERSARIAL,
            Kind.ADVERSARIAL,
            distribution=distribution,
            layout=layout,
            name=f"adversarial-{i}",
            scalars=scalars(dims, distribution),
            timed=False,
        )
        for i, (dims, layout, distribution) in enumerate([*tiny, *large])
    ]
    return made + contrast_workloads(problem, scale, seed, rng)


def _off_tiles(problem: Problem, scale: Scale) -> Dims:
    """Returns the smallest train dimensions with an odd number of steps on every axis.

    An even number is increased by one, or decreased by one if the larger number is illegal or
    beyond the budget. No tile divides an odd number, and no vector width divides the product of odd
    numbers. So a kernel that rounds its number of blocks down is wrong here, whatever the unseen
    workloads are.
    """
    dims = min(problem.train[scale], key=problem.elements)
    limit = budget(problem, scale)
    for axis in problem.axes:
        steps = dims[axis.name] // axis.multiple
        odd = [{**dims, axis.name: n * axis.multiple} for n in (steps | 1, steps - 1)]
        fits = (d for d in odd if problem.legal(d) and problem.elements(d) <= limit)
        dims = next(fits, dims)
    return dims


def _prime_near(value: int, rng: random.Random) -> int:
    candidate = max(2, value + rng.randint(-value // 4, value // 4))
    while any(candidate % d == 0 for d in range(2, int(candidate**0.5) + 1)):
        candidate += 1
    return candidate


def _scaled(problem: Problem, dims: Dims, names: list[str], factor: float) -> Dims:
    """Returns `dims` with the named axes times `factor`, rounded to their multiple and range."""
    out = dict(dims)
    for axis in problem.axes:
        if axis.name in names:
            whole = max(1, round(dims[axis.name] * factor / axis.multiple)) * axis.multiple
            out[axis.name] = min(axis.high, max(axis.low, whole))
    return out


def _some_axes(problem: Problem, rng: random.Random) -> list[str]:
    names = [axis.name for axis in problem.axes]
    return rng.sample(names, rng.randint(1, len(names)))


def _edge(problem: Problem, scale: Scale, base: Dims, rng: random.Random) -> Dims:
    """The smallest legal size of one axis, which other axes may lift above its lowest one."""
    axis = rng.choice(problem.axes)
    lowest = {**base, axis.name: axis.low}
    steps = range(axis.low, base[axis.name], axis.multiple)[:MAX_EDGE_STEPS]
    return next((d for n in steps if problem.legal(d := {**base, axis.name: n})), lowest)


def _scale_up(problem: Problem, scale: Scale, base: Dims, rng: random.Random) -> Dims:
    return _scaled(problem, base, _some_axes(problem, rng), rng.uniform(1.15, 2.5))


def _scale_down(problem: Problem, scale: Scale, base: Dims, rng: random.Random) -> Dims:
    return _scaled(problem, base, _some_axes(problem, rng), rng.uniform(0.3, 0.8))


def _alignment(problem: Problem, scale: Scale, base: Dims, rng: random.Random) -> Dims:
    axis = rng.choice(problem.axes)
    steps = max(1, base[axis.name] // axis.multiple)
    near = min(_TILES, key=lambda tile: abs(tile - steps))
    odd = rng.choice((_prime_near(steps, rng), near - 1, near + 1))
    return {**base, axis.name: odd * axis.multiple}


def _aspect(problem: Problem, scale: Scale, base: Dims, rng: random.Random) -> Dims:
    """One axis several times longer, another as much shorter; an only axis is made shorter."""
    names = [axis.name for axis in problem.axes]
    factor = rng.choice((3, 4, 6, 8))
    if len(names) == 1:
        return _scaled(problem, base, names, 1 / factor)
    wide, narrow = rng.sample(names, 2)
    return _scaled(problem, _scaled(problem, base, [wide], factor), [narrow], 1 / factor)


def _reach(problem: Problem, scale: Scale, base: Dims, rng: random.Random) -> Dims:
    """A point near a far end; a larger one if every axis ends at its train sizes."""
    if not far_ends(problem, scale):
        return _scale_up(problem, scale, base, rng)
    return near_far_end(problem, scale, rng) or base


_PROPOSE: Mapping[Kind, Callable[[Problem, Scale, Dims, random.Random], Dims]] = {
    Kind.EDGE: _edge,
    Kind.REACH: _reach,
    Kind.SCALE_UP: _scale_up,
    Kind.SCALE_DOWN: _scale_down,
    Kind.ALIGNMENT: _alignment,
    Kind.ASPECT: _aspect,
}


def _fits(problem: Problem, kind: Kind, base: Dims, dims: Dims, least: float) -> bool:
    """Whether a proposal fits its kind: larger, smaller, or another point, large enough to time."""
    before, after = problem.elements(base), problem.elements(dims)
    if kind not in UNTIMED_KINDS and after < least:
        return False
    if kind is Kind.SCALE_UP:
        return after > before
    if kind is Kind.SCALE_DOWN:
        return after < before
    return dims != base


def _draw_dims(
    problem: Problem, scale: Scale, kind: Kind, taken: Sequence[Dims], rng: random.Random
) -> Dims:
    """Draws dimensions of one kind that are legal, within the budget and not in `taken`.

    They are larger ones if no such dimensions of the kind are left, as where nothing is smaller.
    """
    if kind is Kind.PRODUCTION:
        fresh = [dims for dims in production_points(problem, scale) if dims not in taken]
        if not fresh:
            raise ValueError(f"{problem.name}: no production workload at scale {scale} is free")
        return rng.choice(fresh)
    limit = budget(problem, scale)
    least = MIN_TIMED_SHARE * min(map(problem.elements, problem.train[scale]))
    for _ in range(ATTEMPTS):
        base = rng.choice(problem.train[scale])
        dims = _PROPOSE[kind](problem, scale, base, rng)
        legal = problem.legal(dims) and problem.elements(dims) <= limit
        legal = legal and fits_memory(problem, scale, dims)
        if legal and dims not in taken and _fits(problem, kind, base, dims, least):
            return dims
    if kind is not Kind.SCALE_UP:
        return _draw_dims(problem, scale, Kind.SCALE_UP, taken, rng)
    raise ValueError(f"{problem.name}: no legal {kind} workload at scale {scale} was found")


@cache
def production_points(problem: Problem, scale: Scale) -> tuple[Dims, ...]:
    """Returns real sizes: the declared ones, then combinations of them and of the train sizes.

    A combination has the sizes of one point, and that of another one on one axis. It is legal,
    within the budget, large enough to be timed, and no train point.
    """
    declared, train = problem.production[scale], problem.train[scale]
    limit = budget(problem, scale)
    least = MIN_TIMED_SHARE * min(map(problem.elements, train))
    kept = list(declared)
    for base, other in itertools.product((*declared, *train), repeat=2):
        for axis in problem.axes:
            dims = {**base, axis.name: other[axis.name]}
            fits = problem.legal(dims) and least <= problem.elements(dims) <= limit
            fits = fits and fits_memory(problem, scale, dims)
            if fits and dims not in kept and dims not in train:
                kept.append(dims)
    combined = kept[len(declared) :]
    random.Random(f"{problem.name}/{scale}").shuffle(combined)
    missing = max(0, PRODUCTION_POINTS - len(declared))
    return (*declared, *combined[:missing])


def unseen_workloads(problem: Problem, scale: Scale, language: str, seed: int) -> list[Workload]:
    """Draws one unseen workload of each kind, in the order of `UNSEEN_KINDS`, with distinct sizes.

    Args:
        problem: The problem to sample.
        scale: The scale of the train and production points to start from.
        language: "triton" or "hip". Unseen layouts are contiguous in both.
        seed: It decides everything. The judge draws it after the candidate has loaded.
    """
    rng = random.Random(f"{problem.name}/{scale}/{language}/{seed}")
    stated = problem.stated_workloads(Split.UNSEEN)
    if stated is not None:
        return rng.sample(stated, min(len(UNSEEN_KINDS), len(stated)))
    menu = problem.distributions
    chosen = rng.sample(menu, min(UNSEEN_DISTRIBUTIONS, len(menu)))
    taken: list[Dims] = list(problem.train[scale])
    workloads = []
    for i, kind in enumerate(UNSEEN_KINDS):
        dims = _draw_dims(problem, scale, kind, taken, rng)
        taken.append(dims)
        distribution = chosen[i % len(chosen)]
        workloads.append(
            Workload(
                dims,
                Split.UNSEEN,
                kind,
                distribution=distribution,
                name=f"unseen-{kind}",
                scalars=draw_scalars(problem, rng),
                timed=kind not in UNTIMED_KINDS,
            )
        )
    return workloads


_OFFSET_BYTES = 16
_MAX_PADDING = 64
"""Most elements between the end of a row and the start of the next row in a strided layout."""


def _strided(tensor: torch.Tensor, rng: random.Random) -> torch.Tensor:
    """Returns a view of equal values with 1 to `_MAX_PADDING` unused elements after each row."""
    if tensor.dim() < 2:
        return tensor
    *lead, last = tensor.shape
    storage = torch.zeros((*lead, last + rng.randint(1, _MAX_PADDING)), dtype=tensor.dtype)
    view = storage[..., :last]
    view.copy_(tensor)
    return view


def _offset(tensor: torch.Tensor, rng: random.Random) -> torch.Tensor:
    """Returns a view of equal values that starts one element after a 16-byte boundary."""
    lead = _OFFSET_BYTES // tensor.element_size()
    storage = torch.zeros(tensor.numel() + 2 * lead, dtype=tensor.dtype)
    to_boundary = -storage.data_ptr() % _OFFSET_BYTES // tensor.element_size()
    start = to_boundary + 1
    view = storage[start : start + tensor.numel()].view(tensor.shape)
    view.copy_(tensor)
    return view


def _contiguous(value: torch.Tensor, rng: random.Random) -> torch.Tensor:
    """Returns a contiguous tensor that fills its own storage."""
    dense = value.contiguous()
    return dense if dense.untyped_storage().nbytes() == dense.nbytes else dense.clone()


def _as_it_is(tensor: torch.Tensor, rng: random.Random) -> torch.Tensor:
    return tensor


_APPLY: Mapping[Layout, Callable[[torch.Tensor, random.Random], torch.Tensor]] = {
    Layout.CONTIGUOUS: _contiguous,
    Layout.STRIDED: _strided,
    Layout.OFFSET: _offset,
}


def made_on(where: torch.device) -> contextlib.AbstractContextManager[object]:
    """Returns a context in which PyTorch makes tensors on a device.

    Where it does so anyway the context does nothing, as another one slows each operation down.
    """
    return contextlib.nullcontext() if torch.get_default_device() == where else where


def make_inputs(
    problem: Problem, workload: Workload, seed: int, where: torch.device = CPU
) -> dict[str, Value]:
    """Draws the arguments of one call in the layout of the workload.

    Args:
        problem: The problem that is called.
        workload: Sizes, distribution and layout.
        seed: It decides values (on one type of device, in any layout) and strides of a layout.
        where: The torch device to draw on. On "meta" there are only shapes and strides.

    Returns:
        Argument name to tensor or scalar, in the order of `problem.args`.
    """
    generator = torch.Generator(CPU if where.type == "meta" else where).manual_seed(seed)
    place = _as_it_is if problem.own_layout else _APPLY[workload.layout]
    strides = random.Random(f"strides/{seed}")
    with made_on(where):
        draw = contrasted if workload.magnitudes else widen
        values = draw(problem, workload, problem.inputs(workload, generator), generator)
        return {
            name: place(value.to(where), strides) if isinstance(value, torch.Tensor) else value
            for name, value in values.items()
        }
