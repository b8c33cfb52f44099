"""``make dist``: wheels and sdists with licences, a bill of materials, checksums."""

import email
import hashlib
import json
import tarfile
import zipfile

import pytest

from tests.installed.wheels import ROOT, run

PROJECTS = [
    ROOT,
    *sorted(path.parent for path in ROOT.glob("libs/*/pyproject.toml")),
    *sorted(path.parent for path in ROOT.glob("plugins/*/pyproject.toml")),
]
GPL = "LICENSE-GPL-2.0-only"


def build(folder):
    run(ROOT / "scripts" / "build-dist", folder)
    return folder


@pytest.fixture(scope="module")
def dist(tmp_path_factory):
    return build(tmp_path_factory.mktemp("dist") / "first")


@pytest.fixture(scope="module")
def wheels(dist):
    """Return the content of each wheel by name: its metadata, and its files."""
    found = {}
    for path in dist.glob("*.whl"):
        with zipfile.ZipFile(path) as wheel:
            files = {name: wheel.read(name) for name in wheel.namelist()}
        [metadata] = [files[name] for name in files if name.endswith(".dist-info/METADATA")]
        found[path.name.partition("-")[0]] = email.message_from_bytes(metadata), files
    assert len(found) == len(PROJECTS)
    return found


def test_every_wheel_has_the_licence_and_complete_metadata(wheels):
    licence = (ROOT / "LICENSE").read_bytes()

    for name, (metadata, files) in wheels.items():
        texts = {path.rpartition("/")[2]: content for path, content in files.items()
                 if "/licenses/" in path}  # fmt: skip
        assert texts["LICENSE"] == licence, name
        assert metadata["License-Expression"].startswith("Apache-2.0"), name
        assert metadata["Author"] == "The Temper authors", name
        assert "temper" in metadata["Keywords"], name
        assert "Typing :: Typed" in metadata.get_all("Classifier"), name
        assert metadata["Requires-Python"] == ">=3.11", name
        assert metadata.get_payload().strip(), name


def test_the_wheels_with_bpf_objects_have_the_text_of_the_gpl(wheels):
    text = (ROOT / GPL).read_bytes()
    with_objects = {
        name for name, (_, files) in wheels.items() if any(path.endswith(".bpfl") for path in files)
    }

    assert {"temper_agent", "temper_plugin_tracer"} <= with_objects
    for name in with_objects:
        metadata, files = wheels[name]
        assert any(path.endswith(f"/licenses/{GPL}") and files[path] == text for path in files)
        assert "GPL-2.0-only" in metadata["License-Expression"]


def test_our_own_distributions_go_together_by_minor_version(wheels):
    for name, (metadata, _) in wheels.items():
        for requirement in metadata.get_all("Requires-Dist") or ():
            if requirement.startswith("temper-") and not requirement.startswith("temper-agent["):
                assert "~=0.1.0" in requirement, name


def test_every_sdist_has_its_licence(dist):
    for path in dist.glob("*.tar.gz"):
        with tarfile.open(path) as sdist:
            names = {member.name.partition("/")[2]: member for member in sdist}
            assert names["LICENSE"].isreg(), path.name


def test_the_bill_of_materials_has_what_is_installed_and_not_the_tools(dist):
    document = json.loads((dist / "temper.cdx.json").read_text())
    components = {each["name"] for each in document["components"]}

    assert document["bomFormat"] == "CycloneDX"
    assert {"attrs", "cattrs", "click", "pluggy", "uvicorn", "temper-plugin-tracer"} <= components
    assert not components & {"ruff", "mypy", "sphinx"}
    assert str(ROOT) not in json.dumps(document)


def test_the_same_sources_give_the_same_bytes(dist, tmp_path):
    again = build(tmp_path / "again")

    sums = (dist / "SHA256SUMS").read_text()
    assert sums == (again / "SHA256SUMS").read_text()
    for line in sums.splitlines():
        digest, name = line.split()
        assert hashlib.sha256((dist / name).read_bytes()).hexdigest() == digest
    assert len(sums.splitlines()) == 2 * len(PROJECTS) + 1
    assert {line.split()[1] for line in sums.splitlines()} == {
        path.name for path in dist.iterdir()
    } - {"SHA256SUMS"}
