"""The identity of a thread, as matchers and profiles see it."""

from attrs import frozen


@frozen
class ThreadBehaviour:
    """The measured behaviour of a thread. ``None`` if it was not measured.

    ``cpu_share`` is in CPUs (1.0 is one CPU busy throughout), ``run_us`` in microseconds on a CPU
    per run. ``wakeups_per_s`` counts how often it began to run.
    """

    cpu_share: float | None = None
    run_us: float | None = None
    wakeups_per_s: float | None = None


@frozen
class ThreadIdentity:
    """The input of matchers. ``cgroup`` is the engine's form of the path: ``a/b/c/``.

    ``title`` is the process's command line, with blanks between the words. ``exe`` is the file name
    of its executable, ``parent`` the name of its parent process, and ``is_child`` whether the
    process was forked and has executed no program since. ``age_s`` are the seconds since the
    thread started. Only profiles use these and ``behaviour``. The engine has none of them. ``None``
    and empty are unknown.
    """

    cgroup: str
    comm: str
    process: str
    uid: int = 0
    is_kthread: bool = False
    is_leader: bool = False
    title: str = ""
    behaviour: ThreadBehaviour | None = None
    exe: str = ""
    parent: str = ""
    is_child: bool | None = None
    age_s: float | None = None
