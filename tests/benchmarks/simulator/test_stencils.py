"""Kernels for one die of an MI250X run on the simulator, and streams meet their measurements."""

import statistics

import pytest

from benchmarks.simulator import stencils
from benchmarks.simulator.microbenchmarks import Micro


@pytest.fixture(scope="module")
def micro():
    try:
        return Micro(stencils.SOURCE, stencils.ARCH)
    except FileNotFoundError as error:
        pytest.skip(str(error))


def test_more_rows_a_thread_fetch_less(micro):
    points = list(stencils.laplacian(micro))
    traffic = [p.modelled for p in points if p.unit == "x ideal"]
    assert traffic[1] > traffic[2] > traffic[3] >= 1
    rates = [p.modelled for p in points if p.unit == "GB/s"]
    assert rates[1] < rates[2] < rates[3]


def test_derivatives_along_rows_are_bound_by_memory(micro):
    assert all(abs(p.error) < 0.3 for p in stencils.along_rows(micro))


def test_streams_of_a_full_die_meet_the_measured_ones(micro):
    points = {p.name: p for p in stencils.streams()}
    assert statistics.median(abs(p.error) for p in points.values()) < 0.15
    assert all(abs(p.error) < 0.3 for name, p in points.items() if "1024" in name)
