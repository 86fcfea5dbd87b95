"""`kernel-gym sim --audit --report`: SARIF and JUnit of races, one finding for a pair of lines."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from xml.etree import ElementTree

import pytest

from kernel_gym.devices.sim.toolchain import HipToolchain, hip_toolchain
from kernel_gym.errors import InputError
from kernel_gym.programs.exit_codes import exit_code
from kernel_gym.programs.suppressions import Suppression, read_suppressions, suppress
from kernel_gym.report.audit_report import report_writer
from tests.programs.running import RACE, run, write

FOLDER = Path(__file__).parent
PAIRS = {
    "softmax": {"maximum read", "sum written"},
    "count_tokens": {"counted", "offset read"},
    "decode": {"page read", "page written"},
}
"""The lines of each race, by what their comments say."""
REQUIRED = {
    "log": ("version", "runs"),
    "run": ("tool",),
    "driver": ("name",),
    "rule": ("id",),
    "result": ("message",),
    "invocation": ("executionSuccessful",),
    "suppression": ("kind",),
}
"""The required properties of SARIF 2.1.0, by object."""


@pytest.fixture(scope="module", params=["triton", "hip", "flydsl"])
def audited(request, tmp_path_factory):
    """The source of three races and both reports of it."""
    folder = tmp_path_factory.mktemp("audited")
    names = {"hip": "races.hip", "flydsl": "races_flydsl.py"}
    source = FOLDER / names.get(request.param, "races.py")
    if request.param == "flydsl":
        pytest.importorskip("flydsl")
    if request.param == "hip" and not isinstance(hip_toolchain("gfx942"), HipToolchain):
        pytest.skip("no HIP compiler")
    shutil.copy(source, folder)
    command = ["sh", "-c", f"hipcc {source.name} -o races && ./races"]
    words = command if request.param == "hip" else ["python", source.name]
    reports = ("--report", "out/audit.sarif", "--report", "out/audit.xml")
    done = run(folder, "--audit", *reports, "--", *words)
    assert done.returncode == 121, done.stderr
    log = json.loads((folder / "out" / "audit.sarif").read_text())
    return source, log, ElementTree.parse(folder / "out" / "audit.xml").getroot()


def place(location):
    """The file and the line of a location."""
    physical = location["physicalLocation"]
    assert physical["artifactLocation"]["uriBaseId"] == "%SRCROOT%"
    return physical["artifactLocation"]["uri"], physical["region"]["startLine"]


def kernel_of(result):
    (name,) = {entry["name"] for entry in result["locations"][0]["logicalLocations"]}
    return plain(name)


def plain(name):
    """A kernel's name in its source: without arguments of templates, or FlyDSL's number."""
    return re.sub(r"_\d+$", "", name.partition("<")[0])


def test_each_race_is_one_result_with_both_lines(audited):
    source, log, _ = audited
    lines = source.read_text().splitlines()
    pairs = {}
    for result in log["runs"][0]["results"]:
        places = [place(each) for each in [*result["locations"], *result["relatedLocations"]]]
        assert {file for file, _ in places} == {source.name}
        comments = {re.split("# |// ", lines[line - 1])[1] for _, line in places}
        assert pairs.setdefault(kernel_of(result), comments) is comments, "two results for one race"
    assert pairs == PAIRS


def test_the_log_has_what_sarif_requires(audited):
    _, log, _ = audited
    (run,) = log["runs"]
    assert log["version"] == "2.1.0"
    driver = run["tool"]["driver"]
    objects = [("log", log), ("run", run), ("driver", driver)]
    objects += [("rule", rule) for rule in driver["rules"]]
    objects += [("result", result) for result in run["results"]]
    objects += [("invocation", each) for each in run["invocations"]]
    lacking = [(kind, key) for kind, each in objects for key in REQUIRED[kind] if key not in each]
    assert lacking == []
    for result in run["results"]:
        assert result["ruleId"] == driver["rules"][result["ruleIndex"]]["id"]
        assert result["level"] == "error"


def test_the_junit_document_has_a_failure_for_each_race(audited):
    _, _, document = audited
    (suite,) = document
    failed = {plain(case.get("classname")) for case in suite if case.find("failure") is not None}
    assert failed == set(PAIRS)
    assert int(suite.get("failures")) == len(PAIRS)
    assert int(suite.get("tests")) == len(suite)
    assert (suite.get("errors"), suite.get("skipped")) == ("0", "0")


def record(**fields):
    """A finding as a process records it."""
    first = {"kind": "lds_race", "message": "race", "kernel": "k", "instruction": "ds_read"}
    return first | {"source": "lib/a.py:3", "other_source": "lib/a.py:5"} | fields


def result_of(*findings, **fields):
    """The result of a run with these findings."""
    result = {"device": "sim:gfx942", "launches": 2, "kernels": {"k": {}, "other": {}}}
    result |= {"faults": [], "findings": list(findings), "failures": []}
    return result | {"timed_out": False, "status": 0} | fields


def cases(result, folder):
    """The outcome of each test case of a JUnit report, by class and name."""
    path = folder / "audit.xml"
    report_writer(path)(result, folder)
    return {
        (case.get("classname"), case.get("name")): [child.tag for child in case]
        for case in ElementTree.parse(path).getroot().iter("testcase")
    }


def results(result, folder):
    path = folder / "audit.sarif"
    report_writer(path)(result, folder)
    return json.loads(path.read_text())["runs"][0]["results"]


def test_equal_pairs_of_lines_are_one_finding_whatever_their_kernel_and_order(tmp_path):
    turned = record(kernel="j", source="lib/a.py:5", other_source=f"{tmp_path}/lib/a.py:3")
    result = result_of(record(), turned, record(kind="unwaited_read"))
    assert cases(result, tmp_path) == {
        ("j, k", "lds_race at lib/a.py:3 and lib/a.py:5"): ["failure"],
        ("k", "unwaited_read at lib/a.py:3 and lib/a.py:5"): ["failure"],
        ("other", "no finding"): [],
    }


def test_findings_without_lines_are_distinguished_by_their_instruction(tmp_path):
    bare = record(source="", other_source="")
    entries = results(result_of(bare, bare | {"instruction": "ds_write"}, bare), tmp_path)
    assert len(entries) == 2
    location = entries[0]["locations"][0]["physicalLocation"]
    assert location == {"artifactLocation": {"uri": "unknown-source"}}


def test_an_access_just_outside_an_allocation_is_a_warning(tmp_path):
    near = record(kind="out_of_bounds_read", other_source="")
    assert results(result_of(near), tmp_path)[0]["level"] == "warning"
    assert results(result_of(faults=[near]), tmp_path)[0]["level"] == "error"


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ({"status": 1}, "ended with status 1"),
        ({"timed_out": True, "status": -15}, "not done in time"),
        ({"failures": [{"message": "no device"}]}, "no device"),
    ],
)
def test_a_run_that_is_not_whole_is_an_error(tmp_path, fields, name):
    result = result_of(**fields)
    assert cases(result, tmp_path)["audit", "the command"] == ["error"]
    assert name in (tmp_path / "audit.xml").read_text()
    results(result, tmp_path)
    invocation = json.loads((tmp_path / "audit.sarif").read_text())["runs"][0]["invocations"][0]
    assert not invocation["executionSuccessful"]


def test_a_run_without_a_launch_does_not_pass_for_a_clean_one(tmp_path):
    result = result_of(launches=0, kernels={})
    assert cases(result, tmp_path) == {("audit", "the command"): ["skipped"]}


@pytest.mark.parametrize(
    "fields",
    [
        {"source": "lib/a.py"},
        {"source": "lib/*:5", "kind": "lds_race"},
        {"kernel": "[jk]"},
    ],
)
def test_a_suppressed_finding_is_shown_and_does_not_fail(tmp_path, fields):
    result = result_of(record())
    assert exit_code(result, audit=True) == 121
    assert suppress(result, [Suppression(reason="known", **fields)], tmp_path) == []
    assert exit_code(result, audit=True) == 0
    assert ["skipped"] in cases(result, tmp_path).values()
    (entry,) = results(result, tmp_path)
    assert entry["suppressions"] == [{"kind": "external", "justification": "known"}]
    assert entry["level"] == "note"


@pytest.mark.parametrize("fields", [{"source": "a.py"}, {"kernel": "k", "kind": "global_race"}])
def test_a_suppression_that_matches_nothing_is_returned(tmp_path, fields):
    result, known = result_of(record()), Suppression(reason="known", **fields)
    assert suppress(result, [known], tmp_path) == [known]
    assert exit_code(result, audit=True) == 121


def test_a_pair_of_lines_in_two_kernels_is_suppressed_only_in_both(tmp_path):
    result = result_of(record(), record(kernel="j"))
    suppress(result, [Suppression(reason="known", kernel="k")], tmp_path)
    assert exit_code(result, audit=True) == 121
    assert ["failure"] in cases(result, tmp_path).values()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("suppress", "invalid TOML"),
        ("[[suppressed]]\nreason = 'no'", "expected only"),
        ("[[suppress]]\nsource = 'a'", "entry 1: reason"),
        ("[[suppress]]\nreason = 'all'", "hides everything"),
        ("[[suppress]]\nreason = 'a'\nkernel = 'k'\nkind = 'race'", "expected global_race"),
        ("[[suppress]]\nreason = 'a'\nkernel = 'k'\nline = 3", "entry 1: line"),
    ],
)
def test_malformed_suppressions_are_refused_by_entry(tmp_path, text, message):
    path = tmp_path / "known.toml"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        read_suppressions(path)


def test_reports_are_refused_before_the_command_runs(tmp_path):
    words = ("--", "touch", "ran")
    for options in (("--report", "a.xml"), ("--audit", "--report", "a.html")):
        done = run(tmp_path, *options, *words)
        assert done.returncode == 2, done.stderr
        assert "--report" in done.stderr
    assert not (tmp_path / "ran").exists()


def test_the_finding_of_a_confined_file_names_that_file(tmp_path):
    write(tmp_path, "race.py", RACE)
    done = run(tmp_path, "--audit", "--report", "audit.xml", "race.py")
    assert done.returncode == 121, done.stderr
    assert 'name="global_race at race.py:6"' in (tmp_path / "audit.xml").read_text()


def test_an_old_report_is_removed(tmp_path):
    path = tmp_path / "audit.xml"
    path.write_text("old")
    report_writer(path)
    assert not path.exists()
