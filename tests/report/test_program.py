"""The page of a program on the simulated GPU."""

from kernel_gym.programs.results import Summary
from kernel_gym.report.program import program_page

LAUNCH = {"record": "launch", "kernel": "k<int>", "grid": [1, 1, 1], "block": [64, 1, 1]}
FAULT = {"record": "fault", "kind": "trap", "message": "<script>alert(1)</script>"}
ENDED = {"device": "sim:gfx942", "timed_out": False, "host_seconds": 1.0}


def page(*records, **ended):
    summary = Summary()
    summary.add(records)
    return program_page(summary.to_json() | ENDED | ended)


def test_kernels_faults_and_processes_are_shown():
    process = {"record": "process", "pid": 7, "command": ["python", "a.py"]}
    text = page(process, LAUNCH | {"seconds": 1e-6}, FAULT, status=0, command=["make", "run"])
    assert "<h1>make run</h1>" in text
    assert "k&lt;int&gt;" in text
    assert "faulted" in text
    assert "python a.py" in text


def test_texts_of_a_program_are_no_markup():
    text = page(FAULT, status=0, command=["x"])
    assert "<script>" not in text
    assert "&lt;script&gt;" in text


def test_the_end_is_said():
    assert "ended with status 3" in page(status=3, command=["x"])
    assert "ended by signal 9" in page(status=-9, command=["x"])
    assert "not done in time" in page(status=-9, command=["x"], timed_out=True)
    assert "crashed" in page(status=None)
