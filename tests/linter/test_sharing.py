import pytest

from temper_plugin_linter.sharing import quota_unenforced, weight_unenforced


def test_a_pod_beyond_its_quota_is_told_with_both_numbers(seen, judge, sample):
    snapshot = seen(pods=(sample(cpu_used=1.8, quota_cores=1.0),))

    [finding] = judge(quota_unenforced, snapshot)

    assert finding.subject == "shop/web"
    assert finding.message.startswith("uses 1.80 CPUs of a quota of 1.00")
    assert finding.evidence["beyond"] == pytest.approx(0.8)


@pytest.mark.parametrize(
    "pod",
    [
        pytest.param({"cpu_used": 8.0}, id="no quota"),
        pytest.param({"cpu_used": 1.04, "quota_cores": 1.0}, id="within 5 %"),
        pytest.param({"cpu_used": 0.06, "quota_cores": 0.02}, id="next to nothing"),
        pytest.param({"cpu_used": 0.9, "quota_cores": 1.0}, id="below it"),
    ],
)
def test_a_quota_that_is_kept_is_silent(pod, seen, judge, sample):
    assert judge(quota_unenforced, seen(pods=(sample(**pod),))) == []


def waiting(sample, name, cpu_used, weight, run_delay=2.0):
    return sample(name, cpu_used=cpu_used, weight=weight, run_delay=run_delay)


def test_who_gets_half_of_what_its_weight_entitles_it_to_is_short(seen, judge, sample):
    pods = waiting(sample, "web", 1.0, 300), waiting(sample, "batch", 1.0, 100)

    [finding] = judge(weight_unenforced, seen(pods=pods))

    assert finding.subject == "shop/web"
    assert "gets 1.00 CPUs where its weight of 300" in finding.message
    assert "entitles it to 1.50" in finding.message
    assert (finding.evidence["weights"], finding.evidence["layer"]) == (400, "open")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param((1.5, 300), (0.5, 100), id="shared by weight"),
        pytest.param((1.0, 100), (1.0, 100), id="the same weight"),
        pytest.param((1.0, 300), (1.0, 100, 0.1), id="the other does not wait"),
        pytest.param((1.0, 300, 0.1), (1.0, 100), id="it does not wait itself"),
        pytest.param((1.0, 300, 0.25), (1.0, 100), id="it hardly wants more"),
        pytest.param((1.0, None), (1.0, 50), id="nothing was asked for"),
        pytest.param((0.02, 300), (0.02, 100), id="next to nothing"),
    ],
)
def test_a_share_that_fits_the_weight_is_silent(one, other, seen, judge, sample):
    pods = waiting(sample, "web", *one), waiting(sample, "batch", *other)

    assert judge(weight_unenforced, seen(pods=pods)) == []


def test_pods_of_different_layers_are_no_rivals(seen, judge, sample):
    pods = waiting(sample, "web", 1.0, 900), waiting(sample, "api", 1.0, 100)

    assert judge(weight_unenforced, seen(pods=pods)) == []


def test_a_pod_in_no_layer_of_the_plan_is_nobodys_rival(seen, judge, sample):
    pods = waiting(sample, "new", 1.0, 900), waiting(sample, "newer", 1.0, 100)

    assert judge(weight_unenforced, seen(pods=pods)) == []
