import subprocess

import pytest

from temper_core.engine.capabilities import capabilities_of, known_versions
from temper_core.errors import InputError

NEWEST = "1.1.4"


def test_no_version_is_the_newest_that_is_known():
    capabilities = capabilities_of(None)

    assert capabilities.version == NEWEST
    assert not capabilities.assumed
    assert capabilities.assumption == ""


@pytest.mark.parametrize(
    ("version", "matchers", "conditions", "algorithms", "options"),
    [
        ("1.0.5", 11, 11, 7, 10),
        ("1.0.8", 11, 11, 9, 14),
        ("1.0.10", 17, 17, 9, 17),
        ("1.0.11", 18, 18, 9, 17),
        ("1.0.13", 22, 20, 16, 21),
        ("1.0.18", 25, 22, 16, 21),
        ("1.0.21", 28, 26, 16, 22),
        ("1.1.0", 28, 26, 16, 24),
        (NEWEST, 28, 26, 16, 25),
    ],
)
def test_each_version_has_its_own_counts(version, matchers, conditions, algorithms, options):
    capabilities = capabilities_of(version)

    assert len(capabilities.matchers) == matchers
    assert capabilities.max_and_conditions == conditions
    assert len(capabilities.growth_algos) == algorithms
    assert len(capabilities.common_fields) == options


def test_types_are_those_of_the_version():
    before, after = capabilities_of("1.0.23"), capabilities_of("1.1.0")

    assert before.common_fields["allow_node_aligned"] == "bool"
    assert after.common_fields["allow_node_aligned"] == "Option<bool>"
    assert after.matchers["NSPIDEquals"] == "u64, u32"


def test_a_matcher_that_was_removed_is_in_no_later_version():
    assert "UsedGpu" in capabilities_of("1.0.10").matchers
    assert "UsedGpu" not in capabilities_of("1.0.11").matchers
    assert known_versions("matchers", "UsedGpu") == "from 1.0.10 to before 1.0.11"


@pytest.mark.parametrize(
    ("version", "entry"),
    [("1.0.7", "1.0.6"), ("1.0.17", "1.0.16"), ("1.0.22", "1.0.21"), ("1.0.99", "1.0.23")],
)
def test_a_version_between_two_is_taken_for_the_older(version, entry):
    capabilities = capabilities_of(version)

    assert capabilities.known_as == entry
    assert capabilities.assumed
    assert capabilities.assumption == f"scx_layered {version} is not known; taken for {entry}"


@pytest.mark.parametrize("version", ["1.1.5", "1.2.0", "2.0.0"])
def test_a_version_to_come_is_taken_for_the_newest(version):
    capabilities = capabilities_of(version)

    assert capabilities.known_as == NEWEST
    assert capabilities.assumed


@pytest.mark.parametrize("version", ["1.1.4-g7a58a3a-dirty", "1.1.4+deb13"])
def test_a_build_of_a_known_version_is_that_version(version):
    capabilities = capabilities_of(version)

    assert capabilities.known_as == NEWEST
    assert not capabilities.assumed


@pytest.mark.parametrize("version", ["", "v1.1.2", "1.1", "1.1.x", "scx_layered 1.1.4", "1.1.٤"])
def test_what_is_no_version_is_the_users_mistake(version):
    with pytest.raises(InputError, match=r"known: 1\.0\.5 to 1\.1\.4"):
        capabilities_of(version)


def test_a_version_before_all_known_names_the_oldest():
    with pytest.raises(InputError, match=r"0\.9\.9 is older than 1\.0\.5"):
        capabilities_of("0.9.9")


def test_a_cgroup_regex_among_matches_came_a_version_after_the_matcher():
    template_only, both = capabilities_of("1.0.18"), capabilities_of("1.0.19")

    assert "CgroupRegex" in template_only.matchers
    assert not template_only.matches_cgroup_regex
    assert both.matches_cgroup_regex


def test_the_real_engine_lists_the_options_the_table_has(engine):
    command = [engine.path, "--help"]  # it prints to the error stream and exits with 255
    printed = subprocess.run(command, capture_output=True, text=True, check=False).stderr
    capabilities = capabilities_of(engine.version)

    assert not capabilities.assumed
    assert [name for name in capabilities.cli_fields if f"--{name}" not in printed] == []
