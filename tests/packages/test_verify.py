"""Packages that are verified: edited files are refused, and a new verdict has to bear it out."""

from __future__ import annotations

import json
import os

import pytest

from kernel_gym.packages.evidence import (
    EVIDENCE,
    PackageError,
    evidence_of,
    read_evidence,
    sha256,
)
from kernel_gym.packages.verify import verify
from kernel_gym.packages.write import write_package
from kernel_gym.records import source_digest


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


@pytest.mark.parametrize("case", ["edited", "added", "compiled", "missing", "link"])
def test_another_content_is_refused_by_name(package, case):
    folder = package / "made"
    path = folder / "build/torch-rocm/candidate.py"
    if case == "edited":
        path.write_text(path.read_text() + "\n")
    elif case == "added":
        (folder / "build/torch-rocm/sitecustomize.py").write_text("print('here')\n")
    elif case == "compiled":
        (path.parent / "__pycache__").mkdir()
        (path.parent / "__pycache__/candidate.cpython-311.pyc").write_bytes(b"other code")
    else:
        path.unlink()
        if case == "link":
            os.symlink(folder / "README.md", path)
    with pytest.raises(PackageError, match=r"candidate\.|sitecustomize\.py") as raised:
        verify(folder)
    assert "the package was changed" in str(raised.value)


def test_evidence_that_is_malformed_is_refused(package):
    folder = package / "made"
    evidence = read_evidence(folder).model_dump(mode="json")
    endless = evidence["workloads"][0] | {"low": "NaN"}
    for changed in ({"task": 3}, evidence | {"speedup_low": "NaN"}, {"workloads": [endless]}):
        (folder / EVIDENCE).write_text(json.dumps(evidence | changed))
        with pytest.raises(PackageError, match=EVIDENCE):
            verify(folder)
    with pytest.raises(PackageError, match="expected a package"):
        verify(package)


@pytest.mark.parametrize("content", [b"\xff", None])
def test_a_package_without_a_readable_kernel_is_refused(package, content):
    folder, name = package / "made", "build/torch-rocm/candidate.py"
    evidence = read_evidence(folder)
    files = {path: digest for path, digest in evidence.files.items() if path != name}
    if content is None:
        (folder / name).unlink()
    else:
        (folder / name).write_bytes(content)
        files[name] = sha256(content)
    claimed = evidence.model_copy(
        update={"files": files, "source_sha256": files.get(name, evidence.source_sha256)}
    )
    (folder / EVIDENCE).write_text(claimed.model_dump_json())
    with pytest.raises(PackageError, match=r"candidate\.py"):
        verify(folder)


def test_a_source_with_carriage_returns_is_read_to_the_byte(judged, tmp_path):
    task, source, evaluation = judged
    source = source.replace("\n", "\r\n")
    record = evaluation.model_copy(update={"source_sha256": source_digest(source)})
    write_package(tmp_path / "made", task, source, evidence_of(task, record, source, "x", "gfx942"))
    assert verify(tmp_path / "made", device="sim:gfx942", seed=11).differences == ()
