"""Lists the crates of the engine with their licences: ``python -m deploy.engine_crates [--check]``.

The list is of what is built for x86-64 Linux: crates that are linked into the engine, and those
that run while it is built (macros and build scripts). It comes from ``cargo metadata`` of the
engine's own source and lock, which cargo has where ``vm/build-engine`` has built the engine. No
network is used. ``--check`` compares and writes nothing.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
LIST = HERE / "engine-crates.json"
TARGET = "x86_64-unknown-linux-gnu"
CRATE = "scx_layered"
CANNOT = 3

Crate = Mapping[str, str]
"""``name``, ``version``, ``licence`` as an SPDX expression, ``sha256`` and ``use``."""


def pinned_version() -> str:
    """Return the engine's version that the image is built with."""
    found = re.search(r"^ARG ENGINE_VERSION=(.+)$", (HERE / "Dockerfile").read_text(), re.MULTILINE)
    if found is None:
        raise SystemExit("engine_crates: deploy/Dockerfile: no ARG ENGINE_VERSION")
    return found[1]


def source(version: str) -> Path | None:
    """Return the engine's source in cargo's cache, None where cargo has not fetched it."""
    home = Path(os.environ.get("CARGO_HOME") or Path.home() / ".cargo")
    return next(iter(home.glob(f"registry/src/*/{CRATE}-{version}")), None)


def metadata(folder: Path) -> Any:  # noqa: ANN401 - cargo's document
    """Return what cargo says of the engine in *folder* and all that it is built from."""
    path = f"{os.environ.get('PATH', '')}:{Path.home()}/.cargo/bin"
    command = ["cargo", "metadata", "--offline", "--locked", "--format-version=1"]
    told = subprocess.run(  # noqa: S603 - cargo on files of its own cache
        [*command, f"--filter-platform={TARGET}", f"--manifest-path={folder / 'Cargo.toml'}"],
        check=True,
        capture_output=True,
        env={**os.environ, "PATH": path},
    )
    return json.loads(told.stdout)


def crates(told: Mapping[str, Any], lock: Mapping[str, Any]) -> list[Crate]:
    """Return the crates of cargo's document, with the checksums of the lock, by name."""
    packages = {each["id"]: each for each in told["packages"]}
    linked = _linked(told, packages)
    sums = {(each["name"], each["version"]): each.get("checksum", "") for each in lock["package"]}
    listed: list[Crate] = [
        {
            "name": package["name"],
            "version": package["version"],
            "licence": _spdx(package["license"] or ""),
            "sha256": sums[package["name"], package["version"]],
            "use": "linked" if name in linked else "build",
        }
        for name, package in packages.items()
    ]
    return sorted(listed, key=lambda each: (each["name"], each["version"]))


def _linked(told: Mapping[str, Any], packages: Mapping[str, Any]) -> set[str]:
    """Return the ids of crates that are reached by ordinary dependencies without a macro."""
    nodes = {node["id"]: node for node in told["resolve"]["nodes"]}
    seen: set[str] = set()
    to_see = [told["resolve"]["root"]]
    while to_see:
        name = to_see.pop()
        if name in seen or _is_macro(packages[name]):
            continue
        seen.add(name)
        to_see += [
            each["pkg"]
            for each in nodes[name]["deps"]
            if any(kind["kind"] is None for kind in each["dep_kinds"])
        ]
    return seen


def _is_macro(package: Mapping[str, Any]) -> bool:
    return any("proc-macro" in target["kind"] for target in package["targets"])


def _spdx(licence: str) -> str:
    """Return a licence with the slash of older crates as SPDX's OR."""
    return re.sub(r"\s*/\s*", " OR ", licence)


def written(version: str, listed: Sequence[Crate]) -> str:
    """Return the text of the list."""
    lines = ",\n".join(f"  {json.dumps(dict(each))}" for each in listed)
    head = f' "engine": "{CRATE} {version}",\n "target": "{TARGET}",\n'
    return f'{{\n{head} "crates": [\n{lines}\n ]\n}}\n'


def read() -> Any:  # noqa: ANN401 - the list's own document
    """Return the committed list."""
    return json.loads(LIST.read_text())


def by_licence() -> str:
    """Return the licences of the committed list as a Markdown table, the most frequent first."""
    counts: dict[tuple[str, str], list[str]] = {}
    for each in read()["crates"]:
        counts.setdefault((each["use"], each["licence"]), []).append(each["name"])
    lines = ["| crates | licence | number | which |", "| --- | --- | --: | --- |"]
    few = 7
    for (use, licence), names in sorted(
        counts.items(), key=lambda item: (item[0][0] != "linked", -len(item[1]), item[0][1])
    ):
        which = ", ".join(f"`{name}`" for name in names) if len(names) <= few else ""
        lines.append(f"| {use} | {licence} | {len(names)} | {which} |")
    return "\n".join(lines)


def main() -> int:
    """Write or check the list. Return 0, 1 for a list that differs, 3 where cargo has no source."""
    parser = argparse.ArgumentParser(prog="python -m deploy.engine_crates", description=__doc__)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    version = pinned_version()
    folder = source(version)
    if folder is None:
        sys.stderr.write(f"engine_crates: cargo has no {CRATE} {version}; run vm/build-engine\n")
        return CANNOT
    lock = tomllib.loads((folder / "Cargo.lock").read_text())
    text = written(version, crates(metadata(folder), lock))
    if not options.check:
        LIST.write_text(text)
        return 0
    if text == LIST.read_text():
        return 0
    sys.stderr.write(f"engine_crates: {LIST.name} is not that of {CRATE} {version}\n")
    return 1


if __name__ == "__main__":
    sys.exit(main())
