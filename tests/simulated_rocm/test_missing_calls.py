"""The page on programs in HIP lists the calls of graphs that are not simulated."""

import re
from pathlib import Path

import kernel_gym

CALLS = Path(kernel_gym.__file__).parent / "simulated_rocm" / "csrc" / "hip_missing.cpp"
PAGE = Path(__file__).parents[2] / "docs" / "hip-programs.md"


def test_the_page_lists_all_calls_of_graphs_that_are_missing():
    missing = set(re.findall(r"^MISSING\((\w+)\)", CALLS.read_text(), re.MULTILINE))
    of_graphs = {
        name
        for name in missing
        if re.search(r"Graph(?!ics)|UserObject|Capture", name) and "GL" not in name
    }
    section = PAGE.read_text().split("## Unsupported graph calls")[1].split("\n## ")[0]
    first_column = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    listed = set(re.findall(r"`(hip\w+)`", " ".join(first_column)))
    assert listed == of_graphs
