"""Predictions as suites publish them: rows without a file, passes, memories and workspaces."""

import json

import pytest

from kernel_gym.imports.manifest import Manifest, write_manifest
from kernel_gym.imports.prediction_rows import PredictionError, plain
from kernel_gym.imports.predictions import read_predictions
from kernel_gym.imports.readers.halves import SEPARATOR
from kernel_gym.imports.readers.task_lists import listed_tasks
from kernel_gym.tasks.names import IMPORTS
from tests.imports.readers.suites import write

WORDS = "Functional Description: {}\nWrapper Entry Information: f(x) -> Tensor"


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A checkout with the lists of TritonBench, known by manifests without tasks."""
    codes = [{"file": f"{name}.py", "output": f"{name} = 1\nend\n"} for name in "abc"]
    codes[2]["output"] = codes[1]["output"]
    prompts = [{"instruction": f"Write {c['file']}", "output": c["output"]} for c in codes]
    prompts[0]["output"] = "a = 2\n"
    functions = [{"file": f"{n}.py", "description": f"It is\n{n}."} for n in ("sin", "cos")]
    described = [{"instruction": WORDS.format(f"It is\n{n}.")} for n in ("cos", "sin")]
    lists = {
        "TritonBench_G_v1.json": codes,
        "TritonBench_G_comp_alpac_v1.json": prompts,
        "TritonBench_T_v1.jsonl": functions,
        "TritonBench_T_comp_alpac_v1.json": described,
    }
    folder = tmp_path / "checkout"
    write(folder, {f"data/{name}": json.dumps(rows) for name, rows in lists.items()})
    monkeypatch.setenv(IMPORTS, str(tmp_path / "imports"))
    for suite in ("tritonbench-g", "tritonbench-t"):
        write_manifest(Manifest(suite=suite, checkout=str(folder), commit="", licence="", tasks={}))
    return folder


def lines(path, *rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_lists_pair_tasks_with_prompts(checkout):
    g = listed_tasks("tritonbench-g", checkout)
    assert [(one.file, one.instruction) for one in g][:2] == [
        ("a.py", "Write a.py"),
        ("b.py", "Write b.py"),
    ]
    assert g[0].label == "a = 2\n"
    t = listed_tasks("tritonbench-t", checkout)
    assert [(one.file, "sin" in one.instruction) for one in t] == [
        ("sin.py", True),
        ("cos.py", False),
    ]


def test_rows_without_a_file_are_found_by_label(checkout, tmp_path):
    rows = [
        {"instruction": "?", "predict": "first", "label": "b = 1<|EOT|>"},  # cut off
        {"prompt": "?", "predict": "second", "label": "b = 1\nend\n"},  # the next of two
        {"instruction": "?", "predict": "third", "label": "a = 2\n"},
    ]
    sources = read_predictions(lines(tmp_path / "p.jsonl", *rows))
    assert sources == {"b.py": ["first"], "c.py": ["second"], "a.py": ["third"]}


def test_rows_without_a_label_are_found_by_their_description(checkout, tmp_path):
    before = WORDS.format("It is\nsin.")  # an example that a retriever has put before
    row = {"prompt": f"{before}\n{WORDS.format('It is cos.'.replace(' cos', chr(10) + 'cos'))}"}
    row |= {"predict": "x", "label": ""}
    assert read_predictions(lines(tmp_path / "p.jsonl", row)) == {"cos.py": ["x"]}


@pytest.mark.parametrize(
    "row",
    [
        {"instruction": "?", "predict": "x", "label": "unknown"},
        {"instruction": "?", "predict": "x", "label": ""},
        {"instruction": "?", "predict": "x", "label": 3},
        {"instruction": WORDS.format("It is tan."), "predict": "x", "label": ""},
    ],
)
def test_a_row_that_fits_no_task_is_told(checkout, tmp_path, row):
    with pytest.raises(PredictionError, match=r"row 1: .*it fits no task"):
        read_predictions(lines(tmp_path / "p.jsonl", row))


def test_rows_need_an_imported_suite(tmp_path, monkeypatch):
    monkeypatch.setenv(IMPORTS, str(tmp_path / "imports"))
    path = lines(tmp_path / "p.jsonl", {"predict": "x", "label": "y"})
    with pytest.raises(PredictionError, match="no suite with such labels was imported"):
        read_predictions(path)


@pytest.mark.parametrize(
    ("text", "source"),
    [
        ("Here:\n```python\nx = 1\n```\nDone.", "x = 1\n"),
        ("```\nx = 1\n```", "x = 1\n"),
        ("x = 1<|im_end|>", "x = 1"),
        (f"x = 1\n{SEPARATOR}\ntest()", "x = 1"),
    ],
)
def test_a_source_has_no_fence_end_token_or_tests(text, source):
    assert plain(text) == source


def test_each_file_of_a_folder_is_a_pass(tmp_path):
    for number in (0, 1):
        lines(tmp_path / f"pass_{number}.json", {"file": "a.py", "predict": f"x = {number}"})
    (tmp_path / "all_passes.json").write_text(json.dumps([{"file_name": "a.py"}]))
    assert read_predictions(tmp_path) == {"a.py": ["x = 0", "x = 1"]}


def test_sources_are_predictions_for_their_names(tmp_path):
    write(tmp_path, {"Activation/gelu.py": "x = 1", "b.py": f"y\n{SEPARATOR}\ntests"})
    assert read_predictions(tmp_path) == {"gelu.py": ["x = 1"], "b.py": ["y"]}
    assert read_predictions(tmp_path / "b.py") == {"b.py": ["y"]}


def test_kernels_in_an_agents_memory_are_samples(tmp_path):
    memory = {
        "a.py": {
            "perf_candidates": [["fast", 2.0, 0.1, None, None], ["slow", 1.0, 0.1, None, None]],
            "exe_candidate": "slow",
            "call_candidate": "runs",
        },
        "b.py": {"perf_candidates": [], "exe_candidate": None, "call_candidate": "runs"},
        "c.py": {"perf_candidates": [7, [None]], "exe_candidate": 3, "call_candidate": None},
    }
    path = tmp_path / "mem_3.json"
    path.write_text(json.dumps(memory))
    assert read_predictions(path) == {"a.py": ["fast", "slow", "runs"], "b.py": ["runs"]}


def test_workspaces_of_the_arena_hold_kernels(tmp_path):
    name = "triton2triton/vllm/one"
    write(
        tmp_path / "one_20260101_000000",
        {
            "task_result.yaml": f"task_name: {name}\n",
            "config.yaml": "source_file_path: [source/add.py]\n",
            "source/add.py": "x = 1\n",
        },
    )
    assert read_predictions(tmp_path) == {f"tasks/{name}/source/add.py": ["x = 1\n"]}
    (tmp_path / "one_20260101_000000/config.yaml").write_text("source_file_path: [../../secret]\n")
    (tmp_path.parent / "secret").write_text("s")
    with pytest.raises(PredictionError, match="leads out"):
        read_predictions(tmp_path)
    for broken in ("a: [", "[1]", "task_name: x"):
        write(tmp_path / "one_20260101_000000", {"task_result.yaml": broken, "config.yaml": "{}"})
        with pytest.raises(PredictionError, match="found no task"):
            read_predictions(tmp_path)
