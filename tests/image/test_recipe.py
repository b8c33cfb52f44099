"""What can be told of the image without building it."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.image.recipe import (
    CHECKOUT,
    DOCKERFILE,
    SCRIPTS,
    copy_of_checkout,
    default_of,
    script,
    workspace,
)

BUILD = SCRIPTS / "build"
SECRETS = (".git/config", ".venv/pyvenv.cfg", ".env", "id_ed25519", "kubeconfig", "deploy/helm/x")


def build(*arguments, checkout=CHECKOUT, cache=None):
    environment = {**os.environ, **({"TEMPER_CACHE": str(cache)} if cache else {})}
    command = [checkout / BUILD.relative_to(CHECKOUT), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


@pytest.fixture(scope="module")
def context(tmp_path_factory):
    """What a build would see of this checkout."""
    directory = tmp_path_factory.mktemp("context") / "of-a-build"
    assert build("--context", directory).returncode == 0
    return directory


@pytest.fixture
def copy(tmp_path):
    return copy_of_checkout(tmp_path / "elsewhere")


def patterns():
    lines = (CHECKOUT / ".dockerignore").read_text().splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def sent_by_docker(path):
    """Whether the .dockerignore lets a path through: the last pattern that fits decides."""
    sent = True
    for pattern in patterns():
        rule = re.escape(pattern.lstrip("!")).replace(r"\*\*/", "(.*/)?").replace(r"\*", "[^/]*")
        if re.fullmatch(f"{rule}(/.*)?", path):
            sent = pattern.startswith("!")
    return sent


def test_only_what_the_image_is_made_of_is_laid_out_for_a_build(context):
    top = {path.name for path in context.iterdir()}

    assert top == {
        *("LICENSE", "README.md", "pyproject.toml", "uv.lock", ".dockerignore"),
        *("temper_core", "libs", "plugins", "deploy"),
    }
    assert {path.name for path in (context / "deploy").iterdir()} == {"Dockerfile", "image"}
    assert not [path for path in context.rglob("*") if path.name in {"__pycache__", ".git"}]


@pytest.mark.parametrize(
    "path", [*SECRETS, "plugins/linter/temper_plugin_linter/__pycache__/a.pyc"]
)
def test_docker_is_sent_no_secrets_and_nothing_that_was_made(path):
    assert not sent_by_docker(path)


def test_docker_is_sent_all_that_the_image_is_made_of(context):
    wanted = {str(path.relative_to(context)) for path in context.rglob("*") if path.is_file()}
    needless = {path for path in wanted if "recordings/" in path}

    unsent = {path for path in wanted if not sent_by_docker(path)}

    assert unsent - needless == {".dockerignore", "deploy/Dockerfile"}


def test_the_sum_over_a_checkout_is_the_same_wherever_it_lies(copy, tmp_path):
    again = copy_of_checkout(tmp_path / "again")
    (copy / "temper_core" / "__pycache__").mkdir()
    (copy / "temper_core" / "__pycache__" / "made.pyc").write_text("made")

    here, there = (build("--where", checkout=each, cache=tmp_path / "c") for each in (again, copy))

    assert here.stderr == there.stderr
    assert re.search(r"/image/[0-9a-f]{16}/temper\.tar", here.stderr)


@pytest.mark.parametrize("file", ["temper_core/errors.py", "uv.lock", "deploy/Dockerfile"])
def test_the_sum_changes_with_what_the_image_is_made_of(file, copy, tmp_path):
    before = build("--where", checkout=copy, cache=tmp_path / "cache").stderr
    with (copy / file).open("a") as changed:
        changed.write("\n# changed\n")

    after = build("--where", checkout=copy, cache=tmp_path / "cache").stderr

    assert before != after


def test_where_prints_the_kept_copy_and_leaves_nothing_else_behind(copy, tmp_path):
    cache = tmp_path / "cache"
    missing = build("--where", checkout=copy, cache=cache)
    kept = Path(missing.stderr.split()[2].rstrip(";"))
    kept.parent.mkdir()
    kept.write_text("an image")

    found = build("--where", checkout=copy, cache=cache)

    assert (missing.returncode, found.returncode) == (3, 0)
    assert found.stdout.strip() == str(kept)
    assert [*(cache / "image").iterdir()] == [kept.parent]


def test_a_kept_copy_is_given_without_building(copy, tmp_path):
    cache, out = tmp_path / "cache", tmp_path / "out.tar"
    kept = Path(build("--where", checkout=copy, cache=cache).stderr.split()[2].rstrip(";"))
    kept.parent.mkdir()
    kept.write_text("an image")

    given = build(out, checkout=copy, cache=cache)

    version = workspace()["temper-agent"]["version"]
    assert given.stdout.strip() == f"registry.temper.codes/temper:{version}"
    assert out.read_text() == "an image"


@pytest.mark.parametrize("arguments", [(), ("--no-such",), ("--afresh",), ("a.tar", "b.tar")])
def test_a_wrong_call_is_told_how_to_call(arguments):
    done = build(*arguments)

    assert done.returncode == 2
    assert "build OUT.tar" in done.stderr


def test_a_wrong_call_of_smoke_is_told_how_to_call(tmp_path):
    done = subprocess.run(
        [SCRIPTS / "smoke", tmp_path / "none.tar"], capture_output=True, text=True, check=False
    )

    assert done.returncode == 2
    assert "smoke IMAGE.tar" in done.stderr


def test_smoke_asks_for_every_plugin_of_the_workspace():
    entries = [project.get("entry-points", {}) for project in workspace().values()]
    named = {name for each in entries for name in each.get("temper.plugins", {})}

    assert {*named, "core"} == script("smoke").PLUGINS


def test_every_distribution_has_the_version_that_the_image_gets():
    versions = {project["version"] for project in workspace().values()}

    assert versions == {default_of("VERSION")}


def test_the_engine_is_the_version_that_the_tests_run():
    told = (CHECKOUT / "vm" / "build-engine").read_text()

    (version,) = re.findall(r"TEMPER_ENGINE_VERSION:-([0-9.]+)", told)

    assert version == default_of("ENGINE_VERSION")
    assert f"TEMPER_ENGINE_VERSION:-{version}" in BUILD.read_text()


def test_the_dockerfile_names_every_image_by_its_version():
    given = [line.split()[1] for line in DOCKERFILE.splitlines() if line.startswith("FROM ")]
    stages = re.findall(r"^FROM .* AS (\S+)$", DOCKERFILE, re.MULTILINE)

    assert {*given} - {*stages, "scratch"} == {"${BASE}", "${RUST}"}
    assert re.fullmatch(r"docker\.io/library/rust:\d+\.\d+\.\d+-bookworm", default_of("RUST"))
    assert default_of("BASE").endswith("debian:bookworm-slim")


def test_what_builds_the_wheels_is_named_by_version_and_hash():
    text = (SCRIPTS / "build-tools.txt").read_text().replace("\\\n", " ")
    required = [line for line in text.splitlines() if line and not line.startswith("#")]

    names = {re.split(r"[=\s]", line)[0] for line in required}

    assert {"uv", "hatchling"} <= names
    assert all(re.match(r"\S+==\S+\s+.*--hash=sha256:[0-9a-f]{64}", line) for line in required)


def test_no_index_is_named():
    words = re.compile(r"pypi|simple/|--index|artifact|files\.pythonhosted", re.IGNORECASE)

    told = {
        file.name for file in SCRIPTS.iterdir() if file.is_file() and words.search(file.read_text())
    }

    assert not told
    assert not words.search(DOCKERFILE)
