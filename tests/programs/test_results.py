"""Documents of processes: what is written comes back summed up, and nonsense only counts."""

import json
import os

from kernel_gym.programs.exit_codes import exit_code
from kernel_gym.programs.results import read_results
from kernel_gym.simulated_rocm.result_recorder import Document, ResultRecorder

LAUNCH = {"name": "k", "grid": [2, 1, 1], "block": [64, 1, 1], "lds": 0, "profile": {"hot": []}}
FAULT = {"kind": "out_of_bounds_read", "message": "no", "kernel": "k", "source": "a.py:1"}
FAULT |= {"other_source": ""}


def recorder(folder):
    return ResultRecorder(Document(folder, "python", ["python", "a.py"], "sim:gfx942").write)


def test_records_of_two_processes_are_summed(tmp_path):
    for seconds in (1.0, 3.0):
        one = recorder(tmp_path)
        one.launch(LAUNCH | {"seconds": seconds}, clock=seconds)
        one.launch(LAUNCH | {"seconds": 0.5}, clock=seconds + 0.5)
        one.end(seconds + 1)
    summary = read_results(tmp_path)
    kernel = summary.kernels["k"]
    assert (kernel.launches, kernel.seconds, kernel.longest) == (4, 5.0, 3.0)
    assert (summary.launches, summary.seconds) == (4, 6.0)
    assert all(process.ended for process in summary.processes)
    assert summary.processes[0].command == ["python", "a.py"]


def test_seconds_of_operators_are_added(tmp_path):
    one = recorder(tmp_path)
    one.others = lambda: 10.0
    one.launch(LAUNCH | {"seconds": 1.0}, clock=1.0)
    assert read_results(tmp_path).seconds == 11.0


def test_what_is_not_written_to_its_end_is_left_out(tmp_path):
    one = recorder(tmp_path)
    one.fault(FAULT)
    (document,) = tmp_path.glob("*.jsonl")
    with document.open("ab") as file:
        file.write(b'no JSON\n{"record":"launch"}\n[1]\n{"record":"fault","kind":"torn')
    summary = read_results(tmp_path)
    assert [fault["message"] for fault in summary.faults] == ["no"]
    assert summary.unread == 3
    assert not summary.processes[0].ended


def test_findings_and_missing_things_are_recorded_once(tmp_path):
    one = recorder(tmp_path)
    for _ in range(3):
        one.finding(FAULT)
        one.missing("operator", "aten::fft", "a.py:1", "use the host")
    summary = read_results(tmp_path)
    assert len(summary.findings) == len(summary.missing) == 1


def test_numbers_that_json_lacks_become_null(tmp_path):
    one = recorder(tmp_path)
    one.launch(LAUNCH | {"seconds": 1.0, "profile": {"share": float("nan")}}, clock=1.0)
    (document,) = tmp_path.glob("*.jsonl")
    lines = [json.loads(line) for line in document.read_text().splitlines()]
    assert lines[1]["profile"] == {"share": None}


def test_a_forked_child_writes_a_document_of_its_own(tmp_path):
    one = recorder(tmp_path)
    one.fault(FAULT)
    child = os.fork()
    if child == 0:
        one.fault(FAULT)
        os._exit(0)
    os.waitpid(child, 0)
    pids = {process.pid for process in read_results(tmp_path).processes}
    assert pids == {os.getpid(), child}


def test_control_characters_of_a_program_are_inert(tmp_path):
    recorder(tmp_path).fault(FAULT | {"message": "\x1b[2J"})
    assert read_results(tmp_path).faults[0]["message"] == "\\x1b[2J"


def test_exit_codes_have_an_order():
    result = {"timed_out": False, "faults": [], "findings": [], "failures": [], "status": 3}
    race = {"kind": "global_race"}
    assert exit_code(result, audit=False) == 3
    assert exit_code(result | {"status": -11}, audit=False) == 139
    assert exit_code(result | {"status": None}, audit=False) == 1
    assert exit_code(result | {"findings": [race]}, audit=False) == 3
    assert exit_code(result | {"findings": [race]}, audit=True) == 121
    assert exit_code(result | {"findings": [FAULT]}, audit=True) == 3  # --bounds warn
    assert exit_code(result | {"failures": [{"message": "no"}]}, audit=True) == 125
    assert exit_code(result | {"status": 0, "faults": [FAULT]}, audit=False) == 120
    assert exit_code(result | {"timed_out": True, "faults": [FAULT]}, audit=True) == 124
