"""A small run with everything that a report shows, made by hand."""

from kernel_gym.analysis.breakdown import attempt_rows, run_metrics
from kernel_gym.records import KernelFacts, Outcome, Stage
from kernel_gym.report import Measures, write_report
from kernel_gym.storage.run_store import RunStore
from kernel_gym.tasks import get_task, task_ids
from tests.records import failure, passing
from tests.storage.test_run_store import CONFIG, end_all, record

TASKS = ("triton2triton/softmax", "hip2hip/transpose", "torch2triton/gelu")
CONFIG = CONFIG.model_copy(update={"tasks": TASKS})
MARKUP = "</pre><script>alert(1)</script>"
PROFILE = {
    "of_peak": {"matrix": 0.0, "hbm": 0.62},
    "utilisation": {"vector": 0.31},
    "stalls": {"memory wait": 0.7, "issue": 0.3},
}


def played(folder):
    """A rescued task, one right at once and slower, one refused as a hack with a hostile name."""
    store = RunStore.start(folder, CONFIG)
    wrong = failure(Outcome.WRONG_VALUES, Stage.TRAIN, detail=MARKUP)
    kernel = KernelFacts(name="softmax", vgprs=8, sgprs=8, profile=PROFILE)
    fast = passing(2.0, 1.5).model_copy(update={"kernels": (kernel,)})
    start = get_task(TASKS[0]).start_source
    source = f"{start}# {'long ' * 60}\n"
    store.append(record(TASKS[0], 1, wrong), f"{start}# '<b>'\n")
    store.append(record(TASKS[0], 2, fast), source)
    store.append(record(TASKS[1], 1, passing(0.5, 4.0)), "// hip\n")
    hack = failure(Outcome.HACK, Stage.SCREEN).model_copy(update={"message": MARKUP})
    store.append(record(TASKS[2], 1, hack), "x = '" + "y" * 400 + "'\n")
    end_all(store)
    return store


def many(folder, count):
    """A run of many tasks with three submissions each, as large as real ones are."""
    ids = task_ids()[:count]
    store = RunStore.start(folder, CONFIG.model_copy(update={"tasks": ids, "turns": 3}))
    recorded = played(folder / "small").turns(TASKS[0])[1].evaluation
    detail = "\n".join(f"line {i} of what the compiler said" for i in range(30))
    wrong = failure(Outcome.COMPILE_ERROR, Stage.BUILD, detail=detail)
    for number, task in enumerate(map(get_task, ids)):
        source, dims = task.kernel_source, dict(task.problem.train["sim"][0])
        some = [w.model_copy(update={"dims": dims}) for w in recorded.workloads for _ in range(4)]
        right = recorded.model_copy(update={"workloads": tuple(some)})
        for turn, (one, text) in enumerate(
            ((wrong, "x = 1\n"), (right, source), (right, source + "\n# faster\n")), start=1
        ):
            faster = {"speedup": 1.0 + number / count} if one is right else {}
            evaluation = one.model_copy(update=faster)
            path = store.source_path(task.id, turn, task.language)
            added = record(task.id, turn, evaluation).model_copy(update={"source": path})
            store.append(added, text)
    return store


def measures(store):
    """The run's metrics, as the command takes them."""
    return Measures(run_metrics(store), attempt_rows(store))


def rendered(store):
    """The page."""
    return write_report(store, measures(store)).read_text(encoding="utf-8")
