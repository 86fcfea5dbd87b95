"""Figures of a corpus of TorchInductor's kernels, from made verdicts."""

import pytest

from benchmarks import writer_inductor
from benchmarks.renewal import entry_maker
from kernel_gym.training.corpus import CorpusRow
from kernel_gym.training.inductor_corpus import GraphTrial

pytest.importorskip("transformers")
pytestmark = pytest.mark.train


def test_gains_are_over_the_default_template_of_graphs_where_both_are_right():
    speedups = {"a": 2.0, "b": 8.0, "c": 4.0, "d": None}
    trials = [
        GraphTrial(
            made_by="",
            row=CorpusRow(task=task, source=f"h1 = {task}\n", speedup=speedup),
            refused="" if speedup else "not compiled",
        )
        for task, speedup in speedups.items()
    ]
    defaults = {"a": 4.0, "b": 1.0, "d": 1.0}
    subject = writer_inductor.figures(trials, defaults, entry_maker(writer_inductor.SUBJECT))
    figure = {entry.id.removeprefix("inductor-"): entry for entry in subject.entries}
    assert float(figure["right"].value) == 0.75
    assert float(figure["gain"].value) == 2.0
    assert figure["gain"].metric.endswith("2 graphs")
    assert float(figure["faster"].value) == 0.5
    assert figure["tokens"].value > 0
    assert "--inductor 4;" in figure["gain"].command
