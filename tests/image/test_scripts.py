"""The steps that make an image what it is, each on files of its own."""

import json
import marshal
import subprocess
import sys
import tarfile
from hashlib import sha256
from io import BytesIO
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.image.recipe import SCRIPTS, script

UNCHECKED = (1).to_bytes(4, "little")
NOTE = '{"url": "file:///somewhere/temper_agent-0.1.0-py3-none-any.whl"}'


def run(name, *arguments):
    command = [sys.executable, SCRIPTS / f"{name}.py", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture
def environment(tmp_path):
    """An environment as pip leaves it."""
    site = tmp_path / "lib" / "python3.11" / "site-packages"
    (site / "agent-1.0.dist-info").mkdir(parents=True)
    (site / "agent.py").write_text("def answer():\n    return 42\n")
    notes = {
        "METADATA": "Name: agent\nVersion: 1.0\nLicense-Expression: MIT\n",
        "direct_url.json": NOTE,
        "REQUESTED": "",
        "RECORD": "agent.py,,\n../../../bin/httpx2,,\n../../../bin/temper,,\n"
        "agent-1.0.dist-info/direct_url.json,,\nagent-1.0.dist-info/REQUESTED,,\n",
    }
    for name, text in notes.items():
        (site / "agent-1.0.dist-info" / name).write_text(text)
    (tmp_path / "bin").mkdir()
    for program in ("temper", "python3", "httpx2", "Activate.ps1"):
        (tmp_path / "bin" / program).write_text("")
    return tmp_path


def test_an_environment_is_compiled_by_content_and_names_the_place_it_is_at(environment):
    done = run("finish_python", environment, environment / "list")

    assert done.returncode == 0, done.stderr
    (compiled,) = environment.rglob("agent.*.pyc")
    content = compiled.read_bytes()
    assert content[4:8] == UNCHECKED
    assert marshal.loads(content[16:]).co_filename == str(compiled.parents[1] / "agent.py")


def test_an_environment_forgets_where_its_wheels_lay(environment):
    run("finish_python", environment, environment / "list")

    (notes,) = environment.rglob("*.dist-info")
    assert {path.name for path in notes.iterdir()} == {"METADATA", "RECORD"}
    assert (notes / "RECORD").read_text() == "../../../bin/temper,,\nagent.py,,\n"


def test_an_environment_keeps_no_programs_but_tempers_and_python(environment):
    run("finish_python", environment, environment / "list")

    assert {path.name for path in (environment / "bin").iterdir()} == {"temper", "python3"}


def test_the_packages_are_listed_with_their_licences(environment):
    run("finish_python", environment, environment / "list")

    assert (environment / "list").read_text() == "agent\t1.0\tMIT\n"


def test_a_module_that_does_not_compile_ends_the_build(environment):
    (environment / "lib/python3.11/site-packages/broken.py").write_text("def (")

    done = run("finish_python", environment, environment / "list")

    assert done.returncode == 1
    assert "some modules do not compile" in done.stderr


@given(st.binary(), st.binary(min_size=3, max_size=9), st.binary(max_size=3))
def test_renaming_moves_no_byte(content, old, new):
    renamed = script("rename_paths").renamed

    assert len(renamed(content + old + content, old, new)) == len(content + old + content)


def test_a_directory_has_its_new_name_and_the_same_files_below_it(tmp_path):
    binary = tmp_path / "binary"
    binary.write_bytes(b"\0panicked at /home/me/crates/a.rs\0/home/me/x\0")

    done = run("rename_paths", binary, "/home/me/crates=/crates")

    assert done.returncode == 0
    assert binary.read_bytes() == b"\0panicked at /crates/////////a.rs\0/home/me/x\0"


def test_a_name_that_has_no_room_is_refused_and_nothing_is_changed(tmp_path):
    binary = tmp_path / "binary"
    binary.write_bytes(b"/a/b")

    done = run("rename_paths", binary, "/a=/usr/src")

    assert done.returncode == 2
    assert "/usr/src is longer than /a" in done.stderr
    assert binary.read_bytes() == b"/a/b"


def test_an_image_is_named_in_full_for_containerd(tmp_path):
    (tmp_path / "index.json").write_text('{"schemaVersion": 2, "manifests": [{"digest": "d"}]}')

    run("name_image", tmp_path, "registry.example:5000/temper:1.2")

    (manifest,) = json.loads((tmp_path / "index.json").read_text())["manifests"]
    assert manifest["annotations"] == {
        "io.containerd.image.name": "registry.example:5000/temper:1.2",
        "org.opencontainers.image.ref.name": "1.2",
    }


class Layout:
    """An OCI archive that is put together by hand."""

    def __init__(self):
        self.files = {}

    def add(self, content):
        digest = sha256(content).hexdigest()
        self.files[f"blobs/sha256/{digest}"] = content
        return {"digest": f"sha256:{digest}"}

    def write(self, file: Path, layers):
        config = {"Env": ["A=b"], "Entrypoint": ["/e"], "Cmd": ["c"], "Labels": {"l": "m"}}
        manifest = {
            "config": self.add(json.dumps({"config": config}).encode()),
            "layers": [self.add(tar_of(layer)) for layer in layers],
        }
        index = {"manifests": [self.add(json.dumps(manifest).encode())]}
        self.files["index.json"] = json.dumps(index).encode()
        file.write_bytes(tar_of(self.files))


def tar_of(files):
    out = BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, BytesIO(content))
    return out.getvalue()


def test_a_layer_takes_away_what_it_says_and_brings_the_rest(tmp_path):
    lower = {"etc/kept": b"1", "etc/gone": b"1", "etc/changed": b"1", "old/inner": b"1"}
    upper = {"etc/.wh.gone": b"", "etc/changed": b"2", ".wh.old": b""}
    Layout().write(tmp_path / "image.tar", [lower, upper])

    image = script("smoke").unpack(tmp_path / "image.tar", tmp_path)

    files = [path for path in image.root.rglob("*") if path.is_file()]
    found = {str(path.relative_to(image.root)): path.read_text() for path in files}
    assert found == {"etc/kept": "1", "etc/changed": "2"}
    assert (image.environment, [*image.entrypoint, *image.command]) == ({"A": "b"}, ["/e", "c"])
