"""The agent and other tools that watch threads and processes: how each is started.

All are configured to be comparable: they sample every five seconds, or on request.
netdata samples every second by default, so it is measured twice.
"""

import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from attrs import field, frozen

FETCH = Path(__file__).with_name("fetch-rivals")
PERIOD_S = 5
AGENT_PORT, EXPORTER_PORT, NETDATA_PORT = 19_131, 19_132, 19_133


@frozen
class Tool:
    """A program to measure, which may be scraped every 15 s.

    ``port`` (0 if it is not scraped) and ``path`` are its endpoint. ``detail`` describes its data
    and period.
    """

    name: str
    detail: str
    command: Callable[[Path], Sequence[str]]
    port: int = 0
    path: str = "/metrics"
    environment: Mapping[str, str] = field(factory=dict)


def agent() -> Tool:
    """Return the whole agent, with every plugin, in observe-only mode."""
    return Tool(
        "temper",
        "threads one by one, all in sums by pod; waits, switches, pressure; every 5 s; linted",
        _agent_command,
        AGENT_PORT,
    )


def rivals() -> list[Tool]:
    """Return the other tools, unpacked into the cache. If that fails, print why and return none."""
    fetched = subprocess.run([FETCH], stdout=subprocess.PIPE, text=True, check=False)
    if fetched.returncode:
        print("bench: nothing to compare with: the tools could not be fetched, see above")
        return []
    root = Path(fetched.stdout.strip())
    libraries = ":".join(sorted({str(path.parent) for path in root.rglob("*.so*")}))
    exporter = root / "usr/bin/prometheus-process-exporter"
    return [
        Tool(
            "prometheus-process-exporter",
            "groups of processes, and their threads by name; when scraped (15 s)",
            lambda directory: _exporter_command(exporter, directory),
            EXPORTER_PORT,
        ),
        *(_netdata(root, every_s, libraries) for every_s in (PERIOD_S, 1)),
        Tool(
            "pidstat -t 5",
            "threads that ran, one by one: CPU; every 5 s",
            lambda _: [str(root / "usr/bin/pidstat"), "-t", str(PERIOD_S)],
        ),
    ]


def _netdata(root: Path, every_s: int, libraries: str) -> Tool:
    port = NETDATA_PORT + every_s
    return Tool(
        f"netdata + apps.plugin, {every_s} s",
        f"groups of processes, pressure, cgroups; every {every_s} s"
        + (", its default" if every_s == 1 else ""),
        lambda directory: _netdata_command(root, directory, every_s, port),
        port,
        "/api/v1/allmetrics?format=prometheus",
        {"LD_LIBRARY_PATH": libraries},
    )


def _agent_command(directory: Path) -> Sequence[str]:
    settings = directory / "agent.toml"
    settings.write_text(
        f'run_directory = "{directory}/run"\nstate_directory = "{directory}"\n'
        f'[server]\nlisten = "127.0.0.1:{AGENT_PORT}"\n'
    )
    temper = str(Path(sys.executable).with_name("temper"))
    return [temper, "agent", "--observe-only", "--settings", str(settings)]


def _exporter_command(program: Path, directory: Path) -> Sequence[str]:
    settings = directory / "exporter.yml"
    settings.write_text("process_names:\n  - name: '{{.Comm}}'\n    cmdline: ['.+']\n")
    listen = f"-web.listen-address=127.0.0.1:{EXPORTER_PORT}"
    return [str(program), f"-config.path={settings}", "-threads=true", listen]


def _netdata_command(root: Path, directory: Path, every_s: int, port: int) -> Sequence[str]:
    settings = directory / "netdata.conf"
    places = {name: directory / f"netdata-{name}" for name in ("cache", "lib", "log", "config")}
    for place in places.values():
        place.mkdir()
    off = ("diskspace", "idlejitter", "perf", "slabinfo", "statsd", "tc", "timex", "nfacct")
    settings.write_text(
        f"[db]\nmode = ram\nupdate every = {every_s}\n"
        f"[web]\nbind to = 127.0.0.1:{port}\n"
        f"[directories]\nplugins = {root}/usr/lib/netdata/plugins.d\n"
        f"web = {root}/usr/share/netdata/web\nstock config = {root}/usr/lib/netdata/conf.d\n"
        + "".join(f"{name} = {place}\n" for name, place in places.items())
        + "[plugins]\n"
        + "".join(f"{name} = no\n" for name in off)
        + "[ml]\nenabled = no\n[registry]\nenabled = no\n"
    )
    return [str(root / "usr/sbin/netdata"), "-D", "-u", "root", "-c", str(settings)]
