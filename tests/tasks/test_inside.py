"""Files of folders that others wrote: no reader follows a link that leads out."""

import json
import os

import pytest

from kernel_gym.imports.authoring.request import read_files
from kernel_gym.imports.checkout import commit_of, licence_of
from kernel_gym.imports.predictions import PredictionError, read_predictions
from kernel_gym.imports.readers.base import CheckoutError, read_bytes
from kernel_gym.imports.readers.operators import _is_definition
from kernel_gym.referee.statement import ClaimError, read_text
from kernel_gym.tasks.inside import LeadsOutError, read_inside

SECRET = "known to the user only"


@pytest.fixture
def checkout(tmp_path):
    """A folder of somebody else, beside a file that it must not reach."""
    folder = tmp_path / "checkout"
    folder.mkdir()
    (tmp_path / "secret").write_text(SECRET)
    return folder


def link(path, target="../secret"):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(target)
    return path


def test_links_within_the_folder_are_followed(checkout):
    (checkout / "real").write_text("here")
    assert read_inside(checkout, link(checkout / "other", "real")) == b"here"


@pytest.mark.parametrize("target", ["../secret", "/etc/passwd", "../checkout/../secret"])
def test_links_that_lead_out_are_refused(checkout, target):
    with pytest.raises(LeadsOutError):
        read_inside(checkout, link(checkout / "a", target))
    with pytest.raises(CheckoutError, match="leads out"):
        read_bytes(checkout, "a")


def test_what_is_no_short_regular_file_is_refused(checkout):
    os.mkfifo(checkout / "pipe")
    link(checkout / "circle", "circle")
    (checkout / "long").write_bytes(b"x" * 100)
    for name in ("pipe", "circle", "long", ".", "missing"):
        with pytest.raises(OSError, match=r"\w") as raised:
            read_inside(checkout, checkout / name, 99)
        assert not isinstance(raised.value, LeadsOutError)


def test_licence_and_commit_are_not_those_of_other_folders(checkout, tmp_path):
    link(checkout / "LICENSE")
    (tmp_path / "commit").write_text("a" * 40)
    link(checkout / ".git" / "HEAD", "../../commit")
    assert licence_of(checkout) == commit_of(checkout) == ""
    (checkout / "COPYING").write_text("MIT License\nmore")
    assert licence_of(checkout) == "MIT License"


def test_a_licence_without_end_ends(checkout):
    link(checkout / "LICENSE", "/dev/zero")
    assert licence_of(checkout) == ""


def test_definitions_and_predictions_are_not_read_through_links(checkout, tmp_path):
    (tmp_path / "definition").write_text(json.dumps({"reference": SECRET}))
    assert not _is_definition(checkout, link(checkout / "definition.json", "../definition"))
    with pytest.raises(PredictionError, match="leads out"):
        read_predictions(checkout)
    (checkout / "definition.json").unlink()
    link(checkout / "level_1_problem_2_sample_0_kernel.py")
    with pytest.raises(PredictionError, match="leads out"):
        read_predictions(checkout)


def test_a_tracer_gets_no_file_that_a_link_reaches(checkout):
    (checkout / "model.py").write_text("class Block: pass\n")
    link(checkout / "stolen.py")
    files, _ = read_files([f"{checkout}/model.py:Block"])
    assert set(files) == {"model.py"}
    assert SECRET not in str(files)


def test_files_of_a_claim_are_no_links_out_of_their_folder(checkout):
    with pytest.raises(ClaimError, match="leads out"):
        read_text(link(checkout / "kernel.py"))
