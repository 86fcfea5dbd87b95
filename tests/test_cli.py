"""The command line, as a user meets it."""

import errno
import importlib.metadata
import importlib.util
import json
import os
import shutil
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from kernel_gym.cli import app
from kernel_gym.commands.errors import one_line_errors
from kernel_gym.devices import device_status
from kernel_gym.exploits import runner as exploits
from kernel_gym.storage.run_store import RunStore
from kernel_gym.tasks import get_task, load_suite
from kernel_gym.tasks.task import kernel_path

TASK = "triton2triton/softmax"
DEVICE = "sim:gfx942"
runner = CliRunner()


def run(*arguments, code=0):
    """Runs a command and checks its exit code."""
    result = runner.invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == code, (result.output, result.exception)
    return result


@pytest.fixture
def kernels(tmp_path):
    """A folder policy with one good and one wrong kernel for softmax."""
    folder = tmp_path / "kernels" / TASK
    folder.mkdir(parents=True)
    source = get_task(TASK).start_source
    (folder / "1_wrong.py").write_text("def softmax(x):\n    return x\n")
    (folder / "2_good.py").write_text(source)
    return tmp_path / "kernels"


@pytest.fixture
def suite(tmp_path):
    """A suite of one task."""
    path = tmp_path / "one.toml"
    path.write_text(f'name = "one"\nsummary = "One task."\ntasks = ["{TASK}"]\n')
    return path


@pytest.mark.parametrize(
    "command", ["doctor", "tasks", "check", "plan", "eval", "compare", "exploits", "report"]
)
def test_help_has_an_example(command):
    assert "kernel-gym " + command in run(command, "--help").output


def test_the_help_says_how_a_model_of_a_server_is_named():
    assert "#NAME" in run("eval", "--help").output


def test_doctor_names_what_another_pytorch_needs_where_no_compiler_is(tmp_path):
    """The device for PyTorch is built for one version, and has to be built for others."""
    other = tmp_path / "torch-99.0.dist-info"
    other.mkdir()
    (other / "METADATA").write_text("Metadata-Version: 2.1\nName: torch\nVersion: 99.0\n")
    (tmp_path / "bin").mkdir()
    environment = {"PATH": f"{tmp_path}/bin", "HOME": str(tmp_path), "PYTHONPATH": str(tmp_path)}
    command = [sys.executable, "-m", "kernel_gym", "doctor"]
    result = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert "the device for PyTorch cannot be built: found no C++ compiler" in result.stdout
    assert "workers are confined by: nothing" in result.stdout
    assert "Traceback" not in result.stderr


def test_doctor_tells_devices_and_versions():
    data = json.loads(run("doctor", "--json").stdout)
    assert data["devices"][0]["name"] == DEVICE
    assert data["devices"][0]["clock"] == "modelled"
    assert data["versions"]["torch"] != "missing"
    assert set(data["confinement"]) == {"active", "missing"}
    assert data["triton"]["version"] == data["versions"]["triton"]
    assert data["triton"]["problem"] == ""
    assert data["triton"]["environment"]["TRITON_HIP_USE_BLOCK_PINGPONG"] == "0"
    shown = run("doctor").stdout
    assert DEVICE in shown
    assert f"triton {data['triton']['version']} with" in shown
    assert "workers are confined by" in shown
    assert set(data["languages"]) == {"flydsl", "tilelang"}
    for row in data["languages"].values():
        state = row["problem"] or f"{row['version']}, for tasks on simulated devices"
        assert f"{row['language']}: {state}" in shown


