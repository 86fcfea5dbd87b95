"""Importing a suite: what is done again, what is kept, and what bad input does."""

import pytest
from typer.testing import CliRunner

from kernel_gym.cli import app
from kernel_gym.devices.base import BrokenTaskError, InfraError
from kernel_gym.imports.bench.importing import import_suite
from kernel_gym.imports.bench.recorded import UnsoundWorkloadsError
from kernel_gym.imports.manifest import LEFT_OUT, DeviceVerdict, ImportStatus, read_data
from kernel_gym.imports.readers.base import CheckoutError, FoundTask, Unsupported, UnsupportedTask
from kernel_gym.imports.traced.problem import TracedProblem
from kernel_gym.tasks import get_problem
from kernel_gym.tasks.names import Mode
from kernel_gym.tasks.small_floats import UnfitDevice


class TinyReader:
    """One file for each task. A file that says `bad` is unsupported when it is prepared."""

    suite = "tiny"

    def detect(self, checkout):
        return True

    def entries(self, checkout):
        for path in sorted(checkout.glob("*.py")):
            yield FoundTask(path.stem, "Math", Mode.TRITON2TRITON, (path.name,))
        yield FoundTask("missing", "Math", Mode.TRITON2TRITON, ("missing.txt",))
        yield Unsupported("hip", "Other", "no HIP")

    def prepare(self, checkout, found, bench):
        bench.ran.append(found.name)
        if "bad" in (checkout / found.files[0]).read_text():
            raise UnsupportedTask("bad: on purpose")
        return {"name": found.name}

    def problem(self, checkout, found, data):
        return get_problem("softmax")


class Bench:
    def __init__(self, device="sim:gfx942"):
        self.device, self.ran = device, []

    def admit(self, task):
        return DeviceVerdict(status=ImportStatus.ADMITTED)


@pytest.fixture
def checkout(tmp_path):
    folder = tmp_path / "checkout"
    folder.mkdir()
    for name, text in (("a", "x"), ("b", "bad"), ("c", "y")):
        (folder / f"{name}.py").write_text(text)
    return folder


def imported(checkout, folder, bench, **options):
    steps = list(import_suite(TinyReader(), checkout, [bench], folder, **options))
    return {step.entry.name: step for step in steps}


def test_each_task_has_an_entry_and_a_reason(checkout, tmp_path):
    steps = imported(checkout, tmp_path, Bench())
    statuses = {name: step.entry.status("sim:gfx942").value for name, step in steps.items()}
    unsupported = dict.fromkeys(("b", "missing", "hip"), "unsupported")
    assert statuses == dict.fromkeys(("a", "c"), "admitted") | unsupported
    assert steps["b"].entry.verdicts["sim:gfx942"].reason == "bad: on purpose"
    assert "missing.txt: cannot be read" in steps["missing"].entry.reason
    assert steps["hip"].entry.reason == "no HIP"
    assert read_data("tiny", "a", tmp_path) == {"name": "a"}


def test_an_interrupted_import_goes_on(checkout, tmp_path):
    bench = Bench()
    steps = import_suite(TinyReader(), checkout, [bench], tmp_path)
    next(steps)
    steps.close()
    again = imported(checkout, tmp_path, bench)
    assert again["a"].repeated
    assert not again["c"].repeated
    assert bench.ran.count("a") == 1


def test_a_changed_file_is_done_again_and_another_device_is_added(checkout, tmp_path):
    imported(checkout, tmp_path, Bench())
    (checkout / "c.py").write_text("z")
    bench = Bench()
    imported(checkout, tmp_path, bench)
    assert bench.ran == ["c"]
    other = Bench("sim:gfx950")
    entry = imported(checkout, tmp_path, other)["a"].entry
    assert other.ran == ["a", "b", "c"]
    assert set(entry.verdicts) == {"sim:gfx942", "sim:gfx950"}


class Traced(TracedProblem):
    """A problem that is known by its text."""

    def inputs(self, workload, generator):
        raise NotImplementedError

    def reference(self, x):
        return (x,)


def test_a_trace_is_not_made_again_for_another_device(checkout, tmp_path):
    class Tracing(TinyReader):
        def problem(self, checkout, found, data):
            return Traced() if found.name == "a" else get_problem("softmax")

    for device, ran in (("sim:gfx942", ["a", "b", "c"]), ("sim:gfx950", ["b", "c"])):
        bench = Bench(device)
        steps = list(import_suite(Tracing(), checkout, [bench], tmp_path))
        assert bench.ran == ran
    (entry,) = (step.entry for step in steps if step.entry.name == "a")
    assert entry.status("sim:gfx950") is ImportStatus.ADMITTED
    (checkout / "a.py").write_text("another")
    bench = Bench("sim:gfx90a")
    list(import_suite(Tracing(), checkout, [bench], tmp_path))
    assert bench.ran == ["a", "b", "c"]


def test_only_some_tasks_are_imported(checkout, tmp_path):
    bench = Bench()
    assert set(imported(checkout, tmp_path, bench, only="[ab]")) == {"a", "b"}
    assert set(imported(checkout, tmp_path, bench, only="h*,c")) == {"hip", "c"}
    with pytest.raises(CheckoutError, match="no task of tiny fits 'q'"):
        imported(checkout, tmp_path, bench, only="q")


