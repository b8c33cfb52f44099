# noqa: INP001 - a script that the Dockerfile runs by its path
"""finish_python.py ENVIRONMENT LIST: make an installed environment fit for a read-only image.

Compiles all modules with unchecked hashes, so that the times of the files do not matter. Removes
pip's notes about the origin of wheels, and every program except Temper's and Python's. Writes the
packages with their licences into LIST.
"""

import compileall
import py_compile
import sys
from importlib.metadata import Distribution, distributions
from pathlib import Path

INSTALL_NOTES = ("direct_url.json", "REQUESTED")
PROGRAMS = ("temper", "kubectl-temper", "python", "python3", "python3.11")


def strip_down(environment: Path, site: Path) -> None:
    """Remove pip's notes and unused programs, and their lines in each RECORD."""
    for program in (environment / "bin").iterdir():
        if program.name not in PROGRAMS:
            program.unlink()
    for note in [path for name in INSTALL_NOTES for path in site.glob(f"*.dist-info/{name}")]:
        note.unlink()
    for record in sorted(site.glob("*.dist-info/RECORD")):
        lines = record.read_text().splitlines(keepends=True)
        record.write_text("".join(sorted(line for line in lines if _is_there(site, line))))


def _is_there(site: Path, line: str) -> bool:
    return (site / line.rsplit(",", 2)[0].strip('"')).exists()


def compile_by_content(site: Path) -> None:
    """Compile every module. Raises SystemExit if one does not compile."""
    mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
    if not compileall.compile_dir(site, quiet=1, force=True, workers=0, invalidation_mode=mode):
        raise SystemExit("finish_python.py: some modules do not compile")


def licence_of(package: Distribution) -> str:
    """Return the licence in the package's metadata, on one line."""
    licences = package.metadata.get_all("License-Expression") or package.metadata.get_all("License")
    classifiers = package.metadata.get_all("Classifier") or []
    classified = [
        classifier.rpartition(" :: ")[2]
        for classifier in classifiers
        if classifier.startswith("License ::")
    ]
    return licences[0].splitlines()[0] if licences else ", ".join(classified) or "see its LICENSE"


def list_packages(site: Path) -> str:
    """Return a table of name, version, licence."""
    packages = distributions(path=[str(site)])
    rows = sorted(
        (package.metadata["Name"], package.version, licence_of(package)) for package in packages
    )
    return "".join("\t".join(row) + "\n" for row in rows)


def main() -> None:
    """Finish the environment that the command line names."""
    environment = Path(sys.argv[1])
    (site,) = environment.glob("lib/python3*/site-packages")
    strip_down(environment, site)
    compile_by_content(site)
    Path(sys.argv[2]).write_text(list_packages(site))


if __name__ == "__main__":
    main()