def test_doctor_names_the_command_that_installs_a_language(monkeypatch, capsys):
    from kernel_gym.commands import doctor

    real = importlib.util.find_spec

    def hidden(name, *rest):
        return None if name == "flydsl" else real(name, *rest)

    monkeypatch.setattr(importlib.util, "find_spec", hidden)
    monkeypatch.setattr(importlib.metadata, "version", lambda name: "9.9")
    languages = doctor.embedded_languages()
    doctor._show_languages(languages)
    shown = capsys.readouterr().out
    assert "FlyDSL: flydsl is missing; pip install 'kernel-gym[flydsl]'" in shown
    if real("tilelang") is not None:
        assert "TileLang: TileLang 9.9 is installed, expected 0.1.15; pip install" in shown


def test_doctor_precompiles_the_headers_of_extensions(monkeypatch, tmp_path, capsys):
    from kernel_gym.commands import doctor
    from kernel_gym.devices import hip_build
    from kernel_gym.devices.base import InfraError

    if "hip" not in device_status(DEVICE).languages:
        pytest.skip("no HIP toolchain: see kernel-gym doctor")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    devices = [device_status(DEVICE)]
    doctor._show_headers(doctor.extension_headers(devices))
    assert "kernel-gym doctor --prepare" in capsys.readouterr().out
    prepared = []
    monkeypatch.setattr(hip_build, "prepare_extension_headers", prepared.append)
    monkeypatch.setattr(hip_build, "has_extension_headers", prepared.__contains__)
    doctor._show_headers(doctor.extension_headers(devices, prepare=True))
    assert "are precompiled for extensions" in capsys.readouterr().out

    def broken(arch):
        raise InfraError("PyTorch's headers do not compile")

    monkeypatch.setattr(hip_build, "prepare_extension_headers", broken)
    assert "headers do not compile" in run("doctor", "--prepare", code=1).stderr


def test_a_suite_of_exploits_that_is_not_there_is_bad_input(tmp_path):
    refused = run("exploits", "--suite", str(tmp_path / "none"), code=2)
    assert "no such folder" in refused.output


@pytest.mark.parametrize("kind", [(), ("--agents",), ("--generate", "1")])
def test_a_name_that_selects_no_exploit_is_bad_input(kind):
    refused = run("exploits", "--only", "no_such_name*", "--device", DEVICE, *kind, code=2)
    assert "matches 'no_such_name*'" in refused.output


def test_one_exploit_is_blocked_and_told():
    result = run("exploits", "--only", "c01_uninit*", "--device", DEVICE, "--json")
    data = json.loads(result.stdout)
    assert (data["exploits"], data["blocked"], data["false_alarms"]) == (1, 1, 0)
    assert data["findings"][0]["outcome"] == "wrong_values"


def test_exploits_that_were_stopped_are_told_and_gone_on_with(monkeypatch, tmp_path):
    play, played = exploits.run, []

    def stopped(executor, candidates):
        yield next(play(executor, candidates))
        raise KeyboardInterrupt

    def told(executor, candidates):
        played.extend(candidate.name for candidate in candidates)
        return play(executor, candidates)

    file = tmp_path / "found.jsonl"
    arguments = ("exploits", "--only", "c09*", "--device", DEVICE, "--json", "--out", str(file))
    monkeypatch.setattr("kernel_gym.exploits.runner.run", stopped)
    first_run = run(*arguments, code=130)
    (first,) = json.loads(first_run.stdout)["findings"]
    assert "stopped after 1 of" in first_run.stderr
    assert "is there already" in run(*arguments, code=2).stderr
    monkeypatch.setattr("kernel_gym.exploits.runner.run", told)
    data = json.loads(run(*arguments, "--resume").stdout)
    assert first in data["findings"]
    assert played == [f["name"] for f in data["findings"] if f != first] != []
    assert len(file.read_text().splitlines()) == data["exploits"] == data["blocked"]


def test_an_attack_of_an_agent_is_blocked():
    result = run("exploits", "--agents", "--only", "a04*", "--device", DEVICE, "--json")
    hostile, honest = json.loads(result.stdout)["attacks"]
    assert (hostile["outcomes"], hostile["gains"]) == (["compile_error"], [])
    assert honest["outcomes"] == ["passed", "passed"]
    assert "--agents goes with" in run("exploits", "--agents", "--mutate", "3", code=2).stderr


