"""Which alerts fire, by promtool: it is told that none does, and names those that do."""

import re

import yaml
from attrs import frozen

from tests.prometheus import promtool

_FIRED = re.compile(r"^ +Labels:\{(?P<labels>.*)\}\n +Annotations:\{(?P<said>.*)\}$", re.MULTILINE)
_BLOCK = re.compile(r"alertname: (\w+), time: (\w+),(.*?)(?=alertname:|\Z)", re.DOTALL)
_PAIR = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')

MINUTES = {"d": 1440, "h": 60, "m": 1}


@frozen
class Fired:
    """One alert that fires: its labels but for its name, and its annotations."""

    name: str
    labels: dict
    annotations: dict


class Rules:
    """A file of rules to be tried with made-up series."""

    def __init__(self, directory, groups):
        self.directory = directory
        self.groups = groups
        (directory / "rules.yaml").write_text(yaml.safe_dump({"groups": groups}))

    @property
    def names(self):
        return [rule["alert"] for group in self.groups for rule in group["rules"]]

    def fired(self, series, *moments):
        """Return what fires at each of the *moments*, in minutes; *series* say one value each."""
        asked = [
            {"eval_time": f"{moment}m", "alertname": name, "exp_alerts": []}
            for moment in moments
            for name in self.names
        ]
        given = [{"series": name, "values": values} for name, values in series.items()]
        test = {"interval": "1m", "input_series": given, "alert_rule_test": asked}
        document = {"rule_files": ["rules.yaml"], "evaluation_interval": "1m", "tests": [test]}
        path = self.directory / "test.yaml"
        path.write_text(yaml.safe_dump(document))
        done = promtool("test", "rules", path, text=True)
        found = {moment: [] for moment in moments}
        for moment, fired in _read(done.stdout + done.stderr):
            found[_minutes(moment)].append(fired)
        assert (done.returncode == 0) == (not any(found.values())), done.stdout + done.stderr
        return found


def _read(said):
    for _, moment, reported in _BLOCK.findall(said):
        for labels, annotations in _FIRED.findall(reported):
            told = dict(_PAIR.findall(labels))
            yield moment, Fired(told.pop("alertname"), told, dict(_PAIR.findall(annotations)))


def _minutes(duration):
    """Read a duration as promtool writes it: ``1d30m``."""
    return sum(int(n) * MINUTES[unit] for n, unit in re.findall(r"(\d+)([dhm])", duration))
