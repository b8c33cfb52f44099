import sys
import textwrap

import pytest

from temper_core.settings.models import PluginHostSettings, Settings
from tests.patience import PATIENCE_S

STEADY = """
    from temper_core import Invariant, hookimpl

    @hookimpl
    def temper_invariants():
        return [Invariant("{name}", lambda snapshot: (), why="it always holds")]
"""


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Install a distribution with one plugin, as pip would leave it on the path."""
    monkeypatch.syspath_prepend(str(tmp_path))
    written = []

    def write(name, source, *, distribution=None, version="1.2", entry_points=None):
        module = f"installed_{distribution or name}_{tmp_path.name}".replace("-", "_")
        written.append(module)
        (tmp_path / f"{module}.py").write_text(textwrap.dedent(source))
        info = tmp_path / f"{distribution or name}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {distribution or name}\nVersion: {version}\n"
        )
        (info / "entry_points.txt").write_text(
            entry_points or f"[temper.plugins]\n{name} = {module}\n"
        )

    yield write
    for module in written:
        sys.modules.pop(module, None)


@pytest.fixture
def steady():
    return STEADY


@pytest.fixture
def settings():
    def make(**plugin_host):
        return Settings(plugin_host=PluginHostSettings(**{"deadline_s": PATIENCE_S, **plugin_host}))

    return make
