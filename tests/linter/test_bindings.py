import pytest

from temper_core.testing import make_thread
from temper_plugin_linter.affinity import stale_affinity

# critical owns CPUs 0 and 1, high 2 and 3, system 6 and 7; 4 and 5 are nobody's.


def bound(layer, *cpus, **changes):
    given = {"cpu_used": 0.3, "tid": 5, "layer": layer, "affinity": cpus}
    return make_thread("worker", **{**given, **changes})


@pytest.mark.parametrize(
    ("layer", "cpus", "says"),
    [
        ("critical", (4,), "may not run on any CPU of its layer 'critical' (0, 1)"),
        ("high", (4, 5), "may not run on any CPU of its layer 'high' (2, 3)"),
        ("open", (0,), "may run only on CPUs that are fenced off for critical"),
        ("open", (1, 2), "may run only on CPUs that are fenced off for critical, high"),
        ("system", (3,), "may run only on CPUs that are fenced off for high"),
        ("", (0,), "may run only on CPUs that are fenced off for critical"),
    ],
)
def test_a_thread_bound_where_the_plan_does_not_want_it_is_told(layer, cpus, says, seen, judge):
    [finding] = judge(stale_affinity, seen(bound(layer, *cpus)))

    assert finding.subject == "worker"
    assert finding.message.endswith(f"it {says}: worker[5]")


@pytest.mark.parametrize(
    "thread",
    [
        pytest.param(bound("critical", 0), id="inside its own fence"),
        pytest.param(bound("critical", 1, 4), id="one CPU of its own is enough"),
        pytest.param(bound("open", 4), id="where nobody is fenced"),
        pytest.param(bound("open", 0, 4), id="it can go elsewhere"),
        pytest.param(bound("system", 4), id="its layer is not protected"),
        pytest.param(bound("open"), id="not bound at all"),
        pytest.param(bound("open", 0, cpu_used=0.04), id="it does next to nothing"),
    ],
)
def test_a_binding_that_harms_nobody_is_silent(thread, seen, judge):
    assert judge(stale_affinity, seen(thread)) == []


def test_a_kernel_thread_is_bound_by_nature(seen, judge):
    assert judge(stale_affinity, seen(bound("open", 0, is_kthread=True))) == []


def test_the_threads_of_a_pool_are_told_together(seen, judge):
    pool = [make_thread(f"w-{n}", tid=n, layer="open", affinity=(0,)) for n in range(10, 18)]

    [finding] = judge(stale_affinity, seen(*pool))

    assert (finding.subject, finding.evidence["threads"]) == ("w-#", 8)


def test_a_pod_whose_cpuset_is_another_layers_fence_is_told_once(seen, judge, sample):
    pod = sample("web", cpuset=(2, 3))
    threads = [bound("open", 2, 3, namespace="shop", pod="web", process=f"p{n}") for n in range(3)]

    [finding] = judge(stale_affinity, seen(*threads, pods=(pod,)))

    assert finding.subject == "shop/web cpuset"
    assert "confined to CPUs 2, 3, it may run only on CPUs that are fenced off for high" in (
        finding.message
    )


def test_a_pod_whose_cpuset_shuts_it_out_of_its_own_layer_is_told(seen, judge, sample):
    [finding] = judge(stale_affinity, seen(pods=(sample("db", cpuset=(4, 5)),)))

    assert "may not run on any CPU of its layer 'critical' (0, 1)" in finding.message


@pytest.mark.parametrize(
    "pod",
    [
        {"cpuset": (4, 5)},
        {"cpuset": (0, 1, 2, 3, 4, 5, 6, 7)},
        {"cpuset": (0,), "cpu_used": 0.01},
        {"cpuset": ()},
    ],
)
def test_a_cpuset_that_harms_nobody_is_silent(pod, seen, judge, sample):
    assert judge(stale_affinity, seen(pods=(sample("web", **pod),))) == []
