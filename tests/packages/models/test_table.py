"""The page of whole models by architecture shows the stored table, and says what it claims."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.deployment import fastkernels_page, measured, reasons_page
from benchmarks.deployment.architectures import ARCHITECTURES, FASTKERNELS, GATED_GELU, OTHERS
from benchmarks.deployment.packages import SOURCES
from benchmarks.deployment.page import PAGE, deploy_page, stored_table
from kernel_gym.packages.models.operations import OPERATIONS
from kernel_gym.packages.models.report import Deployment

ROOT = Path(__file__).parents[3]


def test_the_page_shows_the_stored_table():
    text = PAGE.read_text(encoding="utf-8")
    assert deploy_page(text, stored_table()) == text


def test_each_architecture_has_each_package_with_a_result_or_a_reason():
    table = stored_table()
    assert {row["architecture"] for row in table} == {*ARCHITECTURES, GATED_GELU}
    assert len(table) >= 40
    for row in table:
        assert list(row["packages"]) == list(SOURCES)
        for cell in row["packages"].values():
            assert _explained(cell), (row["architecture"], cell)


def test_the_page_of_fastkernels_shows_the_stored_rows():
    assert fastkernels_page.PAGE.read_text(encoding="utf-8") == fastkernels_page.written()


def test_the_page_of_reasons_shows_those_of_all_stored_rows():
    assert reasons_page.PAGE.read_text(encoding="utf-8") == reasons_page.written()


def test_each_architecture_of_fastkernels_has_rows_or_a_reason():
    assert len(FASTKERNELS) == 46
    rows = fastkernels_page.stored_others()
    assert {row["architecture"] for row in rows} == {*OTHERS}
    for row in rows:
        assert all(_explained(cell) for cell in row["packages"].values()), row["architecture"]
    kinds = {*ARCHITECTURES, *OTHERS}
    page = fastkernels_page.PAGE.read_text(encoding="utf-8")
    for name, kind in FASTKERNELS.items():
        assert kind in kinds or f"| {kind} | " in page
        assert name in page


def _explained(cell):
    """Returns whether a cell is an error, or a deployment whose parts have results or reasons."""
    if "error" in cell:
        return bool(cell["error"])
    parity, replaced = cell["parity"], cell["replaced"]
    fields = {key: value for key, value in cell.items() if key not in ("parity", "replaced")}
    deployment = Deployment.model_validate(fields | {"source_sha256": "", "stated_gain": 1.0})
    assert (deployment.parity, deployment.replaced) == (parity, replaced)
    sites = all(bool(site.replaced_by) != bool(site.reason) for site in deployment.sites)
    return sites and (not replaced or bool(deployment.phases) or bool(deployment.failure))


def test_every_operation_of_models_has_a_package_in_the_table():
    packed = {"w4a16_matmul"}  # no architecture has such layers without a checkpoint
    assert set(SOURCES) == set(OPERATIONS) - packed
    assert all(not path or Path(path).is_file() for _, path in SOURCES.values())


def test_the_page_of_measured_models_shows_the_stored_rows():
    result = json.loads((ROOT / "benchmarks/results/deployment/measured.json").read_text())
    page = (ROOT / "docs/benchmarks-models.md").read_text(encoding="utf-8")
    assert measured.table(result) in page