def test_exploits_go_on_from_a_file_alone():
    assert "give --out" in run("exploits", "--device", DEVICE, "--resume", code=2).stderr


def test_tasks_lists_all_or_a_suite():
    everything = json.loads(run("tasks", "--json").stdout)
    quickstart = json.loads(run("tasks", "list", "--suite", "quickstart", "--json").stdout)
    ids = [row["id"] for row in quickstart]
    assert ids == [task.id for task in load_suite("quickstart").tasks]
    assert set(ids) <= {row["id"] for row in everything}
    assert TASK in run("tasks").stdout


def test_a_task_is_shown_with_its_prompt():
    assert "softmax" in run("tasks", "show", TASK).stdout
    assert "Signature" in json.loads(run("tasks", "show", TASK, "--json").stdout)["prompt"]


@pytest.mark.parametrize(
    ("arguments", "near"),
    [
        (("tasks", "show", "triton2triton/softmaxx"), TASK),
        (("tasks", "list", "--suite", "quikstart"), "quickstart"),
        (("check", "triton2triton/softmaxx", __file__), TASK),
        (("check", TASK, __file__, "--device", "sim:gfx943"), DEVICE),
        (("eval", "--policy", "baselin", "--out", "OUT"), "baseline"),
        (("eval", "--policy", "baseline", "--out", "OUT", "--suite", "quikstart"), "quickstart"),
        (("eval", "--policy", "baseline", "--out", "OUT", "--reward", "kernel_op"), "kernel-opt"),
        (("eval", "--policy", "baseline", "--out", "OUT", "--device", "sim:gfx"), DEVICE),
    ],
)
def test_unknown_names_are_one_line_with_near_matches(arguments, near, tmp_path):
    out = tmp_path / "out"
    result = run(*(out if argument == "OUT" else argument for argument in arguments), code=2)
    assert result.stderr.startswith("error: unknown ")
    assert near in result.stderr
    assert result.stderr.count("\n") == 1
    assert not out.exists()


def test_other_bad_input_is_one_line_too(tmp_path, suite):
    out = tmp_path / "out"
    start = ("eval", "--policy", "folder:nowhere", "--out", out)
    assert "nowhere is no folder" in run(*start, code=2).stderr
    both = ("eval", "--policy", "baseline", "--out", out, "--resume", "--overwrite")
    assert "not both" in run(*both, code=2).stderr
    assert "holds no run" in run("report", tmp_path, code=2).stderr
    suite.write_text('name = "one"\nsummary = "One task."\ntasks = ["triton2triton/softmx"]\n')
    malformed = run("eval", "--policy", "baseline", "--suite", suite, "--out", out, code=2)
    assert "tasks.0" in malformed.stderr
    missing = run("eval", "--policy", "baseline", "--suite", "no.toml", "--out", out, code=2)
    assert missing.stderr == "error: no.toml: No such file or directory\n"
    gpu = run("check", TASK, __file__, "--device", "cuda:99", code=2)
    assert "`kernel-gym doctor`" in gpu.stderr
    assert gpu.stderr.count("\n") == 1
    run("eval", "--out", out, code=2)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written_is_one_line(tmp_path):
    tmp_path.chmod(0o500)
    arguments = ("eval", "--policy", "baseline", "--suite", TASK, "--device", DEVICE)
    result = run(*arguments, "--out", tmp_path / "run", code=2)
    assert result.stderr == f"error: {tmp_path / 'run'}: Permission denied\n"


def test_a_run_folder_in_a_file_is_one_line(tmp_path):
    (tmp_path / "file").write_text("")
    arguments = ("eval", "--policy", "baseline", "--suite", TASK, "--device", DEVICE)
    result = run(*arguments, "--out", tmp_path / "file" / "run", code=2)
    assert result.stderr == f"error: {tmp_path / 'file' / 'run'}: Not a directory\n"


