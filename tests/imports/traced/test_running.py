"""Running checked graphs: values, arguments that are written to, devices and costs."""

import sys

import pytest
import torch

from kernel_gym.imports.traced.graph import GraphError, parse_trace
from kernel_gym.imports.traced.problem import TracedProblem
from kernel_gym.imports.traced.running import cost_of, run_graph


def graph(nodes, *outputs):
    forward = {"nodes": nodes, "outputs": [{"v": number} for number in outputs]}
    construction = {"nodes": [], "outputs": {}}
    return parse_trace({"forward": forward, "construction": construction, "kinds": {}}).forward


X = {"op": "argument", "name": "x"}


def call(name, *args, **kwargs):
    return {"op": f"aten.{name}", "args": list(args), "kwargs": kwargs}


def test_a_written_argument_is_not_changed():
    written = graph([X, call("add_.Tensor", {"v": 0}, 1.0)], 1)
    x = torch.zeros(3)
    assert run_graph(written, {"x": x})[0].tolist() == [1.0, 1.0, 1.0]
    assert x.tolist() == [0.0, 0.0, 0.0]


def test_items_constants_and_special_numbers():
    nodes = [
        X,
        call("unbind.int", {"v": 0}),
        {"op": "item", "args": [{"v": 1}, 1]},
        {"op": "constant", "data": [2.0, {"float": "inf"}], "shape": [2], "dtype": "float32"},
        call("mul.Tensor", {"v": 2}, {"v": 3}),
    ]
    (out,) = run_graph(graph(nodes, 4), {"x": torch.tensor([[5.0, 5.0], [3.0, 1.0]])})
    assert out.tolist() == [6.0, float("inf")]


def test_what_is_made_lies_on_the_device_of_the_arguments():
    nodes = [
        X,
        call("arange.default", 4),
        call("to.device", {"v": 0}, {"torch": None}, {"torch": "float64"}),
        {"op": "constant", "data": [1.0], "shape": [], "dtype": "float32"},
    ]
    outputs = run_graph(graph(nodes, 1, 2, 3), {"x": torch.empty(4, device="meta")})
    assert [out.device.type for out in outputs] == ["meta"] * 3
    assert outputs[1].dtype is torch.float64


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ([{"op": "argument", "name": "y"}], "found no argument 'y'"),
        ([X, {"op": "constant", "dtype": "float32"}], "made outside of the function"),
        ([X, call("sum.default", {"v": 0}, dtype={"torch": "load"})], "expected a dtype"),
        ([X, {"op": "unused"}], "found a node 'unused'"),
        ([X, call("unbind.int", {"v": 0})], "an output is no tensor"),
        ([X, call("add.Tensor", {"v": 0}, {"other": 1})], "an unknown argument"),
    ],
)
def test_nodes_that_cannot_be_run(nodes, message):
    with pytest.raises(GraphError, match=message):
        run_graph(graph(nodes, len(nodes) - 1), {"x": torch.zeros(2)})


def test_costs_count_what_is_alive_at_the_same_time():
    doubled = [X, *(call("add.Tensor", {"v": n}, {"v": n}) for n in range(5))]
    values = {"x": torch.zeros(10)}
    chain, all_kept = graph(doubled, 5), graph(doubled, *range(6))
    assert cost_of(chain, values).operations == 50
    assert cost_of(chain, values).peak_bytes == 80  # an operand and the result
    assert cost_of(all_kept, values).peak_bytes == 240


def test_costs_of_large_results_are_found_without_memory():
    cost = cost_of(graph([X, call("ones.default", [1 << 20, 1 << 20])], 1), {"x": torch.zeros(1)})
    assert cost.operations == 1 << 40
    assert cost.peak_bytes >= 1 << 42


def test_products_cost_their_flops():
    product = graph([X, call("mm.default", {"v": 0}, {"v": 0})], 1)
    assert cost_of(product, {"x": torch.zeros(8, 8)}).operations == 2 * 8**3


def nested(depth):
    value = 1
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("forward", "message"),
    [
        (None, "found no forward"),
        ([], "found no forward"),
        ({"nodes": [], "outputs": 5}, "found no outputs"),
        ({"nodes": [], "outputs": [5]}, "an output is no tensor"),
        ({"nodes": [X, call("abs.default", {"v": True})], "outputs": []}, "refers to a later one"),
        ({"nodes": [X, call("abs.default", nested(5000))], "outputs": []}, "too deeply"),
    ],
)
def test_malformed_traces_are_refused(forward, message, request):
    limit = sys.getrecursionlimit()  # other tests of this process may have raised it
    request.addfinalizer(lambda: sys.setrecursionlimit(limit))
    sys.setrecursionlimit(1000)
    data = {"construction": {"nodes": [], "outputs": {}}, "forward": forward, "kinds": {}}
    with pytest.raises(GraphError, match=message):
        parse_trace(data)


def test_intermediate_results_of_a_composed_operator_are_counted():
    """The norm of each row is kept beside the product that it is computed from."""
    nodes = [X, call("cosine_similarity.default", {"v": 0}, {"v": 0})]
    rows = {"x": torch.empty(4, 1 << 20)}
    assert cost_of(graph(nodes, 1), rows).peak_bytes >= 2 * rows["x"].nbytes


@pytest.mark.parametrize(
    "node",
    [
        call("unbind.int", {"v": 1}),
        call("split.Tensor", {"v": 1}, 1),
        call("tensor_split.sections", {"v": 0}, 1 << 40),
        call("chunk.default", {"v": 1}, 1 << 40),
        call("gradient.scalarint", {"v": 1}),
    ],
)
def test_operators_with_too_many_results_are_refused_before_they_run(node):
    wide = call("expand.default", {"v": 0}, [1 << 40, 2])
    forward = graph([X, wide, node, {"op": "item", "args": [{"v": 2}, 0]}], 3)
    with pytest.raises(GraphError, match="more than 65536 steps"):
        cost_of(forward, {"x": torch.zeros(2)})


@pytest.mark.parametrize(
    "node",
    [
        call("chunk.default", {"v": 0}, 2, -1),
        call("split.Tensor", {"v": 0}, 1 << 19, -1),
        call("split_with_sizes.default", {"v": 0}, [1 << 19, 1 << 19], -1),
        call("tensor_split.indices", {"v": 0}, [1 << 19], -1),
        call("unbind.int", {"v": 0}, 0),
    ],
)
def test_a_large_tensor_in_few_parts_is_taken(node):
    forward = graph([X, node, {"op": "item", "args": [{"v": 1}, 1]}], 2)
    assert cost_of(forward, {"x": torch.empty(4, 1 << 20, device="meta")}).peak_bytes > 0


def test_many_operators_with_few_results_each_are_bounded_together():
    parts = [X, *(call("unbind.int", {"v": 0}) for _ in range(3))]
    with pytest.raises(GraphError, match="more than 65536 tensors"):
        cost_of(graph(parts, 0), {"x": torch.zeros(30_000)})


def test_a_form_feed_in_a_text_moves_no_line():
    text = (
        "class Scale:\n    \x0c\n    def reference(\n        self,\n        x,\n    ):\n"
        "        return x\n"
        "\n    def other(self):\n        return 0\n"
    )
    fields = {"text": text, "entry": "scale", "inputs": None, "reference": None}
    kind = type("Scale", (TracedProblem,), fields)
    source = kind.reference_source(object.__new__(kind))
    assert "def scale(\n    x,\n):\n    return x" in source
    assert "other" not in source
