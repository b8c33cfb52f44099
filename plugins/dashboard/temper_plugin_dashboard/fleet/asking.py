"""The ways to an agent: through the API server, or at the address of its pod."""

from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from enum import StrEnum
from typing import Any

from attrs import frozen

from temper_core import InputError, MachineError, parse_tenant_json
from temper_core.observed import table, text
from temper_kube.access import Access, Credentials
from temper_kube.agents import Agent
from temper_kube.connection import EXCHANGE_S, Connection, Content
from temper_kube.failures import RefusalError, UnreachableError

ANSWER_S = 5.0
"""How long each byte of an answer is waited for."""
LARGEST_ACKNOWLEDGEMENT = 1024 * 1024
"""Bytes of the answer to a request that acts."""
LARGEST_BYTES = 16 * 1024 * 1024
"""The largest answer of an agent. One of 250 pods and 1,000 threads has less than 2 MiB."""


class Way(StrEnum):
    """How agents are asked.

    ``PROXY`` is the API server's proxy of pods, which needs the right ``get pods/proxy``. ``POD``
    is the pod's own address, which only pods of the cluster reach.
    """

    PROXY = "proxy"
    POD = "pod"


@frozen
class AgentRefusalError(MachineError):
    """An agent answers with an HTTP *status* of 300 or more."""

    status: int
    reason: str

    def __str__(self) -> str:
        """Return the reason."""
        return self.reason


class AgentDoor:
    """Asks agents, on any thread. Connections to the API server are kept for the next question."""

    def __init__(self, access: Access, way: Way = Way.PROXY, *, has_actions: bool = False) -> None:
        """*has_actions* allows requests that act. Raises InputError if *way* passes no token.

        The API server takes the header with an agent's token for its own client's.
        """
        if has_actions and way != Way.POD:
            raise InputError("--actions: needs --reach pod, as the proxy passes no agent's token")
        self.access = access
        self.has_actions = has_actions
        self._way = way
        self._idle: deque[Connection] = deque()
        self._is_closed = False

    def ask(
        self,
        agent: Agent,
        path: str,
        most_bytes: int = LARGEST_BYTES,
        limit_s: float = EXCHANGE_S,
    ) -> Content:
        """Return the agent's answer to GET *path*, which begins with a slash.

        Raises AgentRefusalError for a refusal, and MachineError if there is no answer, one of
        more than *most_bytes*, or one that is not complete after *limit_s* seconds.
        """
        try:
            if self._way == Way.POD:
                return _ask_pod(agent, path, most_bytes, limit_s)
            return self._ask_by_proxy(agent.proxy_path + path, most_bytes, limit_s)
        except RefusalError as error:
            raise AgentRefusalError(error.status, _reason(error.message)) from error

    def act(
        self, agent: Agent, method: str, path: str, body: Mapping[str, Any] | None, token: str
    ) -> Content:
        """Return the agent's answer to a request that acts, with *body* and one of its tokens.

        It is sent once. Raises the errors of ``ask``. Only for a door with ``has_actions``.
        """
        with _to_pod(agent, Credentials(token=token)) as connection:
            sent = None if body is None else dict(body)
            try:
                return connection.content(
                    path, "", LARGEST_ACKNOWLEDGEMENT, ANSWER_S, method=method, body=sent
                )
            except RefusalError as error:
                raise AgentRefusalError(error.status, _reason(error.message)) from error

    def close(self) -> None:
        """Close the connections. Those in use are closed after their answer."""
        self._is_closed = True
        while self._idle:
            self._idle.pop().close()

    def _ask_by_proxy(self, path: str, most_bytes: int, limit_s: float) -> Content:
        with self._connection() as (connection, is_warm):
            try:
                return connection.content(path, most_bytes=most_bytes, limit_s=limit_s)
            except UnreachableError as error:
                if not is_warm or isinstance(error.__cause__, TimeoutError):
                    raise
                # The server has closed the idle connection.
                return connection.content(path, most_bytes=most_bytes, limit_s=limit_s)

    @contextmanager
    def _connection(self) -> Iterator[tuple[Connection, bool]]:
        """Lend a connection, and whether it has been used before."""
        try:
            connection, is_warm = self._idle.pop(), True
        except IndexError:
            connection, is_warm = Connection(self.access, ANSWER_S), False
        try:
            yield connection, is_warm
        except MachineError:
            connection.close()  # the answer may not have been read to its end
            raise
        if self._is_closed:
            connection.close()
        else:
            self._idle.append(connection)


def _ask_pod(agent: Agent, path: str, most_bytes: int, limit_s: float) -> Content:
    with _to_pod(agent, Credentials()) as connection:
        return connection.content(path, most_bytes=most_bytes, limit_s=limit_s)


def _to_pod(agent: Agent, credentials: Credentials) -> Connection:
    if not agent.address:
        raise MachineError(f"the pod {agent.pod} has no address")
    access = Access(agent.address, agent.port, is_tls=False, credentials=credentials)
    return Connection(access, ANSWER_S)


def _reason(message: str) -> str:
    """Return the text of an agent's error, which is JSON with the key ``error``."""
    try:
        document = parse_tenant_json(message)
    except ValueError:
        return message
    return text(table({"it": document}, "it"), "error") or message
