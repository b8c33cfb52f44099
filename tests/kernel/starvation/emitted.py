"""Every shape of plan that the compiler emits with its default settings, and a plan of each.

The real compiler is driven over a systematic product of machines, tiers, sizes of requests and
thread groups; what comes out is what there is.
"""

from collections.abc import Iterator, Mapping
from itertools import product

from attrs import frozen

from temper_core.plan import ProfileCatalogue, decide
from temper_core.plan.shapes import Shape, shape_of
from temper_core.records.machine import MachineShape
from temper_core.records.plans import LayerPlan
from temper_core.records.pods import Container, Pod, QosClass
from temper_core.records.profiles import Fingerprint, LoadedProfile, WorkloadProfile
from temper_core.records.steering import Steering
from temper_core.records.thread_groups import ThreadGroup, ThreadMatch, Treatment
from temper_core.settings import Settings

PRIORITIES = {"critical": 1_000_000, "high": 100_000, "normal": 0}
REQUESTS = (100, 5_000)
GROUPS = ("", "e", "l", "el")
"""The thread groups of a tier's pods: e has exclusive CPUs, l is for latency."""


@frozen
class Tenant:
    """The pods of one tier: what they request, and the thread groups of their profile."""

    tier: str
    request: int
    groups: str


def emitted(machine: tuple[int, int], *, is_steered: bool) -> Mapping[Shape, LayerPlan]:
    """Return the shapes for a machine (cores, threads of each), each with its tightest plan."""
    found: dict[Shape, LayerPlan] = {}
    for tenants in _tenancies():
        plan = plan_for(machine, tenants, is_steered=is_steered)
        shape = shape_of(plan)
        if shape not in found or owned(plan) > owned(found[shape]):
            found[shape] = plan
    return found


def owned(plan: LayerPlan) -> int:
    """Count the CPUs that layers may own, all of them together."""
    return sum(layer.cpus_max or 0 for layer in plan.layers)


def plan_for(
    machine: tuple[int, int], tenants: tuple[Tenant, ...], *, is_steered: bool
) -> LayerPlan:
    """Let the compiler plan these pods, and one of best effort, for a machine."""
    pods = [_pod(tenant) for tenant in tenants]
    pods.append(Pod(uid="u-batch", namespace="n", name="batch", priority=-1000))
    catalogue = ProfileCatalogue(tuple(_profile(tenant) for tenant in tenants if tenant.groups))
    steering = Steering() if is_steered else None
    shape = MachineShape.uniform(*machine)
    return decide(pods, catalogue, shape, Settings(), steering=steering)


def _tenancies() -> Iterator[tuple[Tenant, ...]]:
    choices = [
        [None, *(Tenant(tier, *each) for each in product(REQUESTS, GROUPS))] for tier in PRIORITIES
    ]
    for chosen in product(*choices):
        yield tuple(tenant for tenant in chosen if tenant is not None)


def _pod(tenant: Tenant) -> Pod:
    uid = f"{tenant.tier}-0000"
    path = f"kubepods.slice/kubepods-pod{uid.replace('-', '_')}.slice/"
    return Pod(
        uid=uid,
        namespace="n",
        name=tenant.tier,
        priority=PRIORITIES[tenant.tier],
        qos_class=QosClass.BURSTABLE,
        cpu_request_millis=tenant.request,
        containers=(Container("main", image=f"{tenant.tier}:1"),),
        cgroups=(path,),
    )


def _profile(tenant: Tenant) -> LoadedProfile:
    treatments = {"e": (Treatment.EXCLUSIVE, 0.5), "l": (Treatment.LATENCY, None)}
    groups = tuple(
        ThreadGroup(f"g{n}", (ThreadMatch(comm_prefix=f"g{n}"),), *treatments[letter])
        for n, letter in enumerate(tenant.groups)
    )
    fingerprint = Fingerprint(images=(f"{tenant.tier}:*",))
    document = WorkloadProfile(id=tenant.tier, thread_groups=groups, fingerprint=fingerprint)
    return LoadedProfile(document, "made-up")
