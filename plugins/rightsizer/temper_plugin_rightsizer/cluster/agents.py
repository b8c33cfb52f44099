"""The answers of a cluster's agents, through the API server."""

import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlencode

from temper_core import MachineError, parse_tenant_json
from temper_core.observed import count, rows
from temper_kube.access import Access
from temper_kube.agents import Agent, Away
from temper_kube.list_pages import Json
from temper_kube.proxied import get_proxied
from temper_plugin_rightsizer.cluster.demands import LONGEST_S

AT_ONCE = 16
ANSWER_S = 30.0
ALL_S = 300.0
"""The deadline for all agents."""
LARGEST_BYTES = 8 << 20
"""The largest answer. An agent's own bound is ``MOST_DEMAND_BYTES`` and a few fields."""


def ask_agents(
    access: Access, agents: Sequence[Agent], query: Mapping[str, str]
) -> Iterator[tuple[Agent, Json | Away]]:
    """Yield each agent with its answer to ``/rightsize``, or why there is none.

    A few answers are in memory at a time, one of them as objects, which take up to 30 times as
    much. An interruption cancels the remaining requests.
    """
    deadline = time.monotonic() + ALL_S
    pool = ThreadPoolExecutor(AT_ONCE)
    try:
        for begin in range(0, len(agents), AT_ONCE):
            some = agents[begin : begin + AT_ONCE]
            bodies = pool.map(lambda agent: _tried(access, agent, query, deadline), some)
            for agent, body in zip(some, bodies, strict=True):
                yield agent, body if isinstance(body, Away) else _read(agent, body)
    finally:
        pool.shutdown(cancel_futures=True)


def _tried(access: Access, agent: Agent, query: Mapping[str, str], deadline: float) -> bytes | Away:
    if time.monotonic() > deadline:
        return Away(agent.node, f"not reached within {ALL_S:g} s")
    path = f"{agent.proxy_path}/rightsize?{urlencode(query)}"
    try:
        return get_proxied(access, path, "its agent", most_bytes=LARGEST_BYTES, timeout_s=ANSWER_S)
    except MachineError as problem:
        return Away(agent.node, str(problem))


def _read(agent: Agent, body: bytes) -> Json | Away:
    try:
        return _answer(body)
    except MachineError as problem:
        return Away(agent.node, str(problem))


def _answer(body: bytes) -> Json:
    """Return the answer in *body*. Raises MachineError if it is none."""
    try:
        answer = parse_tenant_json(body)
    except (ValueError, RecursionError) as error:
        raise MachineError("its agent's answer is not JSON") from error
    if not isinstance(answer, dict):
        raise MachineError("its agent's answer is not an object")
    containers = rows(answer, "containers")
    if "containers" not in answer or not all("demand" in row for row in containers):
        raise MachineError("the agent's answer has no demand: is its version another?")
    window_s = count(answer, "window_s")
    if window_s is None or window_s > LONGEST_S:
        raise MachineError("its agent's answer cannot be read: its window_s is not up to 14 days")
    return answer
