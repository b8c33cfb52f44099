"""The dashboards fit Grafana's own types: those of dashboards, and those of each kind of panel."""

import hashlib
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.kubernetes.monitoring.boards import boards, panels

HERE = Path(__file__).parent / "grafana"
CACHE = Path(os.environ.get("TEMPER_CACHE") or Path.home() / ".cache/temper")
TYPES = "@grafana/schema/dist/esm/raw/composable/{}/panelcfg/x/{}PanelCfg_types.gen"
KINDS = {
    "bargauge": "BarGauge",
    "heatmap": "Heatmap",
    "stat": "Stat",
    "statetimeline": "StateTimeline",
    "table": "Table",
    "timeseries": "TimeSeries",
}
CUSTOM = {"timeseries", "statetimeline", "heatmap", "table"}
"""Kinds of panel whose fields have options of that kind alone."""
OF_THE_DATASOURCE = ("expr", "step", "titleFormat")
"""Keys of an annotation that Prometheus' plugin has, and Grafana's types do not name."""
OPTIONS = (
    "--noEmit --strict --skipLibCheck --target es2022 --module esnext --moduleResolution bundler"
)
SPOILT = {
    "option": lambda panel: panel["options"].update(legende={}),
    "choice": lambda panel: panel["options"]["tooltip"].update(mode="loud"),
    "field": lambda panel: panel["fieldConfig"]["defaults"]["custom"].update(lineWidth="1"),
    "place": lambda panel: panel["gridPos"].update(w="8"),
    "key": lambda panel: panel.update(titel="x"),
}


@pytest.fixture(scope="module")
def modules(tmp_path_factory):
    """Grafana's types and the compiler, fetched once from npm."""
    if not (shutil.which("node") and shutil.which("npm")):
        pytest.skip("needs node and npm (Debian: nodejs, npm)")
    lock = (HERE / "package-lock.json").read_bytes()
    kept = CACHE / "grafana-types" / hashlib.sha256(lock).hexdigest()[:12]
    if not kept.exists():
        made = tmp_path_factory.mktemp("npm")
        for name in ("package.json", "package-lock.json"):
            shutil.copy(HERE / name, made)
        done = subprocess.run(
            ["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts"],
            cwd=made, capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode:
            pytest.skip(f"npm cannot fetch Grafana's types: {done.stderr.strip()[-200:]}")
        kept.parent.mkdir(parents=True, exist_ok=True)
        shutil.copytree(made, kept, dirs_exist_ok=True)
    return kept / "node_modules"


@pytest.fixture(scope="module")
def said(modules, tmp_path_factory):
    """What the compiler says of the dashboards, and of each that was spoilt on purpose."""
    directory = tmp_path_factory.mktemp("types")
    (directory / "node_modules").symlink_to(modules)
    shutil.copy(HERE / "plain.ts", directory)
    texts = {"whole": claims(boards().values()), **{key: claims([spoilt(key)]) for key in SPOILT}}
    for name, text in texts.items():
        (directory / f"{name}.ts").write_text("\n".join(text))
    compiler = ["node", "node_modules/typescript/bin/tsc", *OPTIONS.split()]
    done = subprocess.run(
        [*compiler, *(f"{name}.ts" for name in texts)],
        cwd=directory, capture_output=True, text=True, check=False,
    )  # fmt: skip
    lines = (done.stdout + done.stderr).splitlines()
    return {name: [line for line in lines if line.startswith(f"{name}.ts")] for name in texts}


def spoilt(name):
    """Return a dashboard with one mistake."""
    board = boards()["pod"]
    SPOILT[name](next(panel for panel in panels(board) if panel["type"] == "timeseries"))
    return board


def module_of(panel):
    return panel["type"].replace("-", "")


def claims(dashboards):
    """Write the dashboards as TypeScript that says of which type each part is."""
    shown = [each for board in dashboards for each in panels(board) if each["type"] != "row"]
    modules = sorted({module_of(panel) for panel in shown})
    yield 'import type { Dashboard } from "@grafana/schema";\nimport type { Plain } from "./plain";'
    yield from (
        f'import type * as {name} from "{TYPES.format(name, KINDS[name])}";' for name in modules
    )
    for board in dashboards:
        yield f"({json.dumps(_typed(board))}) satisfies Plain<Dashboard>;"
    for panel in shown:
        name = module_of(panel)
        yield f"({json.dumps(panel['options'])}) satisfies Plain<{name}.Options>;"
        if name in CUSTOM:
            custom = json.dumps(panel["fieldConfig"]["defaults"].get("custom", {}))
            yield f"({custom}) satisfies Plain<{name}.FieldConfig>;"


def _typed(board):
    noted = [
        {key: value for key, value in each.items() if key not in OF_THE_DATASOURCE}
        for each in board["annotations"]["list"]
    ]
    return {**board, "annotations": {"list": noted}}


def test_dashboards_and_panels_are_of_grafanas_types(said):
    assert said["whole"] == []


@pytest.mark.parametrize("name", SPOILT)
def test_what_does_not_fit_is_noticed(said, name):
    assert len(said[name]) == 1
