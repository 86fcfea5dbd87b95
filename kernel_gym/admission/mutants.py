"""Mutation test of references: single-point changes that the judge's check of values must refuse.

A mutant is the PyTorch reference with one operand dropped, one sign or constant changed, one
boundary moved, one call or keyword dropped, or one scalar argument fixed. A mutant that passes on
every workload shows data that leaves something open. Some mutants compute the same, and each such
one is named by a rule.
"""

from __future__ import annotations

import ast
import copy
import inspect
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from kernel_gym.judge.expected import Expected, compare, expect
from kernel_gym.tasks.controls.answers import copied
from kernel_gym.tasks.problem import Problem, Scale
from kernel_gym.tasks.sampling import adversarial_workloads, train_workloads, unseen_workloads

UNSEEN_SEEDS = (0, 1)
"""Seeds of the unseen workloads that mutants are judged on, beside train and adversarial ones."""
SHIFT = 1.01
"""Factor of a floating-point constant that is changed."""
_BOUNDS: Mapping[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
}
_SWAPPED: Mapping[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
}
_CASTS = frozenset("float half double long int bfloat16 to type".split())
_COPIES = frozenset("contiguous clone detach".split())
_SHAPES = frozenset("view reshape expand unsqueeze squeeze flatten".split())
_DEFAULTS = frozenset("dim mode padding_mode align_corners sorted keepdim".split())
"""Keywords that a reference often states although they have their default."""
_GUARDS = frozenset(
    "clamp clamp_min clamp_max maximum minimum masked_fill where nan_to_num".split()
)


@dataclass(frozen=True)
class Mutant:
    """One changed reference."""

    change: str
    """The change, with the line of the reference."""
    rule: str
    """Why it may compute the same; "" if it must not."""
    tree: ast.Module


@dataclass(frozen=True)
class MutationReport:
    """The result for one problem."""

    problem: str
    killed: int
    equivalent: tuple[tuple[str, str], ...]
    """Changes that pass and are equivalent by a rule, each with its rule."""
    survivors: tuple[str, ...]
    """Changes that pass although no rule says that they may."""
    left_out: tuple[str, ...]
    """Workloads on which the reference itself is refused, so that they kill no mutant."""

    @property
    def count(self) -> int:
        """The number of mutants."""
        return self.killed + len(self.equivalent) + len(self.survivors)


def mutation_test(problem: Problem, scale: Scale, seed: int) -> MutationReport:
    """Judges every mutant of a problem's reference.

    Args:
        problem: The problem to test.
        scale: The scale of its workloads.
        seed: The seed of the data.
    """
    workloads = [
        *sorted(train_workloads(problem, scale), key=lambda w: problem.elements(w.dims)),
        *adversarial_workloads(problem, scale, "hip"),
        *(w for s in UNSEEN_SEEDS for w in unseen_workloads(problem, scale, "hip", s)),
    ]
    cases, left_out = [], []
    for workload in workloads:
        case = expect(problem, workload, seed)
        if _accepted(problem, type(problem).reference, case):
            cases.append(case)
        else:
            left_out.append(str(workload))
    killed, equivalent, survivors = 0, [], []
    for mutant in mutants(problem):
        if not _passes(problem, mutant, cases):
            killed += 1
        elif mutant.rule:
            equivalent.append((mutant.change, mutant.rule))
        else:
            survivors.append(mutant.change)
    return MutationReport(
        problem.name, killed, tuple(equivalent), tuple(survivors), tuple(left_out)
    )


def mutants(problem: Problem) -> Iterator[Mutant]:
    """Yields the mutants of a problem's reference."""
    text = textwrap.dedent(inspect.getsource(type(problem).reference))
    tree = ast.parse(text)
    function = tree.body[0]
    assert isinstance(function, ast.FunctionDef)
    if ast.get_docstring(function):
        del function.body[0]
    for index, node in enumerate(ast.walk(tree)):
        for kind, (describe, change, rule) in enumerate(_changes(node, tree)):
            other = copy.deepcopy(tree)
            change(_at(other, index))
            line = getattr(node, "lineno", 0)
            yield Mutant(f"line {line}: {describe} (point {index}, change {kind})", rule, other)
    for arg in problem.declared:
        for value in arg.values[:2]:
            other = copy.deepcopy(tree)
            fixed = ast.parse(f"{arg.name} = {value!r}").body[0]
            body = other.body[0]
            assert isinstance(body, ast.FunctionDef)
            body.body.insert(0, fixed)
            yield Mutant(f"{arg.name} is always {value:g}", "", other)


Reference = Callable[..., tuple[torch.Tensor, ...]]
Change = tuple[str, Callable[[Any], None], str]
"""A description, a function that changes the node in place, and the rule of equivalence or ""."""


