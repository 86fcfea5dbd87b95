"""Packages that are verified: edited files are refused, and a new verdict has to bear it out."""

from __future__ import annotations

import json
import os
import re
import statistics
import zipfile

import pytest

from kernel_gym.packages.evidence import (
    EVIDENCE,
    PackageError,
    evidence_of,
    read_evidence,
    sha256,
)
from kernel_gym.packages.verify import _differences, _same_wheel, verify
from kernel_gym.packages.write import write_package
from kernel_gym.records import source_digest


def test_a_package_is_borne_out_by_a_new_verdict(package):
    verification = verify(package / "made", seed=11)
    assert verification.differences == ()
    assert verification.evaluation.seed == 11


def test_a_claim_that_is_too_high_is_not_borne_out(package):
    folder = package / "made"
    claimed = read_evidence(folder).model_copy(update={"speedup_low": 50.0})
    (folder / EVIDENCE).write_text(claimed.model_dump_json())
    differences = verify(folder, seed=11).differences
    assert any("expected at least 50.000" in difference for difference in differences)
    assert any("README.md is not what" in difference for difference in differences)


def test_code_beside_the_kernel_with_new_digests_is_not_borne_out(package):
    folder = package / "made"
    name = "build/torch-rocm/dispatch.py"
    (folder / name).write_text((folder / name).read_text() + "\nprint('here')\n")
    _claim(folder, files={name: sha256((folder / name).read_bytes())})
    (difference,) = verify(folder, seed=11).differences
    assert difference.startswith(name)


def test_a_package_of_a_task_with_a_start_kernel_is_refused(package):
    _claim(package / "made", task="triton2triton/add_rms_norm")
    with pytest.raises(PackageError, match="give --task torch2triton/add_rms_norm"):
        verify(package / "made", seed=11)


def test_the_table_of_workloads_is_judged_again(package):
    folder = package / "made"
    first, second, *others = read_evidence(folder).workloads
    unseen = next(row for row in others if row.split == "unseen")
    claimed = first.model_copy(update={"speedup": 30.0, "low": 25.0, "high": 35.0})
    invented = second.model_copy(update={"dims": {"rows": 7, "cols": 7}})
    _claim(folder, workloads=(claimed, invented, *others))
    verification = verify(folder, seed=11)
    text = "\n".join(verification.differences)
    sizes = ", ".join(f"{name} {size}" for name, size in first.dims.items())
    assert re.search(rf"train workload {sizes} is \d\.\d+, expected at least 25\.000", text)
    assert "train workload rows 7, cols 7: the task times no such workload" in text
    assert "the evidence leaves it out" in text
    assert "facts.json is not what" in text
    sizes = ", ".join(f"{name} {size}" for name, size in unseen.dims.items())
    assert f"workload {sizes}" in verification.statements
    assert "seed" in verification.statements


def test_unseen_workloads_of_other_draws_are_compared_by_their_rows(judged):
    """The rows of a kernel whose speed-up depends on the size, judged with two seeds."""
    task, source, evaluation = judged
    rates = {"stated": (2.0, 3.0, 4.0, 6.0, 8.0), "drawn": (1.8, 2.2, 3.0, 4.0, 7.0)}
    stated, drawn = (_with_unseen(evaluation, number, r) for number, r in enumerate(rates.values()))
    evidence = evidence_of(task, stated, source, "sim:gfx942", "gfx942")
    assert drawn.unseen_speedup < 0.97 * evidence.unseen_speedup_low
    assert list(_differences(evidence, drawn, "gfx942")) == []
    slow = _with_unseen(evaluation, 1, (0.4, 0.5, 0.5, 0.5, 0.6))
    assert "is 0.496, expected at least 0.538" in "".join(_differences(evidence, slow, "gfx942"))
    for claim, message in {
        (2.0, 12.0, 12.0, 12.0, 12.0): "all timed again have at most 7.000",
        (8.0, 8.0, 8.0, 8.0, 8.0): "all timed again have at most 7.000",
    }.items():
        claimed = evidence_of(
            task, _with_unseen(evaluation, 0, claim), source, "sim:gfx942", "gfx942"
        )
        assert message in "".join(_differences(claimed, drawn, "gfx942"))
    other = evidence.model_copy(update={"unseen_speedup": 5.0})
    assert "the mean of its rows is 4.095" in "".join(_differences(other, stated, "gfx942"))
    assert "expected at least 4.095" in "".join(
        _differences(evidence, _with_unseen(evaluation, 0, (2.0,) * 5), "gfx942")
    )


def _with_unseen(evaluation, shift, rates):
    """Returns a record whose unseen workloads have these speed-ups, and sizes moved by a number.

    All others have a speed-up of 1.
    """
    remaining, rows = list(rates), []
    for row in evaluation.workloads:
        if row.timed and row.speedup is not None:
            unseen = row.split == "unseen"
            rate = remaining.pop() if unseen else 1.0
            dims = {name: size + shift * unseen for name, size in row.dims.items()}
            changes = {"dims": dims, "speedup": rate, "speedup_low": rate, "speedup_high": rate}
            row = row.model_copy(update=changes)
        rows.append(row)
    assert not remaining
    mean = statistics.geometric_mean(rates)
    update = {"workloads": tuple(rows), "unseen_speedup": mean, "unseen_speedup_low": mean}
    return evaluation.model_copy(update=update)


def _claim(folder, files=None, **values):
    """Changes the evidence of a package; `files` are digests that replace those of before."""
    evidence = read_evidence(folder)
    values["files"] = evidence.files | (files or {})
    (folder / EVIDENCE).write_text(evidence.model_copy(update=values).model_dump_json())


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


@pytest.mark.parametrize("damage", ["content", "encrypted", "cut"])
def test_a_wheel_that_cannot_be_read_is_another_one(tmp_path, damage):
    right, wrong = tmp_path / "right.whl", tmp_path / "wrong.whl"
    with zipfile.ZipFile(right, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.py", "value = 1\n" * 500)
    data = bytearray(right.read_bytes())
    if damage == "content":
        data[40:50] = b"\xff" * 10
    elif damage == "encrypted":
        data[data.rindex(b"PK\x01\x02") + 8] |= 1
    wrong.write_bytes(data[: len(data) // 2] if damage == "cut" else data)
    assert _same_wheel(right, right)
    assert not _same_wheel(wrong, right)
