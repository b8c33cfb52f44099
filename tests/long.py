"""Tests that take minutes: ``make test-long`` runs them, and whoever names their files.

They are not part of ``make test``, so that it ends in minutes. ``.ci/run`` runs them last.
"""

from tests.heavy import LONG, leave_to, named_files

TARGET = "test-long"


def pytest_addoption(parser):
    parser.addoption("--long", action="store_true", help="run only the tests that take minutes")


def pytest_ignore_collect(collection_path, config):
    is_other = collection_path.is_file() and collection_path not in LONG
    return True if config.getoption("--long") and is_other else None


def pytest_collection_modifyitems(config, items):
    chosen = LONG if config.getoption("--long") else named_files(config.args)
    for item in items:
        if item.path in LONG and item.path not in chosen:
            leave_to(TARGET, item, "takes minutes")
