"""Messages for unknown names are short."""

from kernel_gym.tasks.near_names import MAX_LISTED, unknown


def test_a_long_list_of_known_names_is_cut():
    known = [f"task{number}" for number in range(MAX_LISTED + 3)]
    message = unknown("task", "%%%", known)
    assert message.endswith(f"task{MAX_LISTED - 1} and 3 more")
    assert unknown("task", "%%%", known[:2]) == "unknown task '%%%'; known: task0, task1"
