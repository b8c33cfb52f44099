import pytest
from hypothesis import given
from hypothesis import strategies as st

from temper_core.errors import InputError
from temper_core.node.cpulist import CPU_LIMIT, format_cpulist, parse_cpulist


@pytest.mark.parametrize(
    ("text", "cpus"),
    [
        ("", ()),
        ("\n", ()),
        ("0", (0,)),
        ("0-3,8\n", (0, 1, 2, 3, 8)),
        ("8,0-1,1", (0, 1, 8)),
    ],
)
def test_a_list_reads_as_the_kernel_means_it(text, cpus):
    assert parse_cpulist(text) == cpus


@pytest.mark.parametrize(
    "text", ["a", "3-1", "-1", "1-", "0-99999999", "0x3", "1 2", "٣", str(CPU_LIMIT), "0;1"]
)
def test_nonsense_is_refused_with_what_it_says(text):
    with pytest.raises(InputError, match="CPUs"):
        parse_cpulist(text)


@given(st.sets(st.integers(0, CPU_LIMIT - 1), max_size=60))
def test_what_is_written_reads_back(cpus):
    assert set(parse_cpulist(format_cpulist(cpus))) == cpus


def test_neighbours_are_written_as_ranges():
    assert format_cpulist([9, 3, 2, 1, 0, 10, 12]) == "0-3,9-10,12"
