import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from temper_core import parse_profile
from temper_plugin_trainer.coverage import judge
from temper_plugin_trainer.thread_tables import TableMachine, TableThread, ThreadTable

PROFILE = """
id = "shop"

[[thread_groups]]
name = "requests"
match = [{ comm_prefix = "req-" }]
treatment = "latency"

[[thread_groups]]
name = "merges"
match = [{ title_pattern = "merge" }, { comm_prefix = "mrg" }]
treatment = "yield"

[[thread_groups]]
name = "spinners"
match = [{ behaviour = { cpu_share = [0.9, 1.0] } }]
"""
REST = """
[[thread_groups]]
name = "rest"
treatment = "yield"
"""
ROWS = st.builds(
    TableThread,
    comm=st.sampled_from(["req-1", "mrg", "other"]),
    process=st.just("shop"),
    title=st.sampled_from(["", "shop merge"]),
    cpu_share=st.sampled_from([0.0, 0.25, 0.95]),
    count=st.integers(1, 3),
    names=st.sampled_from([(), ("req-2",), ("other",)]),
)


def table_of(*threads):
    return ThreadTable("shop", "1", "x", TableMachine(2), "6.12", 10.0, "2026-01-31", threads)


def row(comm, cpu_share=0.5, **more):
    return TableThread(comm, "shop", cpu_share=cpu_share, **more)


def groups_of(*threads, text=PROFILE + REST, is_static=False):
    coverage = judge(parse_profile(text, "shop.toml"), table_of(*threads), is_static=is_static)
    return [each.group.name if each.group else None for each in coverage.judged]


def judged(*threads, text=PROFILE + REST, **more):
    return judge(parse_profile(text, "shop.toml"), table_of(*threads), **more)


def test_the_first_group_that_matches_takes_a_thread():
    threads = [row("req-1", title="shop merge"), row("x", title="shop merge"), row("mrg-1")]

    assert groups_of(*threads) == ["requests", "merges", "merges"]


def test_behaviour_is_judged_from_what_was_recorded():
    assert groups_of(row("a", 0.95), row("b", 0.2)) == ["spinners", "rest"]


def test_a_short_lived_thread_counts_where_it_is_until_user_space_decides():
    text = (
        (PROFILE + REST)
        .replace('[[thread_groups]]\nname = "spinners"', "")
        .replace("match = [{ behaviour = { cpu_share = [0.9, 1.0] } }]", "")
    )
    brief = {"title": "shop merge", "lived_share": 0.01, "count": 40}

    coverage = judged(row("x", 0.5, **brief), row("req-1", 0.2), text=text)

    assert [each.group.name for each in coverage.judged] == ["merges", "requests"]
    assert coverage.share_of("merges") == pytest.approx(0.05)
    assert coverage.share_of("rest") == pytest.approx(0.45)
    assert coverage.covered_share == pytest.approx(0.55)
    assert coverage.late_share == pytest.approx(0.45)
    assert [each.thread.comm for each in coverage.late] == ["x"]


def test_a_short_lived_thread_is_in_its_group_at_once_where_its_prefix_tells():
    coverage = judged(row("req-1", 0.5, lived_share=0.01, count=40))

    assert (coverage.covered_share, coverage.late) == (pytest.approx(1.0), ())


@pytest.mark.parametrize(
    ("key", "covered"),
    [
        pytest.param("title_pattern", 0.4, id="nothing reached them"),
        pytest.param("comm_prefix", 0.5, id="a prefix may have"),
    ],
)
def test_threads_that_no_look_saw_are_not_covered_where_no_prefix_takes_them(key, covered):
    text = (
        f'id = "shop"\n[[thread_groups]]\nname = "merges"\nmatch = [{{ {key} = "merge" }}]\n{REST}'
    )
    table = evolve(table_of(row("merge", 0.2, title="merge"), row("x", 0.2)), unseen_cpus=0.1)

    coverage = judge(parse_profile(text, "shop.toml"), table)

    assert coverage.covered_share == pytest.approx(covered)


