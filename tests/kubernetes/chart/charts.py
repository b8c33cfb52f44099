"""Helm, the chart, and the objects that it renders."""

import subprocess
from pathlib import Path

import yaml
from attrs import frozen

ROOT = Path(__file__).parents[3]
CHART = ROOT / "deploy/helm/temper"
BUILD = ROOT / "kube/build"
WORKLOADS = ("DaemonSet", "Deployment", "Job", "Pod")


class Strict(yaml.CSafeLoader):
    """YAML as the API server's strict decoder reads it: a key twice is a mistake."""


def _mapping(loader, node):
    keys = [loader.construct_object(key) for key, _ in node.value]
    assert len(keys) == len(set(keys)), f"a key stands twice: {node.start_mark}: {keys}"
    return loader.construct_mapping(node, deep=True)


Strict.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping)


@frozen
class Rendered:
    """All objects of one rendering."""

    objects: tuple

    def of(self, kind):
        return [each for each in self.objects if each["kind"] == kind]

    def get(self, kind, name, namespace=None):
        found = [
            each
            for each in self.of(kind)
            if each["metadata"]["name"] == name
            and namespace in (None, each["metadata"].get("namespace"))
        ]
        assert len(found) == 1, f"{len(found)} of {kind} {name}"
        return found[0]

    def has(self, kind, name):
        return any(each["metadata"]["name"] == name for each in self.of(kind))

    def pods(self):
        """Yield the kind and name of every workload with its pods' template."""
        for each in self.objects:
            if each["kind"] in WORKLOADS:
                template = each if each["kind"] == "Pod" else each["spec"]["template"]
                yield each["kind"], each["metadata"]["name"], template

    def settings(self, name="temper-agent"):
        return self.get("ConfigMap", name)["data"]["agent.toml"]


@frozen
class Helm:
    """The real helm, built by kube/build."""

    program: Path
    environment: dict

    def run(self, *arguments):
        return subprocess.run(
            [str(self.program), *map(str, arguments)],
            capture_output=True,
            text=True,
            env=self.environment,
            check=False,
        )

    def said(self, *arguments):
        """Return what a command prints that has to succeed."""
        done = self.run(*arguments)
        assert done.returncode == 0, f"{' '.join(map(str, arguments))}: {done.stderr}{done.stdout}"
        return done.stdout

    def render(self, *options, namespace="temper"):
        text = self.said("template", "temper", CHART, "--namespace", namespace, *options)
        documents = yaml.load_all(text, Loader=Strict)
        return Rendered(tuple(each for each in documents if each is not None))

    def refusal(self, *options):
        """Return what helm says about values that it does not take."""
        done = self.run("template", "temper", CHART, *options)
        assert done.returncode != 0, "it was taken"
        return done.stderr


def values_file(directory, values):
    """Write *values* as a file and return helm's option for it."""
    path = directory / "values.yaml"
    path.write_text(yaml.safe_dump(values))
    return ("--values", str(path))
