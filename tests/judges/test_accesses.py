"""Races and reads outside, which the values of a sequential interpreter do not show."""

import pytest

from kernel_gym.judges.accesses import AccessWatch

PART, COUNT, END = 0, 100, 200


@pytest.fixture
def watch():
    watch = AccessWatch()
    watch.begin([(PART, END)])
    return watch


def test_programs_that_add_without_atomics_race(watch):
    for program in range(2):
        watch.enter((program, 0, 0))
        watch.read([PART])
        watch.write([PART])
    assert watch.facts == {"race"}


def test_atomics_on_one_element_do_not_race(watch):
    for program in range(2):
        watch.enter((program, 0, 0))
        watch.update([PART])
    assert watch.facts == set()


@pytest.mark.parametrize("stores_first", [True, False])
def test_a_part_that_is_stored_before_counting_is_seen_by_the_last(watch, stores_first):
    for program in range(3):
        watch.enter((program, 0, 0))
        if stores_first:
            watch.write([PART + program])
            watch.update([COUNT])
        else:
            watch.update([COUNT])
            watch.write([PART + program])
    watch.read([PART, PART + 1, PART + 2])
    assert watch.facts == (set() if stores_first else {"race"})


def test_order_passes_through_a_third_program(watch):
    watch.enter((0, 0, 0))
    watch.write([PART])
    watch.update([COUNT])
    watch.enter((1, 0, 0))
    watch.update([COUNT])
    watch.update([COUNT + 4])
    watch.enter((2, 0, 0))
    watch.update([COUNT + 4])
    watch.read([PART])
    assert watch.facts == set()


def test_a_read_without_order_races_with_a_later_write(watch):
    watch.enter((0, 0, 0))
    watch.read([PART])
    watch.enter((1, 0, 0))
    watch.write([PART])
    assert watch.facts == {"race"}


def test_a_plain_read_races_with_an_atomic(watch):
    watch.enter((0, 0, 0))
    watch.update([PART])
    watch.enter((1, 0, 0))
    watch.read([PART])
    assert watch.facts == {"race"}


def test_launches_are_ordered(watch):
    watch.enter((0, 0, 0))
    watch.write([PART])
    watch.begin([(PART, END)])
    watch.enter((1, 0, 0))
    watch.read([PART])
    assert watch.facts == set()


def test_an_address_behind_the_last_tensor_is_outside(watch):
    watch.enter((0, 0, 0))
    watch.read([END - 4])
    assert watch.facts == set()
    watch.read([END])
    assert watch.facts == {"outside"}