def test_executable_and_parent_are_judged_from_what_was_recorded():
    text = PROFILE.replace('title_pattern = "merge"', 'exe = "merger", is_child = true')
    mine = {"exe": "merger", "parent": "shop", "child": True}
    threads = [row("a", **mine), row("b", **{**mine, "child": False}), row("c")]

    assert groups_of(*threads, text=text + REST) == ["merges", "rest", "rest"]
    assert not judged(*threads, text=text).lacks_origins
    assert judged(row("c"), text=text).lacks_origins


def test_the_age_that_a_match_asks_for_counts_from_the_start_of_the_thread():
    text = PROFILE.replace('comm_prefix = "mrg"', 'comm_prefix = "mrg", older_than_s = 60')
    text = text.partition('[[thread_groups]]\nname = "spinners"')[0] + REST
    threads = [row("mrg", age_s=age_s) for age_s in (0.0, 52.5, 60.0, -1.0)]

    coverage = judged(*threads, text=text)

    shares = [each.cpus_in("merges") / 0.5 for each in coverage.judged]
    assert shares == pytest.approx([0.0, 0.25, 1.0, 1.0])


def test_the_rest_group_covers_nothing():
    coverage = judged(row("req-1", 0.3), row("other", 0.1))

    assert coverage.covered_share == pytest.approx(0.75)
    assert coverage.taken_share == pytest.approx(1.0)


def test_without_a_rest_group_what_is_left_is_in_none():
    coverage = judged(row("req-1", 0.3), row("other", 0.1), text=PROFILE)

    assert coverage.taken_share == pytest.approx(0.75)
    assert [each.thread.comm for each in coverage.of_group(None)] == ["other"]


def test_alike_threads_weigh_as_many_as_they_are():
    coverage = judged(row("req-1", 0.1, count=3), row("other", 0.1))

    assert coverage.share_of("requests") == pytest.approx(0.75)


def test_hot_threads_of_no_matching_group_are_named_the_busiest_first():
    threads = [row("req-1", 0.8), row("warm", 0.1), row("hot", 0.2), row("cold", 0.001)]

    coverage = judged(*threads)

    assert [each.thread.comm for each in coverage.hot_unmatched] == ["hot", "warm"]


def test_without_steering_only_names_count_and_the_rest_stays_in_its_tier():
    threads = [row("req-1"), row("mrg"), row("x", title="shop merge"), row("y", 0.95), row("z")]

    assert groups_of(*threads, is_static=True) == ["requests", "merges", None, None, None]


def test_without_steering_the_rest_is_taken_where_all_groups_go_by_names():
    text = PROFILE.partition('[[thread_groups]]\nname = "merges"')[0] + REST

    assert groups_of(row("req-1"), row("z"), text=text, is_static=True) == ["requests", "rest"]


def test_a_thread_whose_other_name_is_in_another_group_is_told():
    coverage = judged(row("req-1", names=("other", "req-2")), row("req-3", names=("req-4",)))

    assert [each.others for each in coverage.judged] == [("rest",), ()]


def test_a_table_in_which_nobody_ran_is_covered_by_nothing():
    coverage = judged(row("req-1", 0.0))

    assert (coverage.covered_share, coverage.hot_unmatched) == (0.0, ())


@given(st.lists(ROWS, min_size=1, max_size=8))
def test_groups_and_those_of_none_make_up_the_whole_table(rows):
    coverage = judged(*rows)
    names = [*(group.name for group in coverage.profile.thread_groups), None]

    assert sum(len(coverage.of_group(name)) for name in names) == len(rows)
    if coverage.table.cpus_used:
        assert sum(coverage.share_of(name) for name in names) == pytest.approx(1.0)


@given(st.lists(ROWS, min_size=1, max_size=8))
def test_steering_never_covers_less_than_names_alone(rows):
    static, steered = judged(*rows, is_static=True), judged(*rows)

    assert static.covered_share <= steered.covered_share + 1e-9


@given(st.lists(ROWS, min_size=1, max_size=8))
def test_more_threads_change_nobody_elses_group(rows):
    assert groups_of(*rows, row("req-9"), row("new")) == [*groups_of(*rows), "requests", "rest"]
