"""A user's request is read from files and texts, and bad input is named."""

import pytest

from kernel_gym.imports.authoring.request import (
    RequestError,
    TracingRequest,
    find_sizes,
    parse_shapes,
    parse_sizes,
    read_files,
    snake,
)

SOURCE = """
batch, width = 4, 8
rows = 2048 * 2
shape = (16, 32)
label = "x"


def make(tokens=7, name="y"):
    return torch.rand(tokens, 3, width)
"""


def test_sizes_are_found_in_the_syntax_tree():
    sizes_of_file = find_sizes(TracingRequest({"m.py": SOURCE}, "m.py:Block", "m.py:make"))
    sizes = {"batch": 4, "width": 8, "rows": 4096, "shape_0": 16, "shape_1": 32}
    assert sizes_of_file.values == {**sizes, "tokens": 7, "size_0": 3}
    assert [name for *_, name in sizes_of_file.literals] == ["shape_0", "shape_1", "size_0"]


def test_shapes_are_parsed():
    x, index = parse_shapes("x: float16[batch, 4096]; index: int64 < 50 [batch]")
    assert (x.name, x.dtype, x.shape) == ("x", "float16", ("batch", 4096))
    assert (index.count, index.shape) == (50, ("batch",))


@pytest.mark.parametrize(
    "text", ["", "x", "x: float16", "x: float7[3]", "x: float16[a b]", "x: float16[-1]"]
)
def test_wrong_shapes_are_named(text):
    with pytest.raises(RequestError, match="--shapes"):
        parse_shapes(text)


def test_sizes_are_parsed():
    assert parse_sizes("batch=4, seq=512") == {"batch": 4, "seq": 512}
    with pytest.raises(RequestError, match="--sizes"):
        parse_sizes("batch=four")


def test_files_beside_the_target_come_with_it(tmp_path):
    (tmp_path / "model.py").write_text("import parts")
    (tmp_path / "parts.py").write_text("x = 1")
    files, names = read_files([f"{tmp_path}/model.py:Block"])
    assert (set(files), names) == ({"model.py", "parts.py"}, ["model.py:Block"])


@pytest.mark.parametrize("name", ["model.py", "model:Block", "model.py:1x"])
def test_a_wrong_name_is_named(name):
    with pytest.raises(RequestError, match="expected FILE"):
        read_files([name])


def test_a_file_that_does_not_parse_is_named(tmp_path):
    (tmp_path / "model.py").write_text("def f(:")
    with pytest.raises(RequestError, match="line 1"):
        read_files([f"{tmp_path}/model.py:f"])


def test_names_in_lower_case():
    assert [snake(n) for n in ("GatedMLP", "RMSNormBlock", "f")] == [
        "gated_mlp",
        "rms_norm_block",
        "f",
    ]


def test_sizes_in_repeated_lists_are_found():
    source = (
        "import torch\nlayers = [64, 128] * 3\n\n\ndef make():\n    return [torch.rand(4, 8)]\n"
    )
    sizes = find_sizes(TracingRequest({"m.py": source}, "m.py:make", "m.py:make"))
    assert (sizes.values["layers_0"], sizes.values["layers_1"]) == (64, 128)
