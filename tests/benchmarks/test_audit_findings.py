"""The page of what audits have found in others' kernels, and what its data must have."""

import re
from pathlib import Path

import pytest
from pydantic import ValidationError

from benchmarks.outside.findings import DATA, PAGE, Reading, page_text, read_findings
from kernel_gym.sim.engine.faults import KINDS

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def found():
    return read_findings()


def test_the_page_has_the_stored_findings(found):
    text = (ROOT / PAGE).read_text(encoding="utf-8")
    assert page_text(text, found) == text


def test_each_finding_is_of_a_known_kind_and_has_a_reason_and_a_command(found):
    assert len(found.findings) >= 10
    for one in found.findings:
        assert one.kind in KINDS.values()
        assert len(one.reason) > 10 or one.reason.startswith("as in")
        assert one.repeat.startswith("python ")  # variables here would hide those of the command


def test_references_between_findings_name_the_same_kernel(found):
    for one in found.findings:
        for number in map(int, re.findall(r"finding (\d+)", f"{one.happens} {one.reason}")):
            assert found.findings[number - 1].kernel == one.kernel
    page = (ROOT / PAGE).read_text(encoding="utf-8")
    number = int(re.search(r"`sort_experts.py` of finding (\d+)", page)[1])
    assert "sort_experts.py" in found.findings[number - 1].repeat


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('verdict = "true"', 'verdict = "perhaps"'),
        ("lines = [101, 86]", "lines = []"),
        ("change = ", "chance = "),
        ('project = "aiter"\ncommit', 'project = "aider"\ncommit'),
    ],
)
def test_incomplete_data_is_refused(tmp_path, old, new):
    text = DATA.read_text(encoding="utf-8")
    assert old in text
    path = tmp_path / "findings.toml"
    path.write_text(text.replace(old, new), encoding="utf-8")
    with pytest.raises(ValidationError):
        read_findings(path)


def test_a_true_finding_needs_a_change_and_a_false_one_does_not(found):
    one = found.findings[0]
    with pytest.raises(ValidationError, match="needs a change"):
        type(one).model_validate(one.model_dump() | {"change": ""})
    false = one.model_dump() | {"change": "", "verdict": Reading.FALSE}
    assert type(one).model_validate(false).verdict is Reading.FALSE
