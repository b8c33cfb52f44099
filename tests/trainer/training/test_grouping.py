import pytest
from hypothesis import given
from hypothesis import strategies as st

from temper_plugin_trainer.name_families import name_family, name_words
from temper_plugin_trainer.training.classes import ThreadClass
from temper_plugin_trainer.training.grouping import analyse
from tests.trainer.training.bundled import BY_NETWORK, BY_THREADS, bundle, edge, thread


def worker(number, cpus=0.9, rate=1.0, **more):
    return thread(f"worker-{number}", 10 + number, cpus, rate, **more)


def labels(analysis):
    return [(group.label, str(group.kind), len(group.tids)) for group in analysis.groups]


def test_threads_of_one_family_and_behaviour_are_one_group():
    analysis = analyse(bundle(worker(0), worker(1), thread("tick", 3, 0.001, 4)))

    assert labels(analysis) == [("shop/worker-#", "sync compute", 2), ("shop/tick", "sporadic", 1)]
    assert analysis.groups[0].cpus == pytest.approx(1.8)


def test_a_family_whose_threads_differ_is_divided_and_told():
    served = worker(1, 0.2, 2_000, sleeps_in=BY_NETWORK)

    analysis = analyse(bundle(worker(0), served))

    kinds = [("shop/worker-#", "sync compute", 1), ("shop/worker-#", "latency critical", 1)]
    assert labels(analysis) == kinds
    (remark,) = analysis.remarks
    assert remark.startswith("one name, several behaviours: shop/worker-#: 1 sync compute, 1 ")


def test_a_thread_with_little_of_the_cpu_time_follows_its_family():
    analysis = analyse(bundle(worker(0), worker(1), worker(2, 0.0, 0)))

    assert labels(analysis) == [("shop/worker-#", "sync compute", 3)]


def test_short_lived_threads_of_a_family_are_judged_together():
    brief = [worker(n, 0.0, 0, lived_s=0.2, run_s=0.19, sleeps=1) for n in range(8)]

    analysis = analyse(bundle(*brief))

    assert labels(analysis) == [("shop/worker-#", "sync compute", 8)]
    assert analysis.groups[0].confidence >= 0.6


def test_containers_and_processes_are_kept_apart():
    analysis = analyse(bundle(worker(0, container="a"), worker(1, container="b")))

    assert [group.key.container for group in analysis.groups] == ["a", "b"]


def test_wake_ups_between_groups_are_added_up():
    threads = [worker(0), worker(1), thread("io", 3, 0.1, 500)]

    edges = [edge(10, 3, 30), edge(11, 3, 20), edge(0, 3, 4, inside=False), edge(99, 3, 1)]
    analysis = analyse(bundle(*threads, edges=edges))

    assert [(each.waker, each.wakee, each.per_s) for each in analysis.edges] == [
        (0, 1, 50.0),
        (-2, 1, 4.0),
        (-1, 1, 1.0),
    ]
    assert analysis.groups[1].kind is ThreadClass.WAKE_CHAIN


@pytest.mark.parametrize(
    ("name", "cpus", "rate", "sleeps_in", "is_told"),
    [
        ("idle-3", 0.9, 1.0, {}, True),
        ("gcWorker", 0.1, 500, BY_NETWORK, True),
        ("epoll-1", 0.9, 1.0, {}, True),
        ("compute-1", 0.1, 500, BY_NETWORK, True),
        ("gcWorker", 0.9, 1.0, {}, False),
        ("log_flusher", 0.1, 500, BY_NETWORK, False),
        ("pg_flusher", 0.1, 500, BY_THREADS, False),
        ("worker-1", 0.9, 1.0, {}, False),
        ("idle-3", 0.001, 1.0, {}, False),
    ],
)
def test_a_name_is_misleading_if_it_promises_another_class(name, cpus, rate, sleeps_in, is_told):
    analysis = analyse(bundle(thread(name, 3, cpus, rate, sleeps_in=sleeps_in)))

    assert any(name_family(name) in line for line in analysis.remarks) is is_told


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"problems": ("idle: x",)}, "the load was not representative: idle: x"),
        ({"unseen_cpus": 0.5}, "0.50 CPUs were used by threads too short-lived to be seen"),
        ({"left_out": 3, "left_out_cpus": 0.1}, "3 threads have no record, 0.10 CPUs used"),
        ({"reason": "no BPF"}, "wake-ups were not observed (no BPF): wait channels tell chains"),
    ],
)
def test_what_the_bundle_does_not_tell_is_said(changes, line):
    analysis = analyse(bundle(worker(0), **changes))

    assert any(told.startswith(line) for told in analysis.untold)


def test_a_lack_of_cpus_is_told():
    analysis = analyse(bundle(worker(0, 0.1, wait_s=9.0)))

    assert "CPUs were short: threads waited for 90 % of their runnable time" in analysis.untold


def test_an_unclear_group_is_told_with_the_reason():
    analysis = analyse(bundle(thread("io", 3, 0.3, 5)))

    assert analysis.untold[-1].startswith("unclear: shop/io (latency critical, 0.40): fits no")


def test_a_family_has_its_numbers_replaced():
    assert name_family("G1 Conc#12-3") == "G# Conc##-#"


def test_a_name_is_split_into_words():
    assert name_words("ioPoll-3 GCThread") == {"io", "poll", "gc", "thread"}


@given(
    st.lists(
        st.builds(
            thread,
            st.sampled_from(["a-1", "a-2", "gc", "b"]),
            st.integers(1, 20),
            st.floats(0, 1e6),
            st.floats(0, 1e9),
            lived_s=st.floats(1e-6, 1e6),
            wait_s=st.floats(0, 1e9),
            sleeps_in=st.sampled_from([{}, BY_THREADS, BY_NETWORK]),
        ),
        min_size=1,
        max_size=9,
    )
)
def test_every_thread_of_any_bundle_is_in_one_group(threads):
    analysis = analyse(bundle(*threads))

    assert sum(len(group.tids) for group in analysis.groups) == len(threads)
    assert all(0 <= group.confidence <= 1 for group in analysis.groups)
