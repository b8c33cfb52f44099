"""Executions of programs on the node, as the kernel reports them."""

from typing import NamedTuple

from attrs import frozen


class Execution(NamedTuple):
    """One execve(2) that succeeded: the process and its parent, by their ids on the host."""

    pid: int
    parent: int


@frozen
class ExecutionNews:
    """The executions since the last report.

    ``is_heard`` is false if others have happened, or may happen from now on, without a report.
    """

    executions: tuple[Execution, ...] = ()
    is_heard: bool = False
