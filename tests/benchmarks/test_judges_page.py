"""Lines of the judges' pages that say how many verdicts there are, and which were repeated."""

from benchmarks.judges_front import FRONT_PAGES, SHOWN, front_page
from benchmarks.judges_page import commit_lines, repeated_line
from kernel_gym.judges import corpus
from kernel_gym.judges.verdicts import JudgeAnswer, JudgeVerdict


def row(candidate, judge="some", answer=JudgeAnswer.ACCEPTED, runner="new"):
    return JudgeVerdict(
        judge=judge,
        commit="none",
        runner=runner,
        candidate=candidate.name,
        digest=candidate.digest,
        truth=candidate.truth,
        answer=answer,
        cpu_seconds=1.0,
    )


def test_commits_are_stated_with_the_number_of_verdicts():
    chosen = corpus.quick()[:3]
    rows = [row(one, judge) for one in chosen for judge in ("some", "other")]
    assert commit_lines([*rows, *(row(one, "third", runner="old") for one in chosen[:2])]) == (
        "- third: 2 verdicts each, kernel-gym at commit `old`.\n"
        "- other, some: 3 verdicts each, kernel-gym at commit `new`.\n"
    )


def test_a_verdict_that_the_whole_run_does_not_repeat_is_named():
    first, second, third = corpus.quick()[:3]
    compared = [row(first, runner="old"), row(second, runner="old")]
    whole = [row(first), row(second, answer=JudgeAnswer.OPEN), row(third)]
    line = repeated_line(compared, whole)
    assert line.startswith("- 2 verdicts of the quick set were repeated, and 1 changed: ")
    assert f"some on `{second.name}` (accepted, then could not say)" in line
    assert repeated_line(compared, compared).endswith(
        "2 verdicts of the quick set were repeated, and 0 changed.\n"
    )


def test_a_front_page_states_the_set_and_counts_no_kernel_against_itself():
    chosen = (*corpus.quick()[:5], corpus.against_itself()[0])
    rows = [row(one, judge) for one in chosen for judge in SHOWN]
    text = "<!-- judges: written by `python -m benchmarks renew` -->\n\n<!-- end -->\n"
    assert "Quick set, 5 candidates:" in front_page(FRONT_PAGES[0], text, rows)
