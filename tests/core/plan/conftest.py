"""Pods, profiles and machines that the tests of the plan are made of."""

import os
import shutil
from pathlib import Path

import attrs
import pytest

from temper_core.engine.binary import EngineBinary, find_engine
from temper_core.plan import ProfileCatalogue, decide, membership
from temper_core.records.pods import Container, QosClass
from temper_core.records.profiles import Fingerprint, LoadedProfile, WorkloadProfile
from temper_core.records.steering import FIXED_HINTS, Steering
from temper_core.records.thread_groups import ThreadGroup, ThreadMatch, Treatment
from temper_core.records.threads import ThreadIdentity
from temper_core.settings import Settings
from temper_core.testing import make_machine, make_pod


@pytest.fixture
def pod():
    """Make a pod by name, priority, and requests and limits in millicores."""

    def make(name, priority=None, request=0, limit=None, **changes):
        given = {
            "uid": f"{name}-0000-4000",
            "priority": priority,
            "cpu_request_millis": request,
            "cpu_limit_millis": limit,
            "qos_class": QosClass.BURSTABLE if request else QosClass.BEST_EFFORT,
        }
        return make_pod(name, **{**given, **changes})

    return make


@pytest.fixture
def group():
    """Make a thread group that takes names by prefix; no prefix takes the rest."""

    def make(name, *prefixes, treatment="normal", **changes):
        matches = tuple(ThreadMatch(comm_prefix=prefix) for prefix in prefixes)
        return ThreadGroup(name, matches, Treatment(treatment), **changes)

    return make


@pytest.fixture
def profile():
    """Make a profile that takes the image of its own name."""

    def make(name, *groups, source="shipped", is_file=False, **changes):
        given = {"fingerprint": Fingerprint(images=(f"{name}:*",)), **changes}
        document = WorkloadProfile(id=name, thread_groups=groups, **given)
        return LoadedProfile(document, source, is_file)

    return make


@pytest.fixture
def mysql(profile, group):
    return profile(
        "mysql",
        group("connections", "connection", treatment="exclusive", cpu_fraction=0.85),
        group("innodb", "ib_", treatment="boost"),
        group("rest", treatment="yield"),
    )


@pytest.fixture
def with_image():
    """Give a pod another image, in a container that the runtime knows by *runtime_id*."""

    def change(pod, *images, runtime_ids=()):
        ids = runtime_ids or [""] * len(images)
        containers = tuple(
            Container(f"c{n}", image, runtime_id=runtime_id)
            for n, (image, runtime_id) in enumerate(zip(images, ids, strict=True))
        )
        return attrs.evolve(pod, containers=containers)

    return change


@pytest.fixture
def layer_at():
    """Say in which layer a thread at a cgroup is."""

    def find(plan, cgroup, comm="main", process="main", uid=1000, *, is_kthread=False):
        thread = ThreadIdentity(cgroup, comm, process, uid, is_kthread=is_kthread)
        return membership.layer_of(plan, thread).name

    return find


@pytest.fixture
def plan():
    """Decide for some pods, on 8 cores of 2 CPUs unless another machine is given.

    What is known of the plan's shape is left out: it changes with every judging.
    """

    def make(*pods, cores=8, threads_per_core=2, profiles=(), settings=None, **given):
        shape = given.pop("machine", None) or make_machine(cores, threads_per_core)
        catalogue = ProfileCatalogue(tuple(profiles))
        made = decide(pods, catalogue, shape, settings or Settings(), **given)
        notes = tuple(note for note in made.notes if note.code != "unproven_shape")
        return attrs.evolve(made, notes=notes)

    return make


@pytest.fixture
def steered(plan):
    """Decide a steered plan for some pods; *hints* and *in_force* are as in Steering."""

    def make(*pods, hints=FIXED_HINTS, in_force=(), hold=False, **given):
        return plan(*pods, steering=Steering(hints, in_force, hold), **given)

    return make


@pytest.fixture
def codes():
    """Return the codes of a plan's notes by subject."""

    def of(plan):
        return {(note.code, note.subject) for note in plan.notes}

    return of


@pytest.fixture(scope="session")
def engine() -> EngineBinary:
    cache = Path(os.environ.get("TEMPER_CACHE", "~/.cache/temper")).expanduser()
    cached = sorted(map(str, cache.glob("engine/*/bin/scx_layered")))
    given = [os.environ.get("TEMPER_ENGINE"), shutil.which("scx_layered"), *cached]
    found = [path for path in given if path]
    if not found:
        pytest.skip("no scx_layered: not in TEMPER_ENGINE, not on PATH, not in TEMPER_CACHE")
    return find_engine(found[0])


@pytest.fixture(scope="session")
def offline_engine(engine: EngineBinary) -> EngineBinary:
    if Path("/sys/kernel/sched_ext").exists():
        pytest.skip("this kernel has sched_ext: the engine would attach instead of ending")
    return engine
