"""Emptying real hash maps of the kernel, in one call and in many."""

import os
from pathlib import Path

import pytest

from temper_core.bpf import maps
from temper_core.bpf.draining import drain
from temper_core.errors import BpfError


@pytest.fixture
def table(load):
    """A hash map of the object of these tests, with keys and values of its own sizes."""
    skeleton = load("tally", max_entries={"seen": 64})
    found = maps.info(skeleton.maps["seen"])
    return skeleton.maps["seen"], found.key_size, found.value_size


def fill(table, count):
    fd, key_size, value_size = table
    given = {n.to_bytes(key_size, "little"): os.urandom(value_size) for n in range(1, count + 1)}
    maps.update_many(fd, list(given.items()))
    return given


def taken(table, **options):
    fd, key_size, value_size = table
    found = {}
    for keys, values in drain(fd, key_size, value_size, **options):
        for place in range(len(keys) // key_size):
            key = keys[place * key_size : (place + 1) * key_size]
            found[key] = values[place * value_size : (place + 1) * value_size]
    return found


@pytest.mark.parametrize("at_once", [16, 2_048])
def test_all_elements_come_out_and_none_stays(table, at_once):
    given = fill(table, 40)

    assert taken(table, at_once=at_once) == given
    assert list(maps.keys(table[0], table[1])) == []


def test_an_empty_map_gives_nothing(table):
    assert taken(table) == {}


def test_what_is_no_map_is_refused(table):
    with Path("/dev/null").open() as file, pytest.raises(BpfError, match="cannot empty a BPF map"):
        list(drain(file.fileno(), table[1], table[2]))
