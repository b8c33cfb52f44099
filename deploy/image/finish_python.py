# noqa: INP001 - a script that the Dockerfile runs by its path
"""finish_python.py ENVIRONMENT LIST: make an installed environment fit for a read-only image.

Compiles all of it by content rather than by time, so that it is valid whatever the times of the
files are. Takes away what pip notes about where a wheel lay, and every program but Temper's.
Writes the packages with their licences into LIST.
"""

import compileall
import py_compile
import sys
from importlib.metadata import Distribution, distributions
from pathlib import Path

INSTALL_NOTES = ("direct_url.json", "REQUESTED")
PROGRAMS = ("temper", "kubectl-temper", "python", "python3", "python3.11")


def strip_down(environment: Path, site: Path) -> None:
    """Take away pip's notes and the programs nobody runs here, and their lines in each RECORD."""
    for program in (environment / "bin").iterdir():
        if program.name not in PROGRAMS:
            program.unlink()
    for note in [path for name in INSTALL_NOTES for path in site.glob(f"*.dist-info/{name}")]:
        note.unlink()
    for record in sorted(site.glob("*.dist-info/RECORD")):
        lines = record.read_text().splitlines(keepends=True)
        record.write_text("".join(sorted(each for each in lines if _is_there(site, each))))


def _is_there(site: Path, line: str) -> bool:
    return (site / line.rsplit(",", 2)[0].strip('"')).exists()


def compile_by_content(site: Path) -> None:
    """Compile every module. Raises SystemExit if one does not compile."""
    mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
    if not compileall.compile_dir(site, quiet=1, force=True, workers=0, invalidation_mode=mode):
        raise SystemExit("finish_python.py: not all of it compiles")


def licence_of(package: Distribution) -> str:
    """Return what the package says of its licence, on one line."""
    told = package.metadata.get_all("License-Expression") or package.metadata.get_all("License")
    classifiers = package.metadata.get_all("Classifier") or []
    named = [each.rpartition(" :: ")[2] for each in classifiers if each.startswith("License ::")]
    return told[0].splitlines()[0] if told else ", ".join(named) or "see its LICENSE"


def list_packages(site: Path) -> str:
    """Return a table of name, version, licence."""
    found = distributions(path=[str(site)])
    rows = sorted((each.metadata["Name"], each.version, licence_of(each)) for each in found)
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
