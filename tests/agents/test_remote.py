"""A workspace whose submissions go to a service."""

import subprocess
import sys

from kernel_gym.tasks import get_task
from tests.agents.conftest import TASK
from tests.service.conftest import serve  # noqa: F401


def test_check_submits_to_the_session_of_a_service(serve, tmp_path):  # noqa: F811
    url, service = serve()
    command = [sys.executable, "-m", "kernel_gym", "workspace", TASK, str(tmp_path / "w")]
    options = {"capture_output": True, "text": True, "timeout": 200}
    written = subprocess.run([*command, "--service", url, "--submissions", "2"], **options)
    assert written.returncode == 0, written.stderr
    kernel, check = tmp_path / "w/kernel.py", [sys.executable, "-S", str(tmp_path / "w/check")]
    kernel.write_text("x(")
    broken = subprocess.run(check, **options)
    assert (broken.returncode, "Does not compile" in broken.stdout) == (1, True)
    assert "1 of 2 submissions left" in broken.stderr
    again = subprocess.run([*check, "--wait"], **options)
    assert (again.returncode, again.stdout) == (broken.returncode, broken.stdout)
    kernel.write_text(get_task(TASK).start_source)
    right = subprocess.run([*check[:-1], str(tmp_path / "w/profile")], **options)
    assert right.returncode == 0, right.stderr
    assert '"bound_by"' in right.stdout
    over = subprocess.run(check, **options)
    assert over.returncode == 2
    assert "is over after 2 submissions" in over.stderr
    assert service.store.used("anybody") == 2


def test_a_service_that_is_not_there_is_one_line(tmp_path):
    command = [sys.executable, "-m", "kernel_gym", "workspace", TASK, str(tmp_path / "w")]
    run = subprocess.run(
        [*command, "--service", "http://127.0.0.1:1"], capture_output=True, text=True, timeout=110
    )
    assert run.returncode == 2
    assert "http://127.0.0.1:1" in run.stderr
    assert "Traceback" not in run.stderr
    assert not (tmp_path / "w").exists()


def test_no_session_is_opened_for_a_folder_with_other_files(serve, tmp_path):  # noqa: F811
    url, service = serve()
    (tmp_path / "w").mkdir()
    (tmp_path / "w" / "notes.txt").write_text("mine")
    command = [sys.executable, "-m", "kernel_gym", "workspace", TASK, str(tmp_path / "w")]
    run = subprocess.run([*command, "--service", url], capture_output=True, text=True)
    assert run.returncode == 2
    assert "found files, expected an empty folder or none" in run.stderr
    assert service.store._rows("SELECT id FROM sessions") == []
