"""The agent's door, as a climb uses it: trials, and what the node says of them."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol

from attrs import frozen

from temper_core import InputError, MachineError, ask_agent
from temper_core.observed import number, pod_key, rows, table, text

ENFORCING = "enforcing"
OBSERVING = "observe_only"
SAFE_MODE = "safe_mode"
WAITING = "waiting"
ENGINE_STARTED = "engine_reloaded"
ENGINE_EJECTED = "engine_ejected"
THREADS = 1
KEPT_OF_LONG_NAMES = 54
"""Characters that the agent keeps of the name of a layer that is too long."""


@frozen
class Look:
    """The node's account of itself. ``waits`` are the CPUs that other pods wait for."""

    at: str
    mode: str
    why: str
    engine: str
    violations: frozenset[str]
    waits: float


Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]


class Ask(Protocol):
    """A way to the agent. Raises as ``temper_core.ask_agent`` does."""

    def __call__(
        self,
        path: str,
        method: Method = "GET",
        body: object = None,
        query: Mapping[str, str] | None = None,
    ) -> Any:  # noqa: ANN401 - any JSON
        """Return the agent's answer to a request."""


def way_here(settings: Any) -> Ask:  # noqa: ANN401 - as of load_settings
    """Return the way to the agent at the addresses of *settings*."""

    def ask(
        path: str,
        method: Method = "GET",
        body: object = None,
        query: Mapping[str, str] | None = None,
    ) -> Any:  # noqa: ANN401 - any JSON
        return ask_agent(path, query, method=method, body=body, settings=settings)

    return ask


