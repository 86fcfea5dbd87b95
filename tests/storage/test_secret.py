"""The secret of a run: its draws, its file, and that no worker can read it."""

import hashlib
import os
import pickle
import stat
import tempfile
from pathlib import Path

import pytest

from kernel_gym.evaluator import Evaluator
from kernel_gym.records import Outcome
from kernel_gym.storage import secret as module
from kernel_gym.storage.json_lines import StoreError
from kernel_gym.storage.secret import PUBLIC, RunSecret, kept_secret, read_secret, secret_files
from kernel_gym.tasks import Split, get_task

TASK = get_task("triton2triton/softmax")
KEY = bytes(range(32))


def test_a_draw_depends_on_the_key_and_on_each_part():
    draws = {RunSecret(KEY).draw(0, "t", "unseen"), RunSecret(bytes(32)).draw(0, "t", "unseen")}
    draws |= {RunSecret(KEY).draw(*parts) for parts in ((1, "t", "unseen"), (0, "t", "train"))}
    draws |= {RunSecret(KEY).draw(0, "t/unseen"), PUBLIC.draw(0, "t", "unseen")}
    assert len(draws) == 6
    assert all(0 <= draw < 1 << module.DRAW_BITS for draw in draws)
    assert RunSecret(KEY).draw(0, "t", "unseen") in draws


def test_a_public_draw_is_what_it_was_before_there_were_secrets():
    digest = hashlib.sha256(b"0/triton2triton/softmax/unseen").digest()
    assert PUBLIC.draw(0, TASK.id, "unseen") == int.from_bytes(digest[:6], "little")


def test_a_key_of_another_length_is_refused():
    with pytest.raises(ValueError, match="32 bytes, found 3"):
        RunSecret(b"abc")


def test_the_file_is_its_owners_alone_and_gives_the_same_secret(tmp_path):
    first = kept_secret(tmp_path / "run" / "secret.json")
    path = tmp_path / "run" / "secret.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [p.name for p in path.parent.iterdir()] == ["secret.json"]
    for again in (kept_secret(path), read_secret(path), read_secret(path.parent)):
        assert (again.sha256, again.draw(1)) == (first.sha256, first.draw(1))
    assert str(path) in secret_files()
    with pytest.raises(StoreError, match="another run"):
        RunSecret.fresh().write(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no secret can be read"),
        ("{}", r"secret: found|sha256: found"),
        ('{"secret": "zz", "sha256": ""}', "non-hexadecimal"),
        ('{"secret": "ab", "sha256": ""}', "32 bytes, found 1"),
        ('{"secret": "' + "00" * 32 + '", "sha256": "ab"}', "not that of its secret"),
    ],
)
def test_a_malformed_file_is_refused_by_name(tmp_path, text, message):
    path = tmp_path / "secret.json"
    if text:
        path.write_text(text)
    with pytest.raises(StoreError, match=message) as caught:
        read_secret(path)
    assert str(path) in str(caught.value)


def test_nothing_shows_the_key(tmp_path):
    secret = RunSecret(KEY)
    assert KEY.hex() not in repr(secret) + str(vars(secret).keys())
    assert secret.sha256 == hashlib.sha256(KEY).hexdigest()


def test_a_copy_in_another_process_hides_the_file_too(tmp_path, monkeypatch):
    secret = RunSecret.fresh().write(tmp_path / "secret.json")
    packed = pickle.dumps(secret)
    monkeypatch.setattr(module, "_files", {})
    assert secret_files() == ()
    assert pickle.loads(packed).draw(1) == secret.draw(1)
    assert secret_files() == (str(tmp_path / "secret.json"),)


READER = """
def softmax(x):
    table = __builtins__ if isinstance(__builtins__, dict) else vars(__builtins__)
    raise RuntimeError("it says " + repr(table["open"]({path!r}).read()))
"""


@pytest.fixture(scope="module")
def evaluators(tmp_path_factory):
    """Three evaluators: two with one secret, and one with another."""
    folder = tmp_path_factory.mktemp("run")
    secret = RunSecret.fresh().write(folder / "secret.json")
    with (
        Evaluator("sim:gfx942", secret=secret) as one,
        Evaluator("sim:gfx942", secret=read_secret(folder)) as same,
        Evaluator("sim:gfx942", secret=RunSecret.fresh()) as other,
    ):
        yield one, same, other


def test_equal_seeds_draw_the_same_under_one_secret_and_not_under_another(evaluators):
    evaluations = [e.evaluate(TASK, TASK.kernel_source, seed=0) for e in evaluators]
    outcomes = [e.outcome for e in evaluations]
    assert outcomes == [Outcome.PASSED] * 3, [e.message for e in evaluations]
    assert evaluations[0].canonical() == evaluations[1].canonical()
    assert evaluations[0].secret_sha256 != evaluations[2].secret_sha256
    unseen = [[w.dims for w in f.by_split(Split.UNSEEN)] for f in evaluations]
    assert unseen[0] == unseen[1] != unseen[2]


def test_a_worker_sees_the_file_empty(evaluators):
    """The file is hidden even if everybody may read it, here in the folder of the package."""
    with tempfile.TemporaryDirectory(dir=Path(module.__file__).parent) as folder:
        os.chmod(folder, 0o755)
        path = Path(folder) / "secret.json"
        RunSecret.fresh().write(path)
        path.chmod(0o644)
        evaluation = evaluators[0].evaluate(TASK, READER.format(path=str(path)))
        assert "it says ''" in evaluation.message
        module._files.clear()
        evaluation = evaluators[0].evaluate(TASK, READER.format(path=str(path)))
        assert "it says '{" in evaluation.message


def test_without_a_seed_a_record_needs_no_secret(evaluators):
    evaluation = evaluators[0].evaluate(TASK, "broken(")
    assert evaluation.secret_sha256 == ""
    assert evaluation.seed >= 0


def test_by_default_a_given_seed_is_mixed_with_the_secret_of_the_process():
    with Evaluator("sim:gfx942") as evaluator:
        evaluation = evaluator.evaluate(TASK, "broken(", seed=0)
    assert evaluation.secret_sha256 == module.process_secret().sha256
