"""Builds an agent and its parts from the settings."""

import os
from functools import partial
from pathlib import Path

from attrs import evolve

from temper_core.agent.locks_for_life import locks_for_life
from temper_core.agent.loop import Agent
from temper_core.agent.parts import Parts
from temper_core.agent.published import Published
from temper_core.agent.steering_control import SteeringControl
from temper_core.agent.waker import LoopWaker
from temper_core.agent.watchdog import Watchdog
from temper_core.decide.decider import Decider
from temper_core.errors import MachineError
from temper_core.events.event_keeper import EventKeeper, events_path
from temper_core.events.event_log import EventLog
from temper_core.events.event_watch import EventWatch
from temper_core.events.safe_mode_watch import SafeModeWatch
from temper_core.instruments.charges import InstrumentCharges
from temper_core.instruments.context import AgentParts
from temper_core.instruments.helper_processes import HelperProcesses
from temper_core.instruments.instruments import Instruments
from temper_core.instruments.lookup import PlanLookup
from temper_core.instruments.safe_mode_door import InstrumentRequests
from temper_core.instruments.upkeep import InstrumentUpkeep, StateDirectories
from temper_core.lint.windows import Linter
from temper_core.node import builtin_plugin
from temper_core.node.cgroups import CgroupTree, detect_cgroups
from temper_core.node.pod_watch import PodWatch, open_pod_source
from temper_core.node.topology import read_machine
from temper_core.observe.cgroup_roots import CgroupRoots
from temper_core.observe.observer import Observer
from temper_core.plugin_host import PluginHost, load_host
from temper_core.plugin_host.shared_time import SharedTime, time_of_a_look
from temper_core.profiles.completion import FindEngine, installed_engine, newest_engine
from temper_core.profiles.trials import TrialBook
from temper_core.profiles.watch import ProfileWatch
from temper_core.records.contributions import PodSourceContext
from temper_core.records.instruments import MIB, Instrument
from temper_core.records.invariants import Invariant
from temper_core.records.machine import MachineShape
from temper_core.restoring.device_values import HostedPlugins
from temper_core.restoring.restoration import Restoration
from temper_core.safe_mode.requests import SafeModeRequests
from temper_core.scheduler.host.agent_lock import exclusive_access, is_beside_agent, may_enforce
from temper_core.scheduler.host.roots import Roots
from temper_core.scheduler.lifecycle import Scheduler
from temper_core.server.agent_server import AgentServer
from temper_core.settings.models import Settings
from temper_core.steering.nice_record import NiceRecord
from temper_core.steering.niceness import give_back_all
from temper_core.steering.opening import open_steerer
from temper_core.steering.pin import PinPlace
from temper_core.steering.steerer import Steerer


def assemble(
    settings: Settings, wake: LoopWaker, roots: Roots | None = None, *, source: str = ""
) -> Agent:
    """Return an agent for this node that sleeps in *wake*. It starts and writes nothing yet.

    Raises InputError or MachineError for a setting that this node cannot satisfy.
    """
    roots = roots or Roots.of(settings)
    machine = read_machine()
    own = {builtin_plugin.NAME: builtin_plugin}
    host = load_host(settings, extra=own, source=source)
    look_time = time_of_a_look(host, settings.plugin_host.deadline_s)
    find_engine = _find_engine(settings)
    profiles = ProfileWatch(settings, host, find_engine, wake.set)
    pods = _pod_watch(settings, machine, host)
    events = EventLog()
    keeper = EventKeeper(events, events_path(Path(settings.safe_mode.state)))
    requests = _safe_mode_requests(settings, wake, events, keeper)
    steering = SteeringControl(
        lambda: open_steering(settings, roots), Path(settings.scheduler.steering_pin)
    )
    scheduler = Scheduler(settings, requests, roots=roots, hint_map=steering)
    plugins = HostedPlugins(lambda: host)
    restoration = Restoration(settings, requests, steering, roots, plugins)
    published = Published(settings, host, scheduler, requests, pods, profiles)
    parts = Parts(
        settings=settings,
        host=host,
        pods=pods,
        profiles=profiles,
        decider=Decider(settings, machine, host, profiles.catalogue),
        steering=steering,
        scheduler=scheduler,
        observer=_observer(settings, machine, wake),
        linter=_linter(settings, host, look_time),
        published=published,
        server=_server(settings, published),
        requests=requests,
        lock=lambda: locks_for_life(settings, roots, keeper, requests),
        restoration=restoration,
        trials=_trials(machine, find_engine, pods, wake, events),
        events=EventWatch(events, keeper, scheduler, requests, profiles),
        watchdog=Watchdog(settings.scheduler.loop_deadline_s),
    )
    instruments = _instruments(parts, restoration, roots, machine, events, look_time)
    parts = evolve(parts, instruments=instruments)
    published.show_events(events)
    published.show_invariants(parts.linter.invariants)
    published.show_trials(parts.trials)
    published.show_instruments(parts.instruments)
    return Agent(parts, wake)