@frozen
class Door:
    """An agent, for trials of the pods. *ask* is the way to it."""

    ask: Ask
    pods: tuple[str, ...]

    def begin(self, profile: str, seconds: float) -> str:
        """Begin a trial of *profile* for some seconds, and return its number.

        Raises InputError if the agent refuses it.
        """
        body = {"profile": profile, "pods": list(self.pods), "seconds": seconds}
        return text(self._ask("/trials", "POST", body), "id")

    def release(self, trial: str) -> None:
        """End a trial. One that has ended is no error."""
        try:
            self._ask(f"/trials/{trial}", "DELETE")
        except InputError:
            if trial in {text(row, "id") for row in self.standing()}:
                raise

    def request_stock(self, requester: str) -> None:
        """Request safe mode under a name: the stock scheduler on the whole node."""
        body = {"requested": True, "requester": requester, "reason": "temper train run"}
        self._ask("/safe-mode", "PUT", body)

    def withdraw_stock(self, requester: str) -> None:
        """Withdraw the request of that name. Without one this is no error."""
        self._ask("/safe-mode", "PUT", {"requested": False, "requester": requester})

    def stock_obstacle(self) -> str:
        """Return why the node is not under the stock scheduler. Empty if it is."""
        state = self._ask("/safe-mode")
        mode = text(state, "mode")
        return "" if mode in (SAFE_MODE, OBSERVING) else f"{mode} {text(state, 'detail')}".strip()

    def standing(self) -> Sequence[Mapping[str, Any]]:
        """Return the trials in force that have one of the pods."""
        every = rows(self._ask("/trials"), "trials")
        return [row for row in every if {*self.pods} & {*map(str, row.get("pods") or ())}]

    def keep_result(self, result: Mapping[str, Any]) -> None:
        """Give *result* to the agent, which shows it. Raises InputError if the agent refuses it."""
        self._ask("/training", "PUT", dict(result))

    def report_run(self, run: str, report: Mapping[str, Any]) -> str:
        """Tell the agent how far a run is. Return why it has to end, empty if it may go on.

        Raises InputError if the agent takes no reports.
        """
        return text(self._ask(f"/training/runs/{run}", "PUT", dict(report)), "abort")

    def look(self) -> Look:
        """Return the last observation of the node."""
        document = self._ask("/observe", query={"top": str(THREADS)})
        others = [row for row in rows(document, "pods") if pod_key(row) not in self.pods]
        return Look(
            at=text(document, "at"),
            mode=text(document, "mode"),
            why=" ".join(part for key in ("reason", "detail") if (part := text(document, key))),
            engine=text(document, "engine"),
            violations=frozenset(map(_named, rows(document, "violations"))),
            waits=sum(number(row, "run_delay") or 0.0 for row in others),
        )

    def obstacle(self, trial: str, profile_id: str, sizes: Mapping[str, int]) -> str:
        """Return why *trial* is not in force as it would be alone. Empty if it is.

        *sizes* has the whole cores of its exclusive groups, as far as they are known.
        The agent keeps layers for minutes after a trial. While one is left without pods, the
        CPUs that it owns are missing elsewhere, and the node is not in the state of this trial.
        """
        for pod in self.pods:
            explained = self._ask("/explain", query={"pod": pod})
            if not text(explained, "profile_reason").startswith(f"trial {trial} of "):
                return f"the agent has not yet decided on {pod}"
        state = self._ask("/safe-mode")
        if text(state, "mode") == OBSERVING:
            return ""
        if text(state, "mode") != ENFORCING or text(state, "detail"):
            return f"{text(state, 'mode')} {text(state, 'detail') or text(state, 'reason')}"
        plan = self._ask("/plan")
        return _other_layers(plan, profile_id) or _other_size(plan, profile_id, sizes)

    def cpu_request_millis(self) -> int | None:
        """Return the CPU request of the pod, None if it has none or there are several pods."""
        if len(self.pods) != 1:
            return None
        explained = self._ask("/explain", query={"pod": self.pods[0]})
        request = text(table(explained, "inputs"), "cpu_request").removesuffix("m")
        return int(request) if request.isdecimal() and int(request) else None

    def last_event(self) -> int:
        """Return the number of the last event."""
        return int(number(self._ask("/events", query={"limit": "1"}), "last") or 0)

    def events_after(self, event: int, kind: str) -> Sequence[Mapping[str, Any]]:
        """Return the events of *kind* after the one of this number."""
        query = {"since": str(event), "kind": kind}
        return rows(self._ask("/events", query=query), "events")

    def _ask(
        self,
        path: str,
        method: Method = "GET",
        body: object = None,
        query: Mapping[str, str] | None = None,
    ) -> Mapping[str, Any]:
        answer = self.ask(path, method, body, query)
        if not isinstance(answer, Mapping):
            raise MachineError(f"the agent's answer to {path} is no JSON object")
        return answer


def _named(violation: Mapping[str, Any]) -> str:
    return f"{text(violation, 'invariant')} of {text(violation, 'subject')}"


def _other_layers(plan: Mapping[str, Any], profile_id: str) -> str:
    """Return what the plan lacks, or has left of another arm."""
    for note in rows(plan, "notes"):
        if text(note, "code") == WAITING and text(note, "subject").startswith(f"{profile_id}."):
            return text(note, "message")
    for layer in rows(plan, "layers"):
        is_ours = text(layer, "name").startswith(f"{profile_id}.")
        if is_ours and layer.get("cpus_max") and not layer.get("pods"):
            return f"the layer {text(layer, 'name')} of another arm still owns CPUs"
    return ""


def _other_size(plan: Mapping[str, Any], profile_id: str, sizes: Mapping[str, int]) -> str:
    """Return which exclusive group has no layer, or one of another size than it asks for."""
    of_a_core = int(number(table(plan, "machine"), "threads_per_core") or 1)
    for group, cores in sizes.items():
        start = f"{profile_id}.{group}."[:KEPT_OF_LONG_NAMES]
        own = [row for row in rows(plan, "layers") if text(row, "name").startswith(start)]
        owned = int(number(own[0], "cpus_max") or 0) if own else 0
        if owned != cores * of_a_core:
            return f"the group {group} has {owned} CPUs of its own, not {cores * of_a_core}"
    return ""
