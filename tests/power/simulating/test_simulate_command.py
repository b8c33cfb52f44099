"""``temper power simulate``: what it says of itself, and how it ends."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from click import BadParameter
from click.testing import CliRunner

from temper_core import InputError
from temper_plugin_power.commands.power import command
from tests.patience import PATIENCE_S

SVG = "{http://www.w3.org/2000/svg}"
SMALL = ("--hours", "4", "--nodes", "4", "--jobs-per-hour", "40")
TEMPER = str(Path(sys.executable).with_name("temper"))


def simulated(*options):
    done = CliRunner().invoke(command, ["simulate", *SMALL, *options], standalone_mode=False)
    if done.exception is not None:
        raise done.exception
    return done


def test_it_says_that_it_is_a_simulation_and_claims_no_saving():
    done = simulated("--seeds", "3")

    assert "This is a simulation and no measurement, and no saving is claimed." in done.stdout
    assert "3 seeds, intervals of 95 %" in done.stdout
    assert done.stdout.splitlines()[1].startswith("energy_kwh ")
    assert done.return_value == 0


def test_json_has_the_model_the_settings_and_an_interval_for_each_figure():
    done = simulated("--seeds", "2", "--eco-pct", "50", "--output", "json")

    document = json.loads(done.stdout)
    assert document["is_simulation"] is True
    assert document["model"]["slowed_by_sensitivity"] == {"high": 1.0, "medium": 0.5, "low": 0.2}
    assert document["fleet"]["policy"]["eco_pct"] == 50
    assert document["seeds"] == [1, 2]
    assert set(document["arms"]) == {"uncapped", "without profiles", "with profiles"}
    for figures in (*document["arms"].values(), document["with_less_without"]):
        assert {"energy_kwh", "slowdown_sensitive"} < set(figures)
        assert all(set(each) == {"mean", "half_width_95"} for each in figures.values())


def test_a_single_seed_has_no_interval():
    done = simulated("--seeds", "1", "--first-seed", "7")

    assert "±" not in done.stdout
    assert "1 seed, without intervals" in done.stdout


def test_more_jobs_than_the_nodes_can_take_are_refused():
    with pytest.raises(InputError, match="--jobs-per-hour 1000: the jobs take"):
        simulated("--jobs-per-hour", "1000")


@pytest.mark.parametrize(("option", "value"), [("--eco-pct", "39"), ("--wrong", "nan")])
def test_a_value_out_of_its_bounds_is_refused(option, value):
    run = CliRunner().invoke(command, ["simulate", option, value])

    assert run.exit_code == 2
    assert option in run.output


def test_ctrl_c_on_a_terminal_ends_it_without_a_traceback():
    options = ("--seeds", "100", "--nodes", "100", "--jobs-per-hour", "900")
    terminal, errors = os.openpty()
    command = [TEMPER, "power", "simulate", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors) as process:
        os.close(errors)
        shown = b""
        while b"seed 1 of 100" not in shown:
            shown += os.read(terminal, 1024)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=PATIENCE_S)
    os.close(terminal)

    assert process.returncode == 130
    assert (out, b"Traceback" in shown) == (b"", False)


def bars(path):
    """Return the widths of the bars in the picture, figure by figure."""
    picture = ET.fromstring(path.read_text())
    widths = [float(each.get("width")) for each in picture.iter(f"{SVG}rect")]
    return [widths[at : at + 3] for at in range(0, len(widths), 3)]


def test_the_picture_has_a_bar_for_each_arm_as_long_as_its_mean(tmp_path):
    path = tmp_path / "day.svg"
    done = simulated("--seeds", "2", "--output", "json", "--save", str(path))
    arms = json.loads(done.stdout)["arms"].values()

    drawn = bars(path)

    names = list(next(iter(arms)))
    assert len(drawn) == len(names)
    for name, widths in zip(names, drawn, strict=True):
        means = [arm[name]["mean"] for arm in arms]
        shares = [width * sum(means) for width in widths]
        assert shares == pytest.approx(
            [mean * sum(widths) for mean in means], rel=0.01, abs=0.1 * sum(means)
        )


def test_the_picture_says_that_it_is_a_simulation_and_loads_nothing(tmp_path):
    path = tmp_path / "day.html"

    simulated("--seeds", "1", "--save", str(path))

    page = path.read_text()
    assert page.startswith("<!doctype html>")
    assert "default-src 'none'" in page
    assert "A simulation and no measurement: 1 seed, without intervals" in page
    assert "<line" not in page


def test_a_picture_of_another_kind_is_refused(tmp_path):
    with pytest.raises(BadParameter, match=r"must end in \.svg or \.html"):
        simulated("--save", str(tmp_path / "day.png"))
