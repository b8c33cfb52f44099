"""The cost of watching a node: the whole agent beside other tools, in one run.

    python bench/overhead.py [--threads N ...] [--seconds S] [--only NAME ...] [--json]

For each number of threads, twenty to a process, asleep for good and waking thrice in two seconds,
all tools run at the same time. Exporters are scraped every 15 s. Each tool is charged with the
CPU time of its own cgroup after it settled. A tool that ends is restarted. Run it as
root: the agent's best tier needs BPF, and the accounts are cgroups.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any

from accounts import Account, start
from observe_tick import threads_running
from rivals import AGENT_PORT, Tool, agent, rivals

SIZES = (100, 1_000, 5_000)
THREADS_PER_PROCESS = 20
BUSY_PAUSE_S = 2 / 3
SCRAPE_EVERY_S = 15.0
SETTLE_S = 20.0
ANSWER_S = 30.0
HERE = "127.0.0.1"

Connections = Sequence[tuple[Tool, HTTPConnection]]


def measure(tools: Sequence[Tool], threads: int, pause_s: float, seconds: float) -> Any:  # noqa: ANN401 - JSON
    """Run all *tools* beside that many threads. Return the use of each by name."""
    with ExitStack() as running:
        running.enter_context(threads_running(threads, pause_s, THREADS_PER_PROCESS))
        accounts = {tool.name: running.enter_context(_running(tool)) for tool in tools}
        connections = [(tool, HTTPConnection(HERE, tool.port)) for tool in tools if tool.port]
        for _, connection in connections:
            connection.timeout = ANSWER_S
            running.callback(connection.close)
        _wait_scraping(accounts, connections, SETTLE_S)
        before, began = (
            {name: account.cpu_s for name, account in accounts.items()},
            time.monotonic(),
        )
        tier = _wait_scraping(accounts, connections, seconds)
        window_s = time.monotonic() - began
        return {
            "threads": threads,
            "busy": pause_s > 0,
            "window_s": round(window_s, 1),
            "tier": tier,
            "tools": {
                name: {
                    "core_percent": round(100 * (account.cpu_s - before[name]) / window_s, 4),
                    "rss_mib": round(account.resident_mib, 1),
                    "restarts": account.restarts,
                }
                for name, account in accounts.items()
            },
        }


@contextmanager
def _running(tool: Tool) -> Iterator[Account]:
    with tempfile.TemporaryDirectory() as directory:
        name = "".join(filter(str.isalnum, tool.name))
        account = start(name, tool.command(Path(directory)), tool.environment)
        try:
            yield account
        finally:
            account.end()
        if tool.port == AGENT_PORT and account.restarts:
            raise SystemExit("bench: the agent ended by itself")


def _wait_scraping(
    accounts: Mapping[str, Account], connections: Connections, seconds: float
) -> str:
    """Scrape periodically for so long. Return the agent's tier of observation."""
    until, tier = time.monotonic() + seconds, ""
    while (left := until - time.monotonic()) > 0:
        time.sleep(min(SCRAPE_EVERY_S, left))
        for account in accounts.values():
            account.keep_running()
        for tool, connection in connections:
            tier = _tier_in(_scrape(tool, connection)) or tier
    return tier


def _scrape(tool: Tool, connection: HTTPConnection) -> str:
    """Scrape as Prometheus does: over one connection, until the tool closes it."""
    for _ in range(2):
        try:
            connection.request("GET", tool.path, headers={"Accept": "text/plain"})
            return connection.getresponse().read().decode()
        except (HTTPException, OSError):
            connection.close()
    print(f"bench: {tool.name} did not answer a scrape", file=sys.stderr)
    return ""


def _tier_in(metrics: str) -> str:
    start_of, end = 'temper_observe_tier{tier="', '"} 1.0'
    lines = (line for line in metrics.splitlines() if line.startswith(start_of))
    tiers = (line[len(start_of) : -len(end)] for line in lines if line.endswith(end))
    return next(tiers, "")


def table(results: Sequence[Any], tools: Sequence[Tool]) -> str:
    """Format the results as a Markdown table: per cent of a core, and multiples of the agent's."""
    heads = ["threads", "", *(tool.name for tool in tools)]
    lines = ["| " + " | ".join(heads) + " |", "| --: | --- |" + " --: |" * len(tools)]
    for result in results:
        ours = result["tools"][tools[0].name]["core_percent"]
        cells = [_cell(result["tools"][tool.name], ours) for tool in tools]
        kind = "busy" if result["busy"] else "idle"
        lines.append("| " + " | ".join([f"{result['threads']:,}", kind, *cells]) + " |")
    lines += ["", *(f"- {tool.name}: {tool.detail}" for tool in tools)]
    return "\n".join(lines)


def _cell(used: Any, ours: float) -> str:  # noqa: ANN401 - JSON
    cpu, memory = used["core_percent"], used["rss_mib"]
    times = "" if cpu == ours or not ours else f" ({cpu / ours:.0f} x)"
    died = f", ended by itself {used['restarts']} x" if used["restarts"] else ""
    return f"{cpu:.3f} %{times}, {memory:.0f} MiB{died}"


def main() -> None:
    """Measure every population and print a table, or JSON."""
    parser = argparse.ArgumentParser(description="What watching a node costs, beside other tools.")
    parser.add_argument("--threads", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--only", nargs="+", help="tools by the beginning of their names")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    tools = [agent(), *([] if options.only == ["temper"] else rivals())]
    if options.only:
        tools = [tool for tool in tools if tool.name.startswith(tuple(options.only))]
    results = []
    for threads in options.threads:
        for pause_s in (0.0, BUSY_PAUSE_S):
            results.append(measure(tools, threads, pause_s, options.seconds))
            if not options.json:
                print(table(results[-1:], tools).split("\n\n")[0].splitlines()[-1], flush=True)
    print(json.dumps(results, indent=1) if options.json else f"\n{table(results, tools)}")


if __name__ == "__main__":
    main()