def _changes(node: ast.AST, tree: ast.Module) -> Iterator[Change]:
    match node:
        case ast.BinOp():
            yield from _of_product(node, tree)
        case ast.Compare(ops=[op]) if type(op) in _BOUNDS:
            yield f"move the boundary of {ast.unparse(node)}", _move, ""
        case ast.Call(keywords=keywords):
            for i, keyword in enumerate(keywords):
                if keyword.arg:
                    name = f"drop {keyword.arg}="
                    yield name, partial(_drop_keyword, i), _rule_of_keyword(keyword)
            if isinstance(node.func, ast.Attribute) and _is_value(node.func.value):
                yield f"drop .{node.func.attr}()", _drop_call, _rule_of_call(node.func.attr)
        case ast.Constant(value=bool() | str() | None):
            return
        case ast.Constant(value=int(value)) if not _is_place(node, tree):
            yield f"{value} + 1", lambda n: setattr(n, "value", n.value + 1), _rule_in(node, tree)
        case ast.Constant(value=float(value)):
            yield f"{value} * {SHIFT}", _shift, _rule_in(node, tree)


def _of_product(node: ast.BinOp, tree: ast.Module) -> Iterator[Change]:
    text, rule = ast.unparse(node), _rule_in(node, tree)
    if type(node.op) in _SWAPPED:
        yield f"change the sign of {text}", _swap, rule
    yield f"keep the left of {text}", lambda n: _become(n, n.left), rule
    yield f"keep the right of {text}", lambda n: _become(n, n.right), rule


def _is_value(node: ast.expr) -> bool:
    """Whether a call is a method of a tensor, and not a function of a module."""
    return not (isinstance(node, ast.Name) and node.id in ("torch", "F", "self", "math"))


def _is_place(node: ast.Constant, tree: ast.Module) -> bool:
    """Whether a constant names a dimension or a position: another one is an error, not a value."""
    for parent in ast.walk(tree):
        if isinstance(parent, ast.Subscript) and node in ast.walk(parent.slice):
            return True
        if (
            isinstance(parent, ast.keyword)
            and parent.arg in ("dim", "dims")
            and parent.value is node
        ):
            return True
    return False


def _rule_of_keyword(keyword: ast.keyword) -> str:
    name = keyword.arg or ""
    if name in _DEFAULTS:
        return "PyTorch's default is the same"
    return {
        "device": "the tensors lie on the CPU anyway",
        "dtype": "every value is exact in the wider type",
        "out_dtype": "every value is exact in the wider type",
        "stable": "PyTorch's sort of short rows is stable",
    }.get(name, "")


def _rule_of_call(name: str) -> str:
    if name in _CASTS:
        return "every value is exact in the other type, or it is rounded later"
    if name in _COPIES:
        return "a copy does not change values"
    if name in _SHAPES:
        return "the other shape holds the same values"
    if name in _GUARDS:
        return "it guards masked places, which are not in the answer"
    return ""


def _rule_in(node: ast.AST, tree: ast.Module) -> str:
    """The rule of a change within the arguments of a guard, a cast or a keyword."""
    for parent in ast.walk(tree):
        if not isinstance(parent, ast.Call):
            continue
        name = parent.func.attr if isinstance(parent.func, ast.Attribute) else ""
        if name in _GUARDS and any(node in ast.walk(arg) for arg in parent.args):
            return _rule_of_call(name)
        if name in _SHAPES and any(node in ast.walk(arg) for arg in parent.args):
            return "the other shape holds the same values"
    return ""


def _at(tree: ast.Module, index: int) -> ast.AST:
    return next(node for i, node in enumerate(ast.walk(tree)) if i == index)


def _become(node: ast.AST, other: ast.AST) -> None:
    """Turns a node into another one, in place."""
    node.__class__ = other.__class__
    fields = {name: getattr(other, name) for name in (*other._fields, *other._attributes)}
    node.__dict__.clear()
    node.__dict__.update(fields)


def _swap(node: ast.BinOp) -> None:
    node.op = _SWAPPED[type(node.op)]()


def _move(node: ast.Compare) -> None:
    node.ops = [_BOUNDS[type(node.ops[0])]()]


def _shift(node: ast.Constant) -> None:
    assert isinstance(node.value, float)
    node.value = node.value * SHIFT if node.value else 0.01


def _drop_keyword(place: int, node: ast.Call) -> None:
    del node.keywords[place]


def _drop_call(node: ast.Call) -> None:
    assert isinstance(node.func, ast.Attribute)
    _become(node, node.func.value)


def _passes(problem: Problem, mutant: Mutant, cases: Sequence[Expected]) -> bool:
    """Whether the judge accepts a mutant's answers on every case. An exception is a refusal."""
    try:
        function = _compiled(problem, mutant)
        return all(_accepted(problem, function, case) for case in cases)
    except Exception:  # a mutant may raise anything
        return False


def _accepted(problem: Problem, function: Reference, case: Expected) -> bool:
    with torch.no_grad(), torch.random.fork_rng():
        answer = function(problem, **copied(case.inputs))
    form = [(out.shape, out.dtype) for out in case.reference]
    if [(out.shape, out.dtype) for out in answer] != form:
        return False
    return compare(problem, case, tuple(out.contiguous() for out in answer)).passed


def _compiled(problem: Problem, mutant: Mutant) -> Reference:
    tree = ast.fix_missing_locations(mutant.tree)
    module = sys.modules[type(problem).reference.__module__]
    scope: dict[str, Any] = dict(vars(module))
    exec(compile(ast.unparse(tree), "<mutant>", "exec"), scope)
    function: Reference = scope["reference"]
    return function