def _pod_watch(settings: Settings, machine: MachineShape, host: PluginHost) -> PodWatch:
    node = settings.node_name
    context = PodSourceContext(settings.pods, settings.workloads, machine, node=node)
    return open_pod_source(host, settings.pods.source, context)


def _observer(settings: Settings, machine: MachineShape, wake: LoopWaker) -> Observer:
    mounts = detect_cgroups()
    cgroups = CgroupRoots.of(mounts.unified, mounts.v1)
    node = settings.node_name
    return Observer(machine, settings, node=node, cgroup_roots=cgroups, alarm=wake.set)


def _server(settings: Settings, published: Published) -> AgentServer:
    limit, node = settings.observe.series_limit, settings.node_name
    return AgentServer(published, settings.server, series_limit=limit, node=node)


def _trials(
    machine: MachineShape,
    find_engine: FindEngine,
    pods: PodWatch,
    wake: LoopWaker,
    events: EventLog,
) -> TrialBook:
    return TrialBook(
        lambda: frozenset(pod.key for pod in pods.pods),
        machine,
        find_engine,
        wake.set,
        record=events.record,
    )


def _instruments(
    parts: Parts,
    restoration: Restoration,
    roots: Roots,
    machine: MachineShape,
    events: EventLog,
    look_time: SharedTime,
) -> Instruments:
    """Return the instruments of all plugins, with what *parts* offers them."""
    settings = parts.settings
    charges = InstrumentCharges(parts.observer.cost.part)
    helpers = _helpers(settings, charges)
    restoration.end_first(partial(helpers.end_all, "was stopped: the host is restored"))
    states = StateDirectories(
        Path(settings.safe_mode.state).parent,
        writing=restoration.writing,
        record=events.record,
        charge=charges,
    )
    return Instruments(
        parts.host,
        parts.host.gather("temper_instruments", Instrument),
        AgentParts(
            node=settings.node_name,
            machine=machine,
            lookup=PlanLookup(parts.published.plan),
            safe_mode=InstrumentRequests(parts.requests, restoration),
            helpers=helpers,
            trials=parts.trials,
            recorder=events,
            state=states.of,
            charge=charges,
            upkeep=InstrumentUpkeep(states, helpers),
            is_beside_agent=partial(is_beside_agent, settings, roots),
        ),
        look_time,
    )


def _find_engine(settings: Settings) -> FindEngine:
    """Return what finds the engine's capabilities. Without an engine they are the newest."""
    if settings.scheduler.enforce:
        return installed_engine(settings.scheduler.engine)
    return newest_engine


def _helpers(settings: Settings, charges: InstrumentCharges) -> HelperProcesses:
    bounds = settings.plugin_host
    memory_bytes = bounds.helper_memory_mib * MIB
    return HelperProcesses(most=bounds.helpers, memory_bytes=memory_bytes, charge=charges)


def open_steering(settings: Settings, roots: Roots | None = None) -> Steerer:
    """Open steering. Raise MachineError if no engine is to run, or the kernel has no sched_ext.

    In that case the pin of an agent that was killed is removed, and its nice values are undone.
    """
    roots = roots or Roots.of(settings)
    pin = PinPlace(Path(settings.scheduler.steering_pin))
    if not may_enforce(settings, roots):
        _sweep(pin, settings, roots)
        if not settings.scheduler.enforce:
            raise MachineError("no engine is to run: [scheduler] enforce is false")
        raise MachineError("no engine can run: this kernel has no sched_ext")
    unified = detect_cgroups().unified
    cgroups = CgroupTree(unified) if unified is not None else None
    return open_steerer(settings.scheduler, cgroups, roots.run)


def _sweep(pin: PinPlace, settings: Settings, roots: Roots) -> None:
    """Undo what an agent has left, unless another agent on this node may enforce and use it."""
    record = NiceRecord(roots.run)
    if not (os.path.lexists(pin.path.parent) or os.path.lexists(record.path)):
        return
    with exclusive_access(settings, roots) as is_alone:
        if is_alone:
            pin.sweep()
            give_back_all(record)


def _safe_mode_requests(
    settings: Settings, wake: LoopWaker, events: EventLog, keeper: EventKeeper
) -> SafeModeRequests:
    """Return the requests for safe mode. Each is recorded as events when it begins and ends."""
    watch = SafeModeWatch(events)

    def changed() -> None:
        wake.set()
        watch.look()

    requests = SafeModeRequests(
        Path(settings.safe_mode.file),
        Path(settings.safe_mode.state),
        changed=changed,
        kept=keeper.look,
    )
    watch.begin(requests.active)
    keeper.begin(lambda: requests.is_kept)
    return requests


def _linter(settings: Settings, host: PluginHost, look_time: SharedTime) -> Linter:
    contributions = host.gather("temper_invariants", Invariant)
    return Linter(
        [(contribution.plugin, contribution.record) for contribution in contributions],
        settings.lint,
        look_time.call,
    )
