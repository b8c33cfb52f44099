"""What an agent holds for its life, so that no other one works on the same node or state."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from temper_core.events.event_file import HeldError
from temper_core.events.event_keeper import EventKeeper
from temper_core.safe_mode.requests import SafeModeRequests
from temper_core.scheduler.host.agent_lock import AnotherAgentError, lock_for_life
from temper_core.scheduler.host.roots import Roots
from temper_core.settings.models import OF_ITS_OWN, Settings


@contextmanager
def locks_for_life(
    settings: Settings, roots: Roots, keeper: EventKeeper, requests: SafeModeRequests
) -> Iterator[None]:
    """Hold the node's lock if this agent may enforce, and the lock of its state.

    Raises AnotherAgentError if another agent has either. The lock of the state is that of the event
    file, which *keeper* holds until it is closed. Two agents with one state would overwrite each
    other's requests for safe mode.
    """
    with lock_for_life(settings, roots):
        _hold_state(keeper, roots)
        requests.read_again()
        yield


def _hold_state(keeper: EventKeeper, roots: Roots) -> None:
    try:
        keeper.hold()
    except HeldError as error:
        path = keeper.path or Path()
        raise AnotherAgentError(
            f"another agent has its state in {path.parent} ({_holder(path, roots)}holds {path}); "
            f"stop it, or start this one with {OF_ITS_OWN}"
        ) from error


def _holder(path: Path, roots: Roots) -> str:
    from temper_core.scheduler.host.running_agents import holder_of  # noqa: PLC0415 - for this only

    pid = holder_of(path, roots.proc)
    return f"process {pid} " if pid else "it "
