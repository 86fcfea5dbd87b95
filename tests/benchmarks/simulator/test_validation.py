"""Measured records: their format, their launches on the simulator, and the report."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from benchmarks.__main__ import app
from benchmarks.simulator import geak
from benchmarks.simulator.launches import TritonLaunch
from benchmarks.simulator.records import BadRecord, read_records
from benchmarks.simulator.validation import plot, validate_records

KERNELS = Path(geak.__file__).parent


def record(block, warps=4, microseconds=10.0, function="gelu"):
    x = {"shape": [1 << 16], "dtype": "float32"}
    launch = {
        "function": function,
        "grid": [(1 << 16) // block],
        "arguments": [x, x, 1 << 16],
        "constants": {"BLOCK": block},
        "options": {"num_warps": warps},
    }
    fields = {"family": "gelu", "group": "gelu|65536", "kernel": "kernels.py", "floor_us": 6.0}
    return {"id": f"{function}-{block}", "time_us": microseconds, "launch": launch, **fields}


@pytest.fixture
def records_file(tmp_path):
    lines = [record(256, microseconds=9.0), record(1024, microseconds=8.0), record(64, 1, 12.0)]
    path = tmp_path / "records.jsonl"
    path.write_text("\n".join(json.dumps(line) for line in lines) + "\n\n")
    return path


def test_a_launch_survives_json():
    launch = TritonLaunch.from_json(record(256)["launch"])
    assert TritonLaunch.from_json(json.loads(json.dumps(launch.to_json()))) == launch


def test_validation_models_each_record(records_file, tmp_path):
    validation = validate_records(read_records(records_file), KERNELS)
    assert not validation.failed
    assert [row.identity for row in validation.rows] == ["gelu-256", "gelu-1024", "gelu-64"]
    assert all(row.modelled > row.floor for row in validation.rows)
    assert validation.families()["gelu"].groups == 1
    plot(validation, tmp_path / "plot.png")
    assert (tmp_path / "plot.png").stat().st_size > 1000


def test_times_of_the_host_are_told_apart(records_file):
    shaky = {**record(64, 1, 30.0), "id": "shaky", "p20_us": 20.0, "p80_us": 35.0}
    steady = {**record(256, microseconds=9.0), "id": "steady", "p20_us": 8.9, "p80_us": 9.1}
    lines = [record(1024, microseconds=8.0), shaky, steady]
    records_file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    validation = validate_records(read_records(records_file), KERNELS)
    assert [row.is_of_the_host for row in validation.rows] == [False, True, False]
    assert validation.families()["all without times of the host"].records == 2
    assert validation.families()["gelu"].records == 3


def test_a_new_measurement_has_its_percentiles(records_file):
    first = read_records(records_file)[0]
    line = first.timed((9.0, 8.5, 12.0), 6.0, "GPU", first.launches[0])
    records_file.write_text(json.dumps(line) + "\n")
    again = read_records(records_file)[0]
    assert (again.microseconds, again.floor) == (9.0, 6.0)
    assert again.varies == pytest.approx(12.0 / 8.5)


def test_a_kernel_that_does_not_run_is_named(records_file):
    line = json.dumps(record(256, function="absent"))
    records_file.write_text(records_file.read_text() + line + "\n")
    validation = validate_records(read_records(records_file), KERNELS)
    assert len(validation.rows) == 3
    assert "has no kernel absent" in validation.failed["absent-256"]


def test_a_malformed_line_is_named(records_file):
    records_file.write_text('{"id": "a", "launch": {}}\n')
    with pytest.raises(BadRecord, match="line 1"):
        read_records(records_file)


def test_repeated_names_are_told_apart(records_file):
    records_file.write_text((json.dumps(record(256)) + "\n") * 2)
    assert [r.identity for r in read_records(records_file)] == ["gelu-256", "gelu-256 (2)"]


def test_the_command_prints_a_table_and_json(records_file):
    arguments = ["simulator", "--validate", str(records_file), "--kernels", str(KERNELS)]
    done = CliRunner().invoke(app, [*arguments, "--json"])
    assert done.exit_code == 0, done.output
    report = json.loads(done.stdout)
    assert report["families"]["gelu"]["records"] == 3
    assert len(report["rows"]) == 3
    assert "gelu" in CliRunner().invoke(app, arguments).stdout


def test_records_without_launches_are_refused(tmp_path):
    path = tmp_path / "empty.jsonl"
    path.write_text('{"id": "a", "set": "other"}\n')
    done = CliRunner().invoke(app, ["simulator", "--validate", str(path)])
    assert done.exit_code == 2


@pytest.mark.parametrize(
    ("kernel", "shape", "kinds", "config", "grid"),
    [
        ("naive_softmax", {"M": 8, "N": 500}, {"a": "fp16"}, {}, (8,)),
        ("softmax", {"M": 8, "N": 500}, {"a": "bf16"}, {}, (8,)),
        ("test_random_int", {"N_elements": 4096, "seed": 3}, {"a": "int32"}, None, (4,)),
    ],
)
def test_public_records_have_launches(kernel, shape, kinds, config, grid):
    config = {"const_seed": False, "num_warps": 8} if config is None else config
    raw = {"kernel": f"x/{kernel}.py", "shape": shape, "dtype": kinds, "config": config}
    known = geak.interpret(raw)
    assert known.launches[0].grid == grid
    assert TritonLaunch.from_json(known.launches[0].to_json()) == known.launches[0]


def test_unknown_public_kernels_are_left_out():
    assert geak.interpret({"kernel": "x/other.py"}) is None
