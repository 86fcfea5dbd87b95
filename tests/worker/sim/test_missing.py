"""Exceptions that say what the simulated GPU lacks get a name, a place and advice."""

import types

import pytest

from kernel_gym.worker.sim.missing import lack_of, report_at_end


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
