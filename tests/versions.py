"""What a second version of Python runs: tests whose outcome may differ by it.

It differs where Python itself is used: processes and signals, sockets and TLS, threads, ctypes, C
extensions, the standard library's parsers, annotations read at run time. What computes with
records that other tests read and write is covered by one version.
"""

from pathlib import Path

TESTS = Path(__file__).parent
DEPENDENT = {
    "core/agent": "processes, signals and threads of the agent",
    "core/bpf": "ctypes and system calls",
    "core/cli": "every command from its start to its exit code, terminals and sockets",
    "core/events": "files, threads and streams",
    "core/file_watch": "inotify by ctypes",
    "core/http": "asyncio, sockets and TLS",
    "core/instruments": "processes with limits",
    "core/node": "files of /proc and of cgroups, and their watches",
    "core/observe": "ctypes, descriptors and memory",
    "core/plugin_host": "imports, and threads that are left behind",
    "core/safe_mode": "files and watches",
    "core/scheduler": "processes, signals and parent death",
    "core/server": "asyncio, sockets and threads",
    "core/settings": "annotations read at run time",
    "core/steering": "ctypes and system calls",
    "core/test_documents.py": "parsers, and annotations read at run time",
    "core/test_json_items.py": "parsers",
    "core/test_launch.py": "processes",
    "core/test_standard_output.py": "descriptors and signals",
    "installed/test_declared_imports.py": "what is imported",
    "installed/test_shell_pages.py": "argument parsers and shells",
    "kube_client": "TLS, processes and threads",
    "trainer/test_thread_commands.py": "processes and signals",
    "trainer/test_thread_sampling.py": "files of /proc",
    "trainer/training/test_bundles.py": "parsers",
    "trainer/training/test_observing.py": "processes and signals",
}
"""Folders and files that a second version runs, and what of Python they depend on."""


def pytest_addoption(parser):
    parser.addoption(
        "--second-python",
        action="store_true",
        help="run only the tests whose outcome may depend on the version of Python",
    )


def pytest_collection_modifyitems(config, items):
    if not config.getoption("--second-python"):
        return
    places = {TESTS / place for place in DEPENDENT}
    kept = [item for item in items if not places.isdisjoint((item.path, *item.path.parents))]
    config.hook.pytest_deselected(items=[item for item in items if item not in set(kept)])
    items[:] = kept
