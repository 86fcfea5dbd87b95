"""A trace from another process is parsed strictly: only operators that touch nothing else."""

import pytest
import torch

from kernel_gym.imports.traced.graph import (
    MAX_ELEMENTS,
    MAX_NODES,
    GraphError,
    Node,
    is_random,
    operator,
    parse_trace,
)
from kernel_gym.tasks.dispatcher import NUMBERS, TENSORS, TYPES, dispatcher_operator, is_word


def trace(op="aten.relu.default", args=None, outputs=None):
    args = [{"v": 0}] if args is None else args
    argument = {"op": "argument", "name": "x", "shape": [2], "dtype": "float32"}
    nodes = [argument, {"op": op, "args": args, "kwargs": {}, "shape": [2], "dtype": "float32"}]
    return {
        "construction": {"nodes": [], "outputs": {}},
        "forward": {"nodes": nodes, "outputs": outputs or [{"v": 1}]},
        "kinds": {"x": "input"},
        "doc": "",
        "call": {},
    }


def test_a_plain_graph_is_taken():
    assert parse_trace(trace()).forward.nodes[1].op == "aten.relu.default"


@pytest.mark.parametrize(
    "op",
    [
        "aten.from_file.default",
        "aten.set_.source_Tensor",
        "aten.as_strided.default",
        "aten.resize_.default",
        "aten._foreach_add.Scalar",
        "prims.add.default",
        "mine.load.default",
        "aten.no_such_operator.default",
        "os.system",
        "aten.relu.default; import os",
        "aten.bincount.default",
        "aten.repeat_interleave.Tensor",
        "aten.nonzero.default",
    ],
)
def test_other_operators_are_refused(op):
    with pytest.raises(GraphError):
        parse_trace(trace(op))


@pytest.mark.parametrize(
    "change",
    [
        {"args": [{"v": 1}]},
        {"args": [{"v": -1}]},
        {"args": [{"v": "0"}]},
        {"outputs": [{"v": 7}]},
        {"outputs": [3]},
    ],
)
def test_wrong_references_are_refused(change):
    with pytest.raises(GraphError):
        parse_trace(trace(**change))


def test_a_name_must_be_an_identifier():
    data = trace()
    data["forward"]["nodes"][0]["name"] = "x); import os; ("
    with pytest.raises(GraphError, match="identifier"):
        parse_trace(data)


def test_a_dropout_that_drops_nothing_is_not_random():
    random = Node(op="aten.dropout.default", args=[{"v": 0}, 0.5, True])
    assert is_random(random)
    assert not is_random(random.model_copy(update={"args": [{"v": 0}, 0.5, False]}))
    assert not is_random(random.model_copy(update={"args": [{"v": 0}, 0.0, True]}))


def test_operators_are_found_by_name():
    assert str(operator("aten.add.Tensor")) == "aten.add.Tensor"


def overloads():
    """All operators that PyTorch has under `torch.ops.aten`, TorchScript's too."""
    for schema in torch._C._jit_get_all_schemas():
        if schema.name.startswith("aten::"):
            yield schema.name[6:], schema.overload_name or "default"


def test_no_operator_of_torchscript_is_taken():
    known = set(torch._C._dispatch_get_all_op_names())
    foreign = []
    for packet, overload in overloads():
        full = f"aten::{packet}" + ("" if overload == "default" else f".{overload}")
        if full not in known:
            foreign.append((packet, overload))
    assert len(foreign) > 264
    for packet, overload in foreign:
        assert dispatcher_operator(packet, overload, numbers=True) is None
        with pytest.raises(GraphError):
            operator(f"aten.{packet}.{overload}")


def test_what_is_taken_has_tensors_and_numbers_in_and_tensors_out():
    taken = [dispatcher_operator(*names) for names in overloads()]
    schemas = [one._schema for one in taken if one is not None]
    assert len(schemas) > 1500
    assert {str(a.real_type) for s in schemas for a in s.arguments} <= TYPES
    assert {str(r.type) for s in schemas for r in s.returns} <= TENSORS
    assert all(s.returns for s in schemas)


def test_operators_that_return_numbers_are_taken_where_they_are_asked_for():
    assert dispatcher_operator("equal", "default") is None
    taken = dispatcher_operator("equal", "default", numbers=True)
    assert taken is not None
    assert str(taken._schema.returns[0].type) in NUMBERS


@pytest.mark.parametrize(
    "op",
    """aten.ljust.default aten.zfill.default aten.save.default aten.append.t
    aten.manual_seed.default
    aten.warn.default aten.wait.default aten.set_grad_enabled.default aten.add.str aten.mul.left_t
    aten.tensor.default aten.item.default aten.size.int aten.equal.default aten.to_sparse.default
    aten.cudnn_convolution.default aten.quantize_per_tensor.default""".split(),
)
def test_operators_on_other_things_than_tensors_are_refused(op):
    with pytest.raises(GraphError, match="not taken"):
        parse_trace(trace(op))


@pytest.mark.parametrize(
    ("op", "args", "message"),
    [
        ("aten.relu.default", ["/etc/passwd"], "takes no text"),
        ("aten.div.Tensor_mode", [{"v": 0}, {"v": 0}, "x"], "takes no text"),
        ("aten.einsum.default", ["a" * 300, [{"v": 0}]], "takes no text"),
        ("aten.to.dtype", [{"v": 0}, 12], "takes no number as its 'dtype'"),
        ("aten.relu.default", [{"v": 0}, 1], "does not take these arguments"),
        ("aten.view.default", [{"v": 0}, [1] * (MAX_ELEMENTS + 1)], "values"),
        ("aten.view.default", [{"v": 0}, [1 << 64]], "64 bits"),
        ("aten.view.default", [{"v": 0}, {"float": "9" * 1000}], "unknown argument"),
    ],
)
def test_arguments_are_bounded_and_of_the_stated_kind(op, args, message):
    with pytest.raises(GraphError, match=message):
        parse_trace(trace(op, args))


def test_words_of_operators_are_taken():
    for op, args in [
        ("aten.einsum.default", ["bij, bjk -> bik", [{"v": 0}, {"v": 0}]]),
        ("aten.to.dtype", [{"v": 0}, {"torch": "float16"}]),
    ]:
        assert parse_trace(trace(op, args)).forward.nodes[1].op == op


def test_nodes_and_constants_are_bounded():
    data = trace()
    data["forward"]["nodes"] += [{"op": "unused"}] * MAX_NODES
    with pytest.raises(GraphError, match="nodes"):
        parse_trace(data)
    data = trace()
    data["forward"]["nodes"][0]["data"] = [0.0] * (MAX_ELEMENTS + 1)
    with pytest.raises(GraphError, match="data"):
        parse_trace(data)


def test_checks_of_solvers_are_taken_from_suites_only():
    assert dispatcher_operator("_linalg_check_errors", "default", numbers=True) is not None
    assert dispatcher_operator("_linalg_check_errors", "default") is None
    assert is_word("_linalg_check_errors", "linalg.cholesky")
    assert not is_word("_linalg_check_errors", "../a file")
    assert not is_word("add", "linalg.cholesky")
