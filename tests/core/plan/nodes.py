"""Nodes of every kind, for tests of what holds for all of them."""

import random

from hypothesis import strategies as st

from temper_core.plan import ProfileCatalogue
from temper_core.records.machine import Cpu, MachineShape
from temper_core.records.pods import Container, Pod, QosClass
from temper_core.records.profiles import Fingerprint, LoadedProfile, WorkloadProfile
from temper_core.records.thread_groups import Behaviour, ThreadGroup, ThreadMatch, Treatment
from temper_core.records.threads import ThreadIdentity
from temper_core.records.tiers import LayerKind, Tier
from temper_core.settings import Settings
from temper_core.settings.models import PodSettings
from temper_core.settings.tiers import PlanSettings, Tiers, TierSettings

NAMES = ["io", "io_a", "gc", "main", "w"]
PRIORITIES = [None, 0, -1000, -100, -1, 5, 99_999, 100_000, 1_000_000, 2_000_000_000]

matches = st.builds(
    ThreadMatch,
    comm_prefix=st.sampled_from(NAMES),
    process=st.none() | st.sampled_from(NAMES),
    leader=st.none() | st.booleans(),
)


by_sight = st.builds(
    ThreadMatch,
    comm_prefix=st.none() | st.sampled_from(NAMES),
    comm_pattern=st.sampled_from(["^io_a", "[0-9]$"]),
    title_pattern=st.none() | st.just("serve"),
    behaviour=st.none() | st.just(Behaviour(cpu_share=(0.5, 1.0))),
    exe=st.none() | st.just("main"),
    is_child=st.none() | st.booleans(),
    older_than_s=st.none() | st.just(60.0),
)


@st.composite
def profiles(draw, name, match):
    groups = [
        ThreadGroup(
            f"g{n}",
            tuple(draw(st.lists(match, min_size=1, max_size=3))),
            *treatment(draw),
        )
        for n in range(draw(st.integers(0, 3)))
    ]
    rest = [ThreadGroup("rest", (), *treatment(draw))]
    with_rest = rest if not groups or draw(st.booleans()) else []
    fingerprint = Fingerprint(images=(f"{name}:*",))
    document = WorkloadProfile(
        id=name, thread_groups=(*groups, *with_rest), fingerprint=fingerprint
    )
    return LoadedProfile(document, "made-up")


def treatment(draw):
    chosen = draw(st.sampled_from(Treatment))
    fraction = draw(st.sampled_from([None, 0.1, 0.5, 0.85, 1.0]))
    return chosen, fraction if chosen is Treatment.EXCLUSIVE else None


@st.composite
def nodes(draw, match=matches, counts=(0, 1, 2, 5, 20, 60, 500)):
    """Pods, a catalogue, a machine and settings."""
    chance = random.Random(draw(st.integers(0, 2**32)))
    count = draw(st.sampled_from(counts))
    catalogue = tuple(draw(profiles(f"app{n}", match)) for n in range(draw(st.integers(0, 3))))
    pods = [a_pod(chance, n) for n in range(count)]
    return pods, ProfileCatalogue(catalogue), draw(machines()), draw(settings())


def a_pod(chance, number):
    request = chance.choice([0, 0, 1, 100, 250, 1500, 4000, 64_000])
    uid = f"{chance.getrandbits(32):08x}-{number:04x}"
    path = f"kubepods.slice/kubepods-pod{uid.replace('-', '_')}.slice/"
    ids = (f"{chance.getrandbits(64):016x}", f"{chance.getrandbits(64):016x}")
    images = [f"app{chance.randrange(4)}:1", "sidecar:1"][: chance.randint(1, 2)]
    return Pod(
        uid=uid,
        namespace=f"ns{chance.randrange(3)}",
        name=f"pod-{number}",
        priority=chance.choice(PRIORITIES),
        qos_class=chance.choice(list(QosClass)),
        containers=tuple(
            Container(f"c{n}", image, runtime_id=chance.choice([ids[n], ids[n], ""]))
            for n, image in enumerate(images)
        ),
        cpu_request_millis=request,
        cpu_limit_millis=chance.choice([None, request, request * 2]),
        cgroups=chance.choice([(), (path,)]),
        tier=chance.choice([None, None, None, *Tier]),
    )


@st.composite
def machines(draw):
    uniform = st.builds(
        MachineShape.uniform,
        st.sampled_from([1, 2, 3, 4, 8, 15, 64, 256]),
        st.sampled_from([1, 2]),
    )
    hybrid = st.builds(a_hybrid, st.integers(1, 8), st.integers(1, 8), st.booleans())
    return draw(uniform | hybrid)


def a_hybrid(wide, narrow, wide_first):
    sizes = [2] * wide + [1] * narrow
    cores = [
        core for core, size in enumerate(sizes if wide_first else sizes[::-1]) for _ in range(size)
    ]
    return MachineShape("x86_64", tuple(Cpu(id=n, core=core) for n, core in enumerate(cores)))


@st.composite
def settings(draw):
    tier = st.builds(
        TierSettings,
        kind=st.sampled_from(LayerKind),
        protected=st.booleans(),
        preempt=st.booleans(),
    )
    tiers = draw(st.just(Tiers()) | st.builds(Tiers, tier, tier, tier, tier, tier))
    return Settings(
        tiers=tiers,
        plan=PlanSettings(reserve_cores=draw(st.integers(1, 3))),
        pods=PodSettings(cgroup_driver=draw(st.sampled_from(["auto", "systemd"]))),
    )


def a_thread(pod, comm="zz", process="io"):
    path = f"kubepods.slice/kubepods-pod{pod.uid.replace('-', '_')}.slice/cri-1.scope/"
    return ThreadIdentity(path, comm, process, uid=1000)
