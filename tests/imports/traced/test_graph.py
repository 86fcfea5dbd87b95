"""A trace from another process is parsed strictly: only operators that touch nothing else."""

import pytest

from kernel_gym.imports.traced.graph import GraphError, Node, is_random, operator, parse_trace


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
