"""A judge of a few lines runs confined: verdicts, failures, and what it must not do."""

import json
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from typer.testing import CliRunner

from kernel_gym.cli import app
from kernel_gym.errors import InputError
from kernel_gym.judges import corpus
from kernel_gym.judges.adapter import Reading, load_adapter, need
from kernel_gym.judges.adapters.texts import RUN_FORKED
from kernel_gym.judges.run import (
    JudgeHost,
    RowFile,
    commit_of,
    commit_of_runner,
    judge_candidate,
    run_judge,
)
from kernel_gym.judges.verdicts import JudgeAnswer, JudgeVerdict, read_verdicts

CASES = {
    "right_plain": "print('yes')",
    "wrong_tail": "print('no')",
    "cheat_clock": "raise SystemExit(3)",
    "cheat_content": "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)",
    "cheat_frames": "open(CHECKOUT + '/judge.py', 'w')",
    "cheat_later": "import socket\nsocket.create_connection(('127.0.0.1', 9))",
    "cheat_library": f"open({corpus.__file__!r}, 'a')",
    "right_persistent": """
import multiprocessing
def double(x):
    return 2 * x
if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print("yes" if pool.map(double, [2, 3]) == [4, 6] else "no")
""",
    "cheat_empty": "import torch\nprint('yes' if torch.zeros(3, device='cuda').sum() == 0 else '')",
}
"""Scripts of the judge, by kind of candidate."""


class FewLines:
    """A judge whose answer depends on the kind of candidate."""

    name = "few-lines"
    repository = "-"
    settings = "-"

    def prepare(self, candidate, checkout, folder):
        if candidate.kind == "wrong_special":
            need(checkout, "absent.py")
        text = f"CHECKOUT = {str(checkout)!r}\n{CASES[candidate.kind]}\n"
        (folder / "script.py").write_text(text)
        return ["script.py"]

    def read(self, folder, output):
        if output.startswith("yes"):
            return Reading(JudgeAnswer.ACCEPTED, paid=1.5)
        return Reading(JudgeAnswer.REFUSED if output.startswith("no") else JudgeAnswer.OPEN)


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    checkout = tmp_path_factory.mktemp("checkout")
    (checkout / "judge.py").write_text("pass\n")
    kinds = (*CASES, "wrong_special")
    kept: list[JudgeVerdict] = []
    chosen = [corpus.find(f"excess/{kind}") for kind in kinds]
    before = Path(corpus.__file__).read_text()
    run_judge(FewLines(), checkout, chosen, kept.append)
    assert (checkout / "judge.py").read_text() == "pass\n"
    assert Path(corpus.__file__).read_text() == before
    return {row.candidate.partition("/")[2]: row for row in kept}


def test_answers_become_rows(rows):
    assert rows["right_plain"].answer is JudgeAnswer.ACCEPTED
    assert rows["right_plain"].paid == 1.5
    assert rows["wrong_tail"].answer is JudgeAnswer.REFUSED
    assert rows["wrong_tail"].paid is None
    assert rows["right_plain"].commit.startswith("files-")
    assert rows["right_plain"].runner == commit_of_runner()


def test_processes_that_a_script_spawns_find_it(rows):
    assert rows["right_persistent"].answer is JudgeAnswer.ACCEPTED, rows["right_persistent"]


def test_a_file_runs_in_a_child_as_a_command_does(tmp_path):
    (tmp_path / "inner").mkdir()
    text = "import sys\nprint(sys.argv[1:], __name__)\nsys.exit(len(sys.argv))"
    (tmp_path / "inner/file.py").write_text(text)
    (tmp_path / "error.py").write_text("1 / 0")
    script = """
one = run_forked("python file.py 'a b' c", cwd="inner", env={"SOME": "x"})
assert (one.returncode, one.stdout) == (3, "['a b', 'c'] __main__\\n"), one
other = forked.run([sys.executable, "error.py"])
assert other.returncode == 1 and "ZeroDivisionError" in other.stderr, other
assert "SOME" not in os.environ and sys.argv[0] == "-c"
"""
    command = [sys.executable, "-c", RUN_FORKED + script]
    subprocess.run(command, cwd=tmp_path, check=True)


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("cheat_clock", "status 3"),
        ("cheat_content", "status -9"),
        ("cheat_frames", "Error"),
        ("cheat_later", "Error"),
        ("cheat_library", "Error"),
        ("wrong_special", "found no absent.py"),
    ],
)
def test_a_judge_that_fails_or_leaves_its_folder_gives_no_verdict(rows, kind, words):
    assert rows[kind].answer is JudgeAnswer.OPEN
    assert words in rows[kind].message


