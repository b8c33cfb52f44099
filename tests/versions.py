"""What a second version of Python runs: tests whose outcome may differ by it.

It differs where Python itself is used: processes and signals, sockets, C extensions, ctypes,
parsing by the standard library, annotations read at run time, packaging. It does not in the folders
below, which one version covers.
"""

from pathlib import Path

TESTS = Path(__file__).parent
INDEPENDENT = {
    "builtin_profiles": "profiles as data, judged by what the plan makes of them",
    "core/bpf": "objects that clang makes, and their bytes",
    "core/plan": "arithmetic over records that other tests read and write",
    "kubernetes/chart": "templates that helm renders",
    "kubernetes/monitoring": "dashboards and alerts that Grafana and promtool judge",
}
"""The folders that a second version leaves out, and what each is about."""


def pytest_addoption(parser):
    parser.addoption(
        "--second-python",
        action="store_true",
        help="leave out the tests whose outcome cannot depend on the version of Python",
    )


def pytest_collection_modifyitems(config, items):
    if not config.getoption("--second-python"):
        return
    folders = {TESTS / folder for folder in INDEPENDENT}
    left = [item for item in items if folders.isdisjoint(item.path.parents)]
    config.hook.pytest_deselected(items=[item for item in items if item not in set(left)])
    items[:] = left
