"""The parts of an agent, which the loop drives."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

from attrs import field, frozen

from temper_core.agent.own_cpus import OwnCpus
from temper_core.agent.published import Published
from temper_core.agent.steering_control import SteeringControl
from temper_core.agent.systemd_notifier import SystemdNotifier
from temper_core.agent.watchdog import Watchdog
from temper_core.decide.decider import Decider
from temper_core.events.event_watch import EventWatch
from temper_core.instruments.instruments import Instruments
from temper_core.lint.windows import Linter
from temper_core.node.pod_watch import PodWatch
from temper_core.observe.observer import Observer
from temper_core.plugin_host import PluginHost
from temper_core.profiles.trials import TrialBook
from temper_core.profiles.watch import ProfileWatch
from temper_core.restoring.restoration import Restoration
from temper_core.safe_mode.requests import SafeModeRequests
from temper_core.scheduler.lifecycle import Scheduler
from temper_core.server.agent_server import AgentServer
from temper_core.settings.models import Settings


@frozen
class Parts:
    """The parts that the loop drives. A test of the loop leaves the optional ones out."""

    settings: Settings
    host: PluginHost
    pods: PodWatch
    profiles: ProfileWatch
    decider: Decider
    steering: SteeringControl
    scheduler: Scheduler
    observer: Observer
    linter: Linter
    published: Published
    server: AgentServer
    requests: SafeModeRequests
    lock: Callable[[], AbstractContextManager[object]] = nullcontext
    instruments: Instruments = field(factory=Instruments)
    restoration: Restoration | None = None
    trials: TrialBook = field(factory=TrialBook)
    events: EventWatch | None = None
    watchdog: Watchdog | None = None
    manager: SystemdNotifier = field(factory=SystemdNotifier)
    own_cpus: OwnCpus = field(factory=OwnCpus)
