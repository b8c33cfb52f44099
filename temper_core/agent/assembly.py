"""Put an agent together from settings: every part, and what each needs of the others."""

import os
from contextlib import nullcontext, suppress
from pathlib import Path

from temper_core.agent.loop import Agent, Parts
from temper_core.agent.published import Published
from temper_core.agent.steering_control import Helm
from temper_core.agent.waker import Wake
from temper_core.decide.decider import Decider
from temper_core.errors import MachineError
from temper_core.instruments.charges import InstrumentCharges
from temper_core.instruments.context import AgentParts
from temper_core.instruments.helper_processes import HelperProcesses
from temper_core.instruments.instruments import Instruments
from temper_core.instruments.lookup import PlanLookup
from temper_core.instruments.pending import Pending
from temper_core.instruments.safe_mode_door import InstrumentRequests
from temper_core.instruments.upkeep import InstrumentUpkeep, StateDirectories
from temper_core.lint.windows import Linter
from temper_core.node import builtin_plugin
from temper_core.node.cgroups import CgroupTree, detect_cgroups
from temper_core.node.pod_watch import open_pod_source
from temper_core.node.topology import read_machine
from temper_core.observe.cgroup_roots import CgroupRoots
from temper_core.observe.observer import Observer
from temper_core.observe.wakes.watch import WakeWatch
from temper_core.plugin_host import PluginHost, load_host
from temper_core.profiles.completion import installed_engine, newest_engine
from temper_core.profiles.trials import TrialBook
from temper_core.profiles.watch import ProfileWatch
from temper_core.records.contributions import PodSourceContext
from temper_core.records.instruments import MIB, Instrument
from temper_core.records.invariants import Invariant
from temper_core.restoring.restoration import Restoration
from temper_core.safe_mode.requests import SafeModeRequests
from temper_core.scheduler.host.agent_lock import agent_lock
from temper_core.scheduler.host.kernel import SchedExt
from temper_core.scheduler.host.roots import Roots
from temper_core.scheduler.lifecycle import Scheduler
from temper_core.server.agent_server import AgentServer
from temper_core.settings.models import Settings
from temper_core.steering.opening import open_steerer
from temper_core.steering.pin import PinPlace
from temper_core.steering.steerer import Steerer


def assemble(settings: Settings, wake: Wake) -> Agent:
    """Return an agent for this node that sleeps in *wake*; nothing has been started or written.

    Raises InputError or MachineError for what the settings ask and the node does not have.
    """
    machine = read_machine()
    node = settings.node_name
    host = load_host(settings, extra={builtin_plugin.NAME: builtin_plugin})
    engine = installed_engine(settings.scheduler.engine)
    profiles = ProfileWatch(settings, host, engine if settings.scheduler.enforce else newest_engine)
    context = PodSourceContext(settings.pods, settings.workloads, machine, node=node)
    pods = open_pod_source(host, settings.pods.source, context)
    requests = SafeModeRequests(
        Path(settings.safe_mode.file), Path(settings.safe_mode.state), changed=wake.set
    )
    limits = settings.scheduler
    helm = Helm(lambda: open_steering(settings), Path(limits.steering_pin))
    scheduler = Scheduler(settings, requests, hint_map=helm)
    restoration = Restoration(settings, requests, helm)
    published = Published(settings, host, scheduler, requests, pods, profiles)
    mounts = detect_cgroups()
    roots = CgroupRoots.of(mounts.unified, mounts.v1)
    observer = Observer(machine, settings, node=node, cgroup_roots=roots, alarm=wake.set)
    wakes = WakeWatch(settings.observe, charge=observer.cost.part)
    published.show_wakes(wakes)
    charges, recorder = InstrumentCharges(observer.cost.part), Pending()
    helpers = HelperProcesses(
        most=settings.plugin_host.helpers,
        memory_bytes=settings.plugin_host.helper_memory_mib * MIB,
        charge=charges,
    )
    states = StateDirectories(
        Path(settings.safe_mode.state).parent,
        writing=restoration.writing,
        record=recorder.record,
        charge=charges,
    )
    trials = TrialBook(
        lambda: frozenset(pod.key for pod in pods.pods),
        machine,
        engine if limits.enforce else newest_engine,
        wake.set,
    )
    published.show_trials(trials)
    instruments = Instruments(
        host,
        host.gather("temper_instruments", Instrument),
        AgentParts(
            node=node,
            machine=machine,
            lookup=PlanLookup(published.plan),
            safe_mode=InstrumentRequests(requests, restoration),
            helpers=helpers,
            trials=trials,
            recorder=recorder,
            state=states.of,
            charge=charges,
            upkeep=InstrumentUpkeep(states, helpers),
        ),
    )
    published.show_instruments(instruments)
    parts = Parts(
        settings=settings,
        host=host,
        pods=pods,
        profiles=profiles,
        decider=Decider(settings, machine, host, profiles.catalogue),
        helm=helm,
        scheduler=scheduler,
        observer=observer,
        linter=_linter(settings, host),
        published=published,
        server=AgentServer(published, settings.server, series_limit=settings.observe.series_limit),
        requests=requests,
        lock=agent_lock if limits.enforce else nullcontext,
        wakes=wakes,
        instruments=instruments,
        restoration=restoration,
        trials=trials,
    )
    return Agent(parts, wake)


def open_steering(settings: Settings, roots: Roots | None = None) -> Steerer:
    """Open steering where there can be an engine; raise MachineError where there is none to be.

    Then what an agent that was killed left pinned is taken away as well.
    """
    roots = roots or Roots()
    pin = PinPlace(Path(settings.scheduler.steering_pin))
    if not settings.scheduler.enforce:
        if os.path.lexists(pin.path):
            _sweep_alone(pin, roots)
        raise MachineError("no engine is to run: [scheduler] enforce is false")
    if not SchedExt(roots.sched_ext).is_supported:
        pin.sweep()
        raise MachineError("no engine can run: this kernel has no sched_ext")
    unified = detect_cgroups().unified
    return open_steerer(settings.scheduler, CgroupTree(unified) if unified is not None else None)


def _sweep_alone(pin: PinPlace, roots: Roots) -> None:
    """Sweep unless another agent runs, beside which this one may observe: the pin is its own."""
    with suppress(MachineError), agent_lock(roots.run) as is_held:
        if is_held:
            pin.sweep()


def _linter(settings: Settings, host: PluginHost) -> Linter:
    contributions = host.gather("temper_invariants", Invariant)
    return Linter([(c.plugin, c.record) for c in contributions], settings.lint, host.call)
