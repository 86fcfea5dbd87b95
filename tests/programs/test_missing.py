"""Exceptions that say what the simulated GPU lacks get a name, a place and advice."""

import sys
import types

import pytest

from kernel_gym.programs.missing import lack_of, place_of_call, report_at_end


class TritonError(Exception):
    """Like an error of Triton's compiler: it is no RuntimeError."""


def raised(error):
    try:
        raise error
    except type(error) as caught:
        return caught


@pytest.mark.parametrize(
    ("error", "what", "name"),
    [
        (
            NotImplementedError("torch.fft_x is not available on the simulated GPU: its operators"),
            "operator",
            "torch.fft_x",
        ),
        (
            NotImplementedError("Could not run 'aten::abs.out' with arguments from the"),
            "operator",
            "aten::abs.out",
        ),
        (
            AssertionError("Torch not compiled with CUDA enabled"),
            "api",
            "Torch not compiled with CUDA enabled",
        ),
        (
            AttributeError("module 'triton.language' has no attribute 'make_block_ptr'"),
            "api",
            "triton.language.make_block_ptr",
        ),
        (
            ImportError("libhipblaslt.so.0: cannot open shared object file"),
            "library",
            "libhipblaslt.so.0",
        ),
    ],
)
def test_what_is_missing_is_named_with_its_place(error, what, name):
    found_what, found_name, where, message = lack_of(raised(error))
    assert (found_what, found_name) == (what, name)
    assert where.startswith(__file__)
    assert message.startswith(str(error).splitlines()[0])


@pytest.mark.parametrize(
    ("message", "version", "name"),
    [
        ("at 2:8:\nBlock pointers have been removed", "3.9.0", "block pointers"),
        ("'tensor' object has no attribute 'atomic_load'", "3.8.0", "tl.atomic_load"),
    ],
)
def test_what_a_version_of_triton_lacks_is_named(monkeypatch, message, version, name):
    monkeypatch.setitem(
        sys.modules, "triton", types.SimpleNamespace(__version__=version, __file__=None)
    )
    what, found_name, where, text = lack_of(raised(TritonError(message)))
    assert (what, found_name) == ("triton", name)
    assert where.startswith(__file__)
    assert f"Triton {version} has no {name}" in text


def test_the_place_is_not_in_a_package_of_another_folder(monkeypatch, tmp_path):
    file = tmp_path / "triton" / "compiler.py"
    file.parent.mkdir()
    code = compile("def run(): raise RuntimeError('no')", str(file), "exec")
    names = {"__file__": str(file.with_name("__init__.py")), "__version__": "3.8.0"}
    monkeypatch.setitem(sys.modules, "triton", types.SimpleNamespace(**names))
    exec(code, names)
    with pytest.raises(RuntimeError, match="no") as caught:
        names["run"]()
    assert place_of_call(caught.value.__traceback__).startswith(__file__)


@pytest.mark.parametrize("error", [ValueError("no"), RuntimeError("shapes differ"), KeyError(1)])
def test_other_exceptions_lack_nothing(error):
    assert lack_of(raised(error)) is None


def test_an_uncaught_exception_is_reported_and_then_printed_as_usual():
    reported, printed = [], []
    hooks = types.SimpleNamespace(excepthook=lambda *error: printed.append(error))
    report_at_end(lambda *lack: reported.append(lack), hooks)
    error = raised(AssertionError("Torch not compiled with CUDA enabled"))
    hooks.excepthook(type(error), error, error.__traceback__)
    assert [lack[0] for lack in reported] == ["api"]
    assert len(printed) == 1