def test_workloads_on_which_the_own_kernel_fails_are_left_out(checkout, tmp_path):
    class Stated(TinyReader):
        def prepare(self, checkout, found, bench):
            return {"stated": [{"dims": {"call": 0, "n": n}} for n in (1, 2, 3)]}

    class Failing(Bench):
        left = [{"call": 0, "n": 2}], [{"call": 0, "n": 3}]

        def admit(self, task):
            self.ran.append(task)
            if len(self.ran) <= len(self.left):
                raise UnsoundWorkloadsError(self.left[len(self.ran) - 1])
            return super().admit(task)

    (step,) = import_suite(Stated(), checkout, [Failing()], tmp_path, "a")
    assert step.entry.status("sim:gfx942") is ImportStatus.ADMITTED
    (note,) = step.entry.verdicts["sim:gfx942"].notes
    assert note.startswith("2 workloads are left out")
    assert read_data("tiny", "a", tmp_path) == {"stated": [{"dims": {"call": 0, "n": 1}}]}


def test_at_last_only_the_workloads_of_the_suite_are_left(checkout, tmp_path):
    splits = ("train", "unseen", "adversarial", "unseen", "unseen", "unseen")

    class Stated(TinyReader):
        def prepare(self, checkout, found, bench):
            return {"stated": [{"dims": {"n": n}, "split": s} for n, s in enumerate(splits)]}

    class Failing(Bench):
        def admit(self, task):
            self.ran.append(task)
            if len(self.ran) <= 3:
                raise UnsoundWorkloadsError([{"n": len(self.ran)}])
            return super().admit(task)

    (step,) = import_suite(Stated(), checkout, [Failing()], tmp_path, "a")
    assert step.entry.status("sim:gfx942") is ImportStatus.ADMITTED
    (note,) = step.entry.verdicts["sim:gfx942"].notes
    assert note.startswith("5 workloads are left out")
    assert read_data("tiny", "a", tmp_path)["stated"] == [{"dims": {"n": 0}, "split": "train"}]


def test_a_task_on_which_the_device_failed_is_tried_again_next_time(checkout, tmp_path):
    class Lost(Bench):
        def admit(self, task):
            raise InfraError("the GPU's memory is used up")

    bench = Lost("cuda:0")
    entry = imported(checkout, tmp_path, bench, only="a")["a"].entry
    assert entry.status("cuda:0") is None
    assert bench.ran == ["a", "a"], "once more at once"
    again = imported(checkout, tmp_path, Bench("cuda:0"), only="a")["a"]
    assert not again.repeated
    assert again.entry.status("cuda:0") is ImportStatus.ADMITTED


def test_code_of_a_suite_that_fails_in_its_reference_is_to_blame_itself(checkout, tmp_path):
    class Broken(Bench):
        def admit(self, task):
            raise BrokenTaskError("the reference of tiny/a failed: a fault")

    entry = imported(checkout, tmp_path, Broken(), only="a")["a"].entry
    assert entry.status("sim:gfx942") is ImportStatus.UNSUPPORTED


def test_types_that_the_device_lacks_are_a_reason(checkout, tmp_path):
    class Unfit(Bench):
        def admit(self, task):
            raise UnfitDevice("it has no fnuz types")

    entry = imported(checkout, tmp_path, Unfit("cuda:0"), only="a")["a"].entry
    assert entry.status("cuda:0") is ImportStatus.UNSUPPORTED
    assert entry.verdicts["cuda:0"].reason == "it has no fnuz types"


def test_workloads_of_a_gpu_take_the_place_of_smaller_twins(checkout, tmp_path):
    imported(checkout, tmp_path, Bench("sim:gfx942"), only="a")
    entry = imported(checkout, tmp_path, Bench("cuda:0"), only="a")["a"].entry
    assert set(entry.verdicts) == {"cuda:0"}


def test_a_bench_in_another_process_gives_the_verdict(checkout, tmp_path):
    class Remote:
        device = "cuda:0"

        def verdict(self, found, reader, checkout, folder, traced):
            return DeviceVerdict(status=ImportStatus.FLAGGED, reason=f"{found.name} {folder.name}")

    entry = imported(checkout, tmp_path, Remote(), only="a")["a"].entry
    assert entry.verdicts["cuda:0"].reason == f"a {tmp_path.name}"


def test_forms_that_are_left_out_are_listed(checkout, tmp_path):
    class Noting(Bench):
        def admit(self, task):
            note = f"{LEFT_OUT}: peak(float32[d0], [1]): irreproducible: two calls differ"
            return DeviceVerdict(status=ImportStatus.ADMITTED, notes=("no unseen", note))

    imported(checkout, tmp_path, Noting(), only="a")
    printed = CliRunner().invoke(app, ["imports", "tiny", "--out", str(tmp_path)]).stdout
    table = " ".join(printed.partition("forms that are left out")[2].split())
    assert "tiny/a peak(float32[d0], [1]): irreproducible: two calls differ" in table
    assert "no unseen" not in printed