def test_a_full_disk_ends_a_run_in_one_line_and_it_is_resumed(tmp_path, monkeypatch):
    append = RunStore.append

    def full(store, record, source):
        raise OSError(errno.ENOSPC, "No space left on device", str(store.folder))

    out = tmp_path / "run"
    arguments = ("eval", "--policy", "baseline", "--suite", TASK, "--device", DEVICE)
    arguments += ("--executor", "inline", "--out", out, "--resume")
    monkeypatch.setattr(RunStore, "append", full)
    result = run(*arguments, code=2)
    assert result.stderr.endswith(
        f"error: {out}: No space left on device; to continue, give the same command with --resume\n"
    )
    monkeypatch.setattr(RunStore, "append", append)
    assert json.loads(run(*arguments, "--json").stdout)["solved"] == 1


def test_sources_that_are_gone_are_one_line_of_a_report(tmp_path):
    out = tmp_path / "run"
    arguments = ("eval", "--policy", "baseline", "--suite", TASK, "--device", DEVICE)
    run(*arguments, "--executor", "inline", "--out", out)
    shutil.rmtree(out / "sources")
    assert "turn_1.py: No such file or directory" in run("report", out, code=2).stderr


def test_a_task_stands_for_a_suite_of_its_own():
    assert load_suite(TASK).tasks == (get_task(TASK),)
    assert [t.id for t in load_suite("generated:seed=1,depth=2").tasks] == [
        "triton2triton/generated:seed=1,depth=2"
    ]
    rows = json.loads(run("tasks", "list", "--suite", TASK, "--json").stdout)
    assert [row["id"] for row in rows] == [TASK]


def test_an_error_of_the_program_is_no_bad_input():
    for error in (RuntimeError("ours"), OSError("ours"), KeyError("ours")):
        with pytest.raises(type(error)), one_line_errors():
            raise error


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("kernel-gym check triton2triton/softm", TASK),
        ("kernel-gym eval --suite quick", "quickstart"),
        ("kernel-gym eval --policy refl", "reflective:"),
        ("kernel-gym check --device sim:gfx9", DEVICE),
        ("kernel-gym rescore --reward kev", "kevin"),
    ],
)
def test_a_shell_completes_names(words, offered):
    variables = {"_KERNEL_GYM_COMPLETE": "complete_bash", "COMP_WORDS": words}
    variables["COMP_CWORD"] = str(len(words.split()) - 1)
    result = runner.invoke(app, [], env=variables, prog_name="kernel-gym")
    assert offered in result.stdout.split()


def test_check_passes_the_baseline_and_fails_a_wrong_kernel(kernels):
    good, wrong = kernels / TASK / "2_good.py", kernels / TASK / "1_wrong.py"
    data = json.loads(run("check", TASK, good, "--device", DEVICE, "--seed", 0, "--json").stdout)
    assert data["evaluation"]["outcome"] == "passed"
    assert data["reward"] == pytest.approx(0.15, abs=0.02)
    assert "modelled" in run("check", TASK, good, "--device", DEVICE).stdout
    run("check", TASK, wrong, "--device", DEVICE, code=1)


