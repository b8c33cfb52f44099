import attrs
import pytest

from temper_core import Container, Mode, Status, parse_profile
from temper_core.records.profiles import LoadedProfile
from temper_core.testing import make_thread
from temper_plugin_linter.unmatched import profile_not_applied, unmatched_hot_thread

MATCH = 'match = [{ comm_prefix = "connection" }, { comm_pattern = "^ib_[a-z]+$" }]'
NAMED = f'[[thread_groups]]\nname = "known"\n{MATCH}\ntreatment = "latency"\n'
YIELDING = '[[thread_groups]]\nname = "rest"\ntreatment = "yield"\n'
NORMAL = '[[thread_groups]]\nname = "rest"\ntreatment = "normal"\n'
BY_TITLE = '[[thread_groups]]\nname = "writers"\nmatch = [{ title_pattern = "writer" }]\n'


def loaded(*groups, head=""):
    text = "\n".join(['schema_version = 1\nid = "mysql"', head, *groups])
    return LoadedProfile(parse_profile(text, "mysql.toml"), "mysql.toml", is_file=True)


@pytest.fixture
def asked(seen, judge, sample, profiled):
    """Judge a thread of a pod with a profile of these groups."""

    def ask(thread, *groups, head="", **pod):
        own = make_thread(
            **{"namespace": "shop", "pod": "web", "process": "mysqld", "cpu_used": 0.8, **thread}
        )
        snapshot = seen(own, pods=(sample("web", profile="mysql"),))
        plan = profiled(snapshot, loaded(*groups, head=head), **pod)
        return judge(unmatched_hot_thread, attrs.evolve(snapshot, plan=plan))

    return ask


@pytest.mark.parametrize("groups", [(NAMED,), (NAMED, YIELDING)])
def test_a_hot_thread_that_no_group_names_is_told(groups, asked):
    [finding] = asked({"comm": "parallel-17"}, *groups)

    assert finding.subject == "shop/web parallel-#"
    assert "no thread group of profile 'mysql' names it: shop/web parallel-17[1000]" in (
        finding.message
    )


@pytest.mark.parametrize(
    ("thread", "groups"),
    [
        pytest.param({"comm": "connection"}, (NAMED,), id="named by prefix"),
        pytest.param({"comm": "ib_log"}, (NAMED, YIELDING), id="named by pattern"),
        pytest.param({"comm": "purge"}, (NAMED, NORMAL), id="the rest is as normal"),
        pytest.param({"comm": "purge"}, (BY_TITLE,), id="a title cannot be judged"),
        pytest.param({"comm": "purge", "cpu_used": 0.4}, (NAMED,), id="it is not hot"),
        pytest.param({"comm": "purge", "pod": "other"}, (NAMED,), id="a pod without a profile"),
    ],
)
def test_a_thread_that_the_profile_takes_care_of_is_silent(thread, groups, asked):
    assert asked(thread, *groups) == []


def test_another_containers_threads_are_none_of_the_profiles(asked):
    containers = Container("db", image="mysql:8"), Container("proxy", image="envoy:1")
    head = '[fingerprint]\nprocesses = ["mysqld"]'

    sidecar = asked({"comm": "wrk:0", "process": "envoy"}, NAMED, head=head, containers=containers)
    own = asked({"comm": "purge"}, NAMED, head=head, containers=containers)

    assert (len(sidecar), len(own)) == (0, 1)


def test_a_profile_is_judged_before_any_engine_runs(seen, judge, sample, profiled):
    thread = make_thread("purge", namespace="shop", pod="web", cpu_used=0.8)
    snapshot = seen(thread, pods=(sample("web", profile="mysql"),))
    plan = profiled(snapshot, loaded(NAMED))
    resting = attrs.evolve(snapshot, plan=plan, status=Status(Mode.OBSERVE_ONLY))

    assert len(judge(unmatched_hot_thread, resting)) == 1
    assert judge(unmatched_hot_thread, attrs.evolve(resting, plan=None)) == []


def test_names_are_judged_beside_a_title_that_they_rule_out(asked):
    writers = BY_TITLE.replace("{ title", '{ comm_prefix = "wr", title')

    assert len(asked({"comm": "purge"}, NAMED, writers)) == 1
    assert asked({"comm": "wr-1"}, NAMED, writers) == []


@pytest.mark.parametrize(
    ("code", "fix"),
    [
        ("unknown_id", "correct the id"),
        ("not_loaded", "temper profiles lint"),
        ("shape", "machine_shape"),
        ("version", "annotation"),
    ],
)
def test_a_pod_without_the_profile_that_is_claimed_for_it_is_told(seen, judge, sample, code, fix):
    claimed = attrs.evolve(sample("web"), profile_code=code, profile_reason="there is none")

    [finding] = judge(profile_not_applied, seen(pods=(claimed, sample("db"))))

    assert finding.subject == "shop/web"
    assert "without its selected profile: there is none" in finding.message
    assert fix in finding.fix


def test_a_profile_that_is_applied_is_no_finding_however_odd_it_is(seen, judge, sample):
    odd = attrs.evolve(sample("web", profile="mysql"), profile_code="expired")

    assert judge(profile_not_applied, seen(pods=(odd,))) == []