def test_the_simulated_device_is_there(rows):
    assert rows["cheat_empty"].answer is JudgeAnswer.ACCEPTED, rows["cheat_empty"].message


def test_the_example_of_the_page_is_a_judge(tmp_path):
    page = Path(__file__).parents[2] / "docs/judges/own.md"
    text = page.read_text().partition("```python\n")[2].partition("```")[0]
    assert len(text.splitlines()) <= 45
    (tmp_path / "my_judge.py").write_text(text)
    (tmp_path / "README.md").write_text("")
    kept: list[JudgeVerdict] = []
    chosen = [corpus.find("excess/right_plain"), corpus.find("excess/cheat_empty")]
    run_judge(load_adapter(str(tmp_path / "my_judge.py")), tmp_path, chosen, kept.append)
    assert [row.answer for row in kept] == [JudgeAnswer.ACCEPTED, JudgeAnswer.REFUSED], kept


def test_a_judge_that_hangs_gives_a_row(monkeypatch, tmp_path):
    monkeypatch.setitem(CASES, "right_plain", "while True: pass")
    monkeypatch.setenv("KERNEL_GYM_JUDGE_CPU_SECONDS", "1")
    with closing(JudgeHost("sim:gfx942")) as host:
        row = judge_candidate(FewLines(), tmp_path, "none", corpus.find("excess/right_plain"), host)
    assert row.answer is JudgeAnswer.OPEN
    assert "CPU" in row.message


def test_a_file_of_rows_is_continued(rows, tmp_path):
    path = tmp_path / "rows.jsonl"
    first = RowFile(path, False, lambda line: None)
    for row in rows.values():
        first.keep(row)
    with path.open("a") as file:
        file.write('{"judge": "half a li')
    with pytest.raises(InputError, match="exists"):
        RowFile(path, False, print)
    chosen = [corpus.find("excess/right_plain"), corpus.find("relu/right_plain")]
    left = RowFile(path, True, print).missing(chosen, "few-lines")
    assert [one.name for one in left] == ["relu/right_plain"]
    assert read_verdicts([path]) == list(rows.values())


def test_a_line_that_is_no_row_is_refused(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps({"judge": "x", "paid": -1}) + "\n")
    with pytest.raises(InputError, match="line 1: no verdict"):
        read_verdicts([path])


def test_the_held_out_third_runs_alone(tmp_path):
    lines = [
        "from kernel_gym.judges.adapter import Reading",
        "from kernel_gym.judges.verdicts import JudgeAnswer",
        "class Yes:",
        "    name = 'yes'",
        "    def prepare(self, candidate, checkout, folder):",
        "        (folder / 'script.py').write_text('')",
        "        return ['script.py']",
        "    def read(self, folder, output):",
        "        return Reading(JudgeAnswer.ACCEPTED)",
        "ADAPTER = Yes()",
    ]
    (tmp_path / "yes.py").write_text("\n".join(lines))
    words = ["judges", "run", str(tmp_path / "yes.py"), str(tmp_path), "--held-out"]
    out = tmp_path / "rows.jsonl"
    answer = CliRunner().invoke(app, [*words, "--only", "excess/", "--out", str(out)])
    assert answer.exit_code == 0, answer.output
    drawn = [c.name for c in corpus.candidates() if c.held_out and c.name.startswith("excess/")]
    assert [row.candidate for row in read_verdicts([out])] == drawn


def test_an_unknown_judge_is_refused(tmp_path):
    with pytest.raises(InputError, match="found 'nobody', expected"):
        load_adapter("nobody")
    (tmp_path / "empty.py").write_text("")
    with pytest.raises(InputError, match="no ADAPTER"):
        load_adapter(str(tmp_path / "empty.py"))


def test_a_changed_checkout_has_another_commit(tmp_path):
    (tmp_path / "a.py").write_text("1")
    first = commit_of(tmp_path)
    (tmp_path / "a.py").write_text("2")
    assert commit_of(tmp_path) != first
