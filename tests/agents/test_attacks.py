"""The attacks of agents in the exploit suite: each is played for real, and none gains anything."""

import pytest

from kernel_gym.agents.attacks import HONEST, play_attack
from kernel_gym.exploits import SUITE
from kernel_gym.exploits.attacks import Attack, load_attacks
from kernel_gym.exploits.loader import ExploitError
from kernel_gym.records import Outcome
from kernel_gym.tasks import get_task
from tests.agents.conftest import TASK

BROKEN = "printf 'x(' > kernel.py; "


@pytest.fixture
def play(tmp_path, pool):
    """Plays an attack and returns its findings."""

    def played(attack):
        findings = play_attack(pool, attack, tmp_path / "run")
        if any("the agent did not start" in gain for gain in findings.gains):
            pytest.skip(findings.gains[0])
        return findings

    return played


def attack(command, expected=Outcome.COMPILE_ERROR):
    return Attack("test", get_task(TASK), frozenset({expected}), "a test", command)


@pytest.mark.parametrize("hostile", load_attacks(SUITE), ids=lambda attack: attack.name)
def test_an_attack_gains_nothing(play, hostile):
    assert play(hostile).gains == ()


def test_an_honest_agent_passes_after_them(play):
    findings = play(HONEST)
    assert (findings.outcomes, findings.right) == (("passed", "passed"), True)


@pytest.mark.parametrize(
    ("command", "gain"),
    [
        ("true", "the kernel file was not judged"),
        ("rm kernel.py", "the kernel file was not judged"),
        (BROKEN + "echo REACHED the moon", "REACHED the moon"),
    ],
)
def test_what_an_attack_gains_is_noticed(play, command, gain):
    findings = play(attack(command))
    assert not findings.right
    assert any(gain in text for text in findings.gains), findings.gains


def test_an_agent_that_is_not_confined_reaches_the_judge(tmp_path, pool):
    run = "run=${PWD%/workspaces/*}; cat $run/secret.json; echo >> $run/config.json"
    findings = play_attack(pool, attack(BROKEN + run), tmp_path / "run", confined=False)
    assert "it printed the secret of the run" in findings.gains
    assert "it changed secret.json or config.json" in findings.gains


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ("# tries: x\n", "are missing"),
        (f"# task: {TASK}\n# expect: passed\n# tries: x\n", "no way to block"),
        (f"# task: {TASK}\n# expect: fine\n# tries: x\n", "not a valid Outcome"),
        (f"# task: {TASK}\n# expect: none\n# tries: x\n# gain: 2\n", "unknown"),
    ],
)
def test_a_malformed_header_is_reported(tmp_path, header, message):
    (tmp_path / "bad.sh").write_text(header)
    with pytest.raises(ExploitError, match=message):
        load_attacks(tmp_path)


def test_a_folder_without_attacks_is_reported(tmp_path):
    with pytest.raises(ExploitError, match="found no attacks"):
        load_attacks(tmp_path)
    with pytest.raises(ExploitError, match="no such folder"):
        load_attacks(tmp_path / "none")
