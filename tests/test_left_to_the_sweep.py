"""The list of cases that runs leave to the sweep has no name that is gone."""

from tests.conftest import LEFT
from tests.test_architecture import ROOT


def test_each_listed_case_exists():
    cases = LEFT - {""}
    assert cases
    for case in cases:
        path, _, name = case.partition("::")
        text = (ROOT / path).read_text(encoding="utf-8")
        assert f"def {name.partition('[')[0]}(" in text, case
