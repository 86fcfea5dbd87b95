"""Points of a kernel's own benchmark are modelled in a process without measured times."""

import json

import pytest
from typer.testing import CliRunner

from benchmarks.__main__ import app
from benchmarks.clock.points import read_points
from benchmarks.clock.predicting import require_explained
from benchmarks.clock.predictions import header, predict, read_predictions, store_compared
from benchmarks.clock.scores import Compared
from kernel_gym.errors import InputError
from kernel_gym.sim.timing.compared import read


def run(points_file, checkout, *more):
    arguments = ["clock", "--points", str(points_file), "--checkout", str(checkout)]
    return CliRunner().invoke(app, [*arguments, *more])


def test_points_are_predicted_then_compared(points_file, checkout, tmp_path):
    out = tmp_path / "predicted.jsonl"
    done = run(points_file, checkout, "--out", str(out), "--json")
    assert done.exit_code == 0, done.output
    report = json.loads(done.stdout)
    assert (report["points"], report["compared"]) == (6, 4)
    first, predictions = read_predictions(out)
    assert first["timing_model"] == report["timing_model"]
    assert "20.0" not in out.read_text()  # nothing measured
    small, large = (predictions[f"scale-{n}-256"]["seconds"] for n in (1 << 12, 1 << 20))
    assert 2e-6 < small < large
    assert predictions["scale"]["launches"] == 1
    assert "no case with these parameters" in predictions[f"scale-{1 << 20}-64"]["refused"]
    assert "no kernel absent" in report["not_compared"]["absent"]
    again = run(points_file, checkout, "--out", str(out))
    assert again.exit_code == 2
    shown = run(points_file, checkout, "--out", str(out), "--resume")
    assert shown.exit_code == 0, shown.output
    assert "not compared: 2 of 6" in shown.stdout


def test_a_kernel_that_ends_the_process_costs_its_own_point(points_file, checkout, tmp_path):
    file = checkout / "suite" / "test_ends.py"
    file.write_text("import os\nos._exit(3)\n")
    row = json.loads(points_file.read_text().splitlines()[0])
    rows = [row | {"id": "ends", "kernel": "suite/test_ends.py"}, row]
    points_file.write_text("".join(json.dumps(each) + "\n" for each in rows))
    points, _ = read_points(points_file)
    out = tmp_path / "out.jsonl"
    predict(points, [checkout], out, header(points_file, "gfx942"))
    predictions = read_predictions(out)[1]
    assert predictions["ends"]["refused"] == "the process that models ended with status 3"
    assert predictions[points[1].identity]["seconds"] > 0


def test_predictions_of_other_points_are_not_continued(points_file, checkout, tmp_path):
    out = tmp_path / "out.jsonl"
    predict([], [checkout], out, header(points_file, "gfx942"))
    points_file.write_text(points_file.read_text() + "\n")
    with pytest.raises(InputError, match="differ in points_sha256"):
        predict([], [checkout], out, header(points_file, "gfx942"))


def test_points_in_a_language_that_is_not_installed_are_an_error_of_the_input(points_file):
    with pytest.raises(InputError, match="points need no-such-language"):
        header(points_file, "gfx950", ["no-such-language"])


def test_a_time_of_work_that_nobody_recorded_is_refused():
    require_explained({"sampling": {"workgroups": 64, "explained": 0.98}})
    with pytest.raises(RuntimeError, match="explain only 74%"):
        require_explained({"sampling": {"workgroups": 64, "explained": 0.7354}})


def test_a_file_without_header_has_no_predictions(tmp_path):
    path = tmp_path / "other.jsonl"
    path.write_text('{"id": "a"}\n')
    with pytest.raises(InputError, match="header"):
        read_predictions(path)


def test_residuals_of_families_that_were_not_predicted_stay(points_file, tmp_path):
    profile = {
        "bound_by": "hbm",
        "utilisation": {"matrix": 0.0},
        "scratch_bytes": 0,
        "atomics_us": 0.0,
        "code_bytes": 512,
    }
    first, path = header(points_file, "gfx942"), tmp_path / "compared.json"

    def store(head, factor, *families):
        rows = [Compared(f, f, f, 20.0, 20.0, factor, 2e-5, profile) for f in families]
        store_compared(path, head, rows, families)

    store(first, 1.5, "a", "b")
    store(first, 2.0, "b", "c")
    assert [(row.family, row.factor) for row in read(path).rows] == [
        ("a", 1.5),
        ("b", 2.0),
        ("c", 2.0),
    ]
    with pytest.raises(InputError, match=r"cannot be continued: .* another triton"):
        store(first | {"triton": "3.0.0"}, 1.5, "d")
    path.write_text("[]")
    with pytest.raises(InputError, match="cannot be continued"):
        store(first, 1.5, "d")
