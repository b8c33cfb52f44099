"""Machines that are too large to boot in an emulator: up to 512 CPUs with many nodes and caches.

Their sysfs is invented, and no engine has judged these plans.
"""

import time

import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from temper_core.made_trees import make_sysfs
from temper_core.node.topology import read_machine
from temper_core.plan import decide, render_engine
from temper_core.records.machine import MachineShape
from tests.core.plan.nodes import nodes

MACHINES = [(128, 2, 16), (256, 2, 32), (512, 2, 32), (512, 8, 64)]
"""CPUs, NUMA nodes, and last-level caches of the machine."""
QUADRATIC = 16


def server(cpus, numa_nodes, llcs):
    """Return a machine whose second threads are numbered after all first ones."""
    cores = cpus // 2
    made = MachineShape.uniform(cores, 2, sockets=2, numa_nodes=numa_nodes, llcs=llcs)
    places = (evolve(cpu, id=cpu.core + cores * (cpu.id % 2)) for cpu in made.cpus)
    return evolve(made, cpus=tuple(sorted(places, key=lambda cpu: cpu.id)))


@pytest.mark.parametrize("size", MACHINES)
def test_every_cpu_of_a_large_machine_is_read_in_its_one_place(tmp_path, size):
    made = server(*size)

    read = read_machine(make_sysfs(tmp_path, made), architecture="x86_64")

    assert read == made
    assert sorted(cpu for core in read.siblings for cpu in core) == list(range(size[0]))
    assert {len(core) for core in read.siblings} == {2}
    assert (read.numa_nodes, read.llcs) == size[1:]


@settings(max_examples=25)
@given(nodes(), st.sampled_from(MACHINES))
def test_nodes_and_caches_change_no_byte_of_the_plan(node, size):
    pods, catalogue, _, given_settings = node
    cores = size[0] // 2

    plan = decide(pods, catalogue, server(*size), given_settings)

    flat = decide(pods, catalogue, MachineShape.uniform(cores, 2), given_settings)
    assert render_engine(plan) == render_engine(flat)
    reserved = given_settings.plan.reserve_cores
    assert sum(layer.cpus_max or 0 for layer in plan.layers) <= 2 * (cores - reserved)
    assert all((layer.cpus_max or 0) % 2 == (layer.cpus_min or 0) % 2 == 0 for layer in plan.layers)


def test_reading_four_times_the_cpus_takes_less_than_quadratic_time(tmp_path):
    trees = [
        make_sysfs(tmp_path / str(size[0]), server(*size)) for size in ((128, 2, 16), (512, 2, 64))
    ]

    small, large = (min(_seconds(tree) for _ in range(3)) for tree in trees)

    assert large < QUADRATIC * small


def _seconds(tree):
    began = time.process_time()
    read_machine(tree)
    return time.process_time() - began
