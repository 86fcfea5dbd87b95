"""Descriptions of failures in a worker."""

import pytest
import triton

from kernel_gym.formatting import anonymous
from kernel_gym.sandbox.failures import describe


def _raised(code):
    try:
        exec(compile(code, "/private/folder/candidate.py", "exec"), {})
    except BaseException as error:
        return describe(error)
    raise AssertionError("nothing was raised")


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("def f(:", "compile"),
        ("import not_installed_anywhere", "compile"),
        ("1 / 0", "runtime"),
        ("raise SystemExit(0)", "runtime"),
        ("class CompilationError(Exception): pass\nraise CompilationError('x')", "compile"),
    ],
)
def test_failures_are_sorted_by_what_to_do_about_them(code, kind):
    assert _raised(code)["kind"] == kind


def test_the_trace_names_the_candidates_own_line_and_no_folder():
    failure = _raised("def f():\n    return 1 / 0\nf()\n")
    assert 'candidate.py", line 2' in failure["detail"]
    assert "/private" not in failure["detail"]
    assert failure["message"] == "division by zero"


def test_triton_quotes_the_source_first_and_the_reason_last():
    code = (
        "class CompilationError(Exception): pass\n"
        "raise CompilationError('at 2:8:\\n  x = y\\nno y')"
    )
    assert _raised(code)["message"] == "no y"


@pytest.mark.parametrize(
    ("raised", "message"),
    [
        ("assert acc == 3", "AssertionError: <module>"),
        ("raise TypeError('no type')", "TypeError: no type"),
    ],
)
def test_a_compiler_error_without_a_text_has_that_of_its_cause(raised, message):
    code = (
        "class CompilationError(Exception): pass\n"
        "acc = 2\n"
        "try:\n"
        f"    {raised}\n"
        "except Exception as cause:\n"
        "    raise CompilationError('at 2:8:\\n  x = y\\n      ^') from cause"
    )
    assert _raised(code)["message"] == message


@pytest.mark.parametrize(("version", "explained"), [("3.9.0", True), ("3.8.0", False)])
def test_what_the_version_of_triton_lacks_is_named(monkeypatch, version, explained):
    monkeypatch.setattr(triton, "__version__", version)
    code = (
        "class CompilationError(Exception): pass\n"
        "raise CompilationError('at 2:8:\\n  p = x\\nBlock pointers have been removed')"
    )
    message = _raised(code)["message"]
    assert message.startswith("Block pointers have been removed")
    assert ("Triton 3.9.0 has no block pointers" in message) is explained


def test_folders_and_addresses_are_removed():
    assert anonymous('File "/a/b/c.py", at 0x7f0011223344') == 'File "c.py", at 0x...'