def test_check_shows_a_person_the_hidden_workload_and_nobody_else(tmp_path):
    shown = [tuple(dims.values()) for dims in get_task(TASK).problem.train["sim"]]
    source, last = get_task(TASK).start_source, f"cols - int((rows, cols) not in {shown})"
    assert source.count("x.stride(0), cols,") == 1
    file = tmp_path / "shown_only.py"
    file.write_text(source.replace("x.stride(0), cols,", f"x.stride(0), {last},"))
    arguments = ("check", TASK, file, "--device", DEVICE, "--json")
    told = json.loads(run(*arguments, code=1).stdout)["evaluation"]
    hidden = [w for w in told["workloads"] if w["split"] != "train"]
    assert hidden
    assert {json.dumps(w["dims"]) for w in hidden} == {"{}"}
    assert (told["seed"], told["detail"]) == (None, "")
    whole = json.loads(run(*arguments, "--seed", 4, "--reveal", code=1).stdout)["evaluation"]
    failed = next(w for w in whole["workloads"] if not w["passed"])
    assert whole["seed"] == 4
    person = run(*arguments[:-1], "--seed", 4, "--reveal", code=1).stdout
    assert all(f"{name}={size}" in person for name, size in failed["dims"].items())
    policy = run(*arguments[:-1], "--seed", 4, code=1).stdout
    described = " ".join(f"{name}={size}" for name, size in failed["dims"].items())
    assert described in person
    assert described not in policy


def test_plan_shows_what_a_source_launches(kernels):
    good = kernels / TASK / "2_good.py"
    text = run("plan", TASK, good).stdout
    assert "launch kernel 0 (softmax_kernel)" in text
    described = json.loads(run("plan", TASK, good, "--json").stdout)
    assert len(described) == len({one["sha256"] for one in described}) > 1
    assert all(one["plan"]["steps"][0]["do"] == "launch" for one in described)
    assert run("plan", TASK, good, "--device", "cuda:0", code=2).stderr.count("\n") == 1


def test_plan_names_why_a_source_has_none(tmp_path):
    path = tmp_path / "reads.py"
    path.write_text("def softmax(x):\n    return x if x.sum() > 0 else x\n")
    assert "is refused on device tensors" in run("plan", TASK, path, code=1).stderr
    path.write_text("def soft():\n")
    assert "IndentationError" in run("plan", TASK, path, code=1).stderr


def test_check_needs_a_file_that_is_there():
    run("check", TASK, "no/such/file.py", code=2)


def test_eval_then_report(kernels, suite, tmp_path):
    out = tmp_path / "run"
    arguments = ("eval", "--policy", f"folder:{kernels}", "--suite", suite, "--out", out)
    arguments += ("--device", DEVICE, "--seed", 0, "--workers", 1)
    data = json.loads(run(*arguments, "--json").stdout)
    assert data["solved"] == 1
    assert data["tasks"][0]["outcomes"][1] == "passed"
    assert data["tasks"][0]["best_turn"] == 2
    assert "another run" in run(*arguments, code=2).stderr
    before = (out / "results.jsonl").read_text()
    resumed = run(*arguments, "--resume").stdout
    assert "1 of 1 tasks solved" in resumed
    assert "execution_accuracy" in resumed
    assert data["metrics"]["headline"]["execution_accuracy"]["value"] == 1.0
    assert json.loads((out / "metrics.json").read_text()) == data["metrics"]
    assert (out / "results.jsonl").read_text() == before
    run("report", out)
    assert "1 of 1" in (out / "report.html").read_text()


def test_two_equal_evals_give_equal_results(kernels, suite, tmp_path):
    def results(name, workers, *secret):
        out = tmp_path / name
        arguments = ("eval", "--policy", f"folder:{kernels}", "--suite", suite, "--out", out)
        run(*arguments, "--device", DEVICE, "--seed", 3, "--workers", workers, *secret)
        lines = map(json.loads, (out / "results.jsonl").read_text().splitlines())
        return [{**line, "evaluation": without_wall(line["evaluation"])} for line in lines]

    def without_wall(evaluation):
        return {key: value for key, value in evaluation.items() if key != "wall_seconds"}

    first = results("one", 1)
    assert first == results("other", 2, "--secret", tmp_path / "one")
    assert {line["evaluation"]["secret_sha256"] for line in first} != {""}


def test_the_baseline_of_every_mode_is_a_file():
    for task in load_suite("quickstart").tasks:
        assert kernel_path(task.problem, task.language).is_file()
