"""What the checkout says of the image, and the scripts beside the Dockerfile, as modules."""

import importlib.util
import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from types import ModuleType

CHECKOUT = Path(__file__).parents[2]
SCRIPTS = CHECKOUT / "deploy" / "image"
DOCKERFILE = (CHECKOUT / "deploy" / "Dockerfile").read_text()


def copy_of_checkout(directory: Path) -> Path:
    """Lay out, somewhere else and without git, what an image is built from and with."""
    subprocess.run([SCRIPTS / "build", "--context", directory], check=True)
    (directory / "vm").mkdir()
    for needed in ("settings.sh", "build-engine"):
        shutil.copy(CHECKOUT / "vm" / needed, directory / "vm")
    return directory


def script(name: str) -> ModuleType:
    """Import one of the scripts, which are in no package."""
    specification = importlib.util.spec_from_file_location(name, SCRIPTS / f"{name}.py")
    assert specification
    assert specification.loader
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def workspace() -> dict[str, dict[str, object]]:
    """The ``[project]`` tables of this repository's distributions, by name."""
    files = [
        CHECKOUT / "pyproject.toml",
        *sorted(CHECKOUT.glob("libs/*/pyproject.toml")),
        *sorted(CHECKOUT.glob("plugins/*/pyproject.toml")),
    ]
    projects = [tomllib.loads(file.read_text())["project"] for file in files]
    return {project["name"]: project for project in projects}


def default_of(argument: str) -> str:
    """What an argument of the Dockerfile is, if nothing is said; the same wherever it stands."""
    (value,) = {*re.findall(rf"^ARG {argument}=(.*)$", DOCKERFILE, re.MULTILINE)}
    assert isinstance(value, str)
    return value


def locked() -> dict[str, str]:
    """The version of every package in uv.lock."""
    packages = tomllib.loads((CHECKOUT / "uv.lock").read_text())["package"]
    return {package["name"]: package["version"] for package in packages}
