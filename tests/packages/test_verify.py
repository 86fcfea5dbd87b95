"""Packages that are verified: edited files are refused, and a new verdict has to bear it out."""

from __future__ import annotations

import os

import pytest

from kernel_gym.packages.evidence import EVIDENCE, PackageError, read_evidence
from kernel_gym.packages.verify import verify


def test_a_package_is_borne_out_by_a_new_verdict(package):
    verification = verify(package / "made", seed=11)
    assert verification.differences == ()
    assert verification.evaluation.seed == 11


def test_a_claim_that_is_too_high_is_not_borne_out(package):
    folder = package / "made"
    claimed = read_evidence(folder).model_copy(update={"speedup_low": 1.5})
    (folder / EVIDENCE).write_text(claimed.model_dump_json())
    (difference,) = verify(folder, seed=11).differences
    assert "expected at least 1.500" in difference


@pytest.mark.parametrize("case", ["edited", "added", "missing", "link"])
def test_another_content_is_refused_by_name(package, case):
    folder = package / "made"
    path = folder / "build/torch-rocm/candidate.py"
    if case == "edited":
        path.write_text(path.read_text() + "\n")
    elif case == "added":
        (folder / "build/torch-rocm/sitecustomize.py").write_text("print('here')\n")
    else:
        path.unlink()
        if case == "link":
            os.symlink(folder / "README.md", path)
    with pytest.raises(PackageError, match=r"candidate\.py|sitecustomize\.py") as raised:
        verify(folder)
    assert "the package was changed" in str(raised.value)


def test_evidence_that_is_malformed_is_refused(package):
    folder = package / "made"
    (folder / EVIDENCE).write_text('{"task": 3}')
    with pytest.raises(PackageError, match=EVIDENCE):
        verify(folder)
    with pytest.raises(PackageError, match="expected a package"):
        verify(package)
