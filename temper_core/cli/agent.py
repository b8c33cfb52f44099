"""``temper agent``: run the node agent in the foreground."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from temper_core.cli.plugins_directory import PLUGINS_DIRECTORY, with_plugins_directory
from temper_core.errors import EXIT_CLEAN, EXIT_MACHINE

if TYPE_CHECKING:
    from temper_core.settings import Settings
    from temper_core.settings.models import ServerSettings


LEAST_DESCRIPTORS = 64
"""File descriptors. An agent without connections and pods has up to 40 open."""


@click.command("agent")
@click.option("--settings", "path", type=click.Path(path_type=Path), help="Settings file (TOML).")
@click.option("--pods", type=click.Path(path_type=Path), help="Take the pods from this PodList.")
@click.option("--listen", help="Address and port, in place of [server] listen.")
@click.option("--observe-only", is_flag=True, help="Never start the engine.")
@click.option("--strict-plugins", is_flag=True, help="Exit if a plugin fails to load.")
@PLUGINS_DIRECTORY
@click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    default="info",
    show_default=True,
)
def command(  # noqa: PLR0913, PLR0917 - one for each option
    path: Path | None,
    pods: Path | None,
    listen: str | None,
    observe_only: bool,
    strict_plugins: bool,
    plugins_directory: Path | None,
    log_level: str,
) -> None:
    """Run the node agent until SIGTERM, SIGHUP or Ctrl-C.

    It watches the pods of this node, compiles them into layers, runs the engine where the kernel
    can (see temper doctor), and observes everywhere. After it has stopped, the stock scheduler
    runs. Only requests for safe mode, events and the state of plugins stay on disk.
    """
    from temper_core.agent.generated_sources import forget_generated_sources
    from temper_core.agent.malloc_arena import keep_one_malloc_arena

    forget_generated_sources()
    keep_one_malloc_arena()

    from temper_core import logs
    from temper_core.settings import load

    logs.configure_logs(log_level)
    _require_descriptors()
    effective = load(path)
    settings = _with_options(effective.settings, pods, listen, observe_only, strict_plugins)
    settings = with_plugins_directory(settings, plugins_directory)
    _warn_of_writers(effective.source, settings)
    with _bounded_end():
        _run(settings, effective.source)


@contextmanager
def _bounded_end() -> Iterator[None]:
    """Bound the end of the process, since plugins may have left threads behind."""
    from temper_core.agent.ending import end_process_within

    code = EXIT_MACHINE
    try:
        yield
        code = EXIT_CLEAN
    finally:
        end_process_within(code=code)


def _run(settings: "Settings", source: str) -> None:
    """Run the agent until a signal."""
    import signal

    from temper_core.agent.assembly import assemble
    from temper_core.agent.waker import LoopWaker

    # With an inherited SIG_IGN the kernel would not report how an engine ended.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    wake = LoopWaker()
    agent = assemble(settings, wake, source=source)
    endings = [signal.SIGTERM, signal.SIGINT]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # nohup ignores it
        endings.append(signal.SIGHUP)
    with wake.signals(dict.fromkeys(endings, agent.stop)):
        agent.run()


def _require_descriptors() -> None:
    """Raise MachineError if RLIMIT_NOFILE is below ``LEAST_DESCRIPTORS``."""
    import resource

    from temper_core.errors import MachineError

    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < LEAST_DESCRIPTORS:
        raise MachineError(
            f"only {soft} files may be open at a time, and the agent needs {LEAST_DESCRIPTORS}: "
            "raise RLIMIT_NOFILE (ulimit -n, or LimitNOFILE= of its unit)"
        )


def _warn_of_writers(source: str, settings: "Settings") -> None:
    """Log which other users may change the files that this agent trusts."""
    import structlog

    from temper_core.foreign_writers import foreign_writer

    log = structlog.get_logger(__name__)
    trusted = (source, settings.server.token_file, settings.profiles.directory)
    states = (settings.safe_mode.file, settings.safe_mode.state)
    for path in (*trusted, *states, *(str(Path(state).parent) for state in states)):
        if Path(path).is_absolute() and (who := foreign_writer(Path(path))):
            log.warning("file_writable_by_others", path=path, writer=who)


def _listening(server: "ServerSettings", listen: str) -> "ServerSettings":
    from attrs import evolve

    from temper_core.errors import InputError

    try:
        return evolve(server, listen=listen)
    except (InputError, ValueError) as error:
        raise InputError(f"--listen: {error}") from error


def _with_options(
    settings: "Settings",
    podlist: Path | None,
    listen: str | None,
    observe_only: bool,
    strict_plugins: bool,
) -> "Settings":
    """Override the settings of the file by the options of the command line."""
    from attrs import evolve

    pods, server = settings.pods, settings.server
    if podlist is not None:
        pods = evolve(pods, source="file", file=str(podlist))
    if listen is not None:
        server = _listening(server, listen)
    return evolve(
        settings,
        pods=pods,
        server=server,
        scheduler=evolve(
            settings.scheduler, enforce=settings.scheduler.enforce and not observe_only
        ),
        plugin_host=evolve(
            settings.plugin_host, strict=settings.plugin_host.strict or strict_plugins
        ),
    )
