"""Whether two engines fit: by what each cgroup around the agent, and the machine, has left."""

import pytest

from temper_core.scheduler.preflight.swap_memory import LOADING_BYTES, MIB, why_no_room

OWN = "cgroup/system.slice/temper.service"


@pytest.fixture
def limited(node):
    """A node on which the agent runs in a service of its own."""
    node.put("proc/self/cgroup", "0::/system.slice/temper.service\n")

    def limit(folder: str, *, limit: str, used: int, inactive_file: int = 0) -> None:
        node.put(f"{folder}/memory.max", f"{limit}\n")
        node.put(f"{folder}/memory.current", f"{used}\n")
        node.put(f"{folder}/memory.stat", f"anon 1\ninactive_file {inactive_file}\nslab 2\n")

    return limit


def test_a_machine_with_room_has_room(node):
    assert why_no_room(node.roots) == ""


def test_a_container_that_holds_one_engine_holds_no_second(node, limited):
    limited(OWN, limit=str(512 * MIB), used=240 * MIB)

    told = why_no_room(node.roots)

    assert told.startswith("a second engine needs 384 MiB while it loads; ")
    assert told.endswith("system.slice/temper.service has 272 MiB left below its limit of memory")


@pytest.mark.parametrize(("spare", "has_room"), [(0, True), (-1, False)])
def test_the_limit_counts_to_the_byte(node, limited, spare, has_room):
    limited(OWN, limit=str(LOADING_BYTES + 100 + spare), used=100)

    assert (why_no_room(node.roots) == "") is has_room


def test_page_cache_that_the_kernel_can_drop_is_room(node, limited):
    limited(OWN, limit=str(512 * MIB), used=500 * MIB, inactive_file=400 * MIB)

    assert why_no_room(node.roots) == ""


def test_the_tightest_cgroup_around_counts(node, limited):
    limited(OWN, limit="max", used=240 * MIB)
    limited("cgroup/system.slice", limit=str(1024 * MIB), used=900 * MIB)

    assert "system.slice has 124 MiB left" in why_no_room(node.roots)


def test_a_cgroup_beyond_its_limit_has_nothing_left(node, limited):
    limited(OWN, limit=str(100 * MIB), used=240 * MIB)

    assert "has 0 MiB left" in why_no_room(node.roots)


def test_a_machine_short_of_memory_says_how_much_there_is(node):
    node.put("proc/meminfo", "MemTotal: 4000000 kB\nMemAvailable: 307200 kB\n")

    assert why_no_room(node.roots).endswith("; 300 MiB are available on this machine")


def test_what_the_kernel_does_not_tell_is_not_held_against_it(node, limited):
    limited(OWN, limit="max", used=1)
    node.remove(f"{OWN}/memory.current")
    node.put("proc/meminfo", "MemTotal: 1 kB\n")

    assert why_no_room(node.roots) == ""
