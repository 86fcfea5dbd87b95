"""Code that problems share is part of the content of each."""

import inspect
import re
from pathlib import Path

import pytest

from kernel_gym.tasks import (
    Kind,
    Scale,
    Split,
    Workload,
    get_problem,
    make_inputs,
    problem_names,
    train_workloads,
)
from kernel_gym.tasks.shared.scalars import one_of


def test_shared_modules_and_base_classes_decide_a_problem():
    texts = "\n".join(get_problem("dropout").content())
    assert "class Dropout" in texts
    assert "def philox_words" in texts
    assert texts.count("def philox_words") == 1
    heir = "\n".join(get_problem("fp8_block_matmul_ocp").content())
    assert "class Fp8BlockMatmulOcp" in heir
    assert "class Fp8BlockMatmul(Problem)" in heir
    assert "class Problem(" not in heir


@pytest.mark.parametrize("name", problem_names())
def test_every_file_of_the_folder_but_the_verdict_decides_a_problem(name):
    problem = get_problem(name)
    names = {text.partition("\n")[0] for text in problem.content()}
    paths = [path for path in problem.folder.rglob("*") if path.is_file()]
    files = {path.relative_to(problem.folder).as_posix() for path in paths}
    kept = {name for name in files if "__pycache__" not in name}
    assert kept - {"admission.json"} == names & kept
    assert {"problem.py", "ranges.toml"} <= names


def test_scalars_vary_by_workload_and_not_by_seed():
    workloads = [Workload({"rows": n}, Split.TRAIN, Kind.TRAIN) for n in range(1, 50)]
    drawn = [one_of("eps", (1e-6, 1e-5, 1e-3), workload) for workload in workloads]
    assert set(drawn) == {1e-6, 1e-5, 1e-3}
    assert drawn == [one_of("eps", (1e-6, 1e-5, 1e-3), workload) for workload in workloads]
    others = [one_of("scale", (1e-6, 1e-5, 1e-3), workload) for workload in workloads]
    assert drawn != others


def test_scalar_arguments_that_vary_are_declared():
    """Else the control "fixed argument" does not apply to them."""
    for name in problem_names():
        source = Path(inspect.getfile(type(get_problem(name)))).read_text(encoding="utf-8")
        drawn = set(re.findall(r'"(\w+)": one_of\(', source))
        assert not drawn & {arg.name for arg in get_problem(name).args}, name


@pytest.mark.parametrize("name", [n for n in problem_names() if get_problem(n).declared])
def test_declared_scalars_have_several_values_in_train(name):
    problem = get_problem(name)
    calls = [make_inputs(problem, w, 0) for w in train_workloads(problem, Scale.SIM)]
    declared = [arg.name for arg in problem.declared]
    assert [arg for arg in declared if len({call[arg] for call in calls}) == 1] == []
