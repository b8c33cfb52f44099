# noqa: INP001 - a script that smoke runs by its path, with any python3
# ruff: noqa: S603, S607 - root runs tar, mount and the image's own programs, by names that are written here
"""smoke.py IMAGE.tar: see the script smoke, which runs it in a mount namespace of its own."""

import json
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.error import URLError

OPAQUE = ".wh..wh..opq"
WHITEOUT = ".wh."
NOBODY = 65532
PLUGINS = {
    "builtin-profiles",
    "console",
    "core",
    "dashboard",
    "density",
    "kubernetes",
    "linter",
    "power",
    "rightsizer",
    "tracer",
    "trainer",
}
WRITABLE = ("/run/temper", "/var/lib/temper")  # what the chart mounts
COMMAND_SECONDS = 60.0
ANSWER_SECONDS = 60.0
DOCTORS = (0, 1, 3)  # enforcing works here, works with findings, does not work


class CheckError(Exception):
    """A failed check, with the reason."""


@dataclass(frozen=True)
class Image:
    """The configuration of an image, and the root of its unpacked files."""

    root: Path
    environment: Mapping[str, str]
    entrypoint: Sequence[str]
    command: Sequence[str]
    labels: Mapping[str, str]


def blob(layout: Path, digest: str) -> Path:
    """Return the file of an OCI layout with the content of that digest."""
    return layout / "blobs" / digest.replace(":", "/")


def read_document(file: Path) -> Any:  # noqa: ANN401 - JSON as specified by OCI
    """Return a JSON document."""
    return json.loads(file.read_text())


def unpack(archive: Path, work: Path) -> Image:
    """Unpack the layers of the archive's only image, in order."""
    layout, root = work / "layout", work / "root"
    for directory in (layout, root):
        directory.mkdir()
    subprocess.run(["tar", "-C", layout, "-xf", archive], check=True)
    (descriptor,) = read_document(layout / "index.json")["manifests"]
    manifest = read_document(blob(layout, descriptor["digest"]))
    for layer in manifest["layers"]:
        lay(blob(layout, layer["digest"]), root)
    config = read_document(blob(layout, manifest["config"]["digest"]))["config"]
    environment = dict(pair.split("=", 1) for pair in config["Env"])
    return Image(root, environment, config["Entrypoint"], config["Cmd"], config["Labels"])


def lay(layer: Path, root: Path) -> None:
    """Apply one layer: first its removals, then its files."""
    listing = subprocess.run(["tar", "-tf", layer], check=True, capture_output=True, text=True)
    for name in listing.stdout.splitlines():
        parent, _, last = name.rstrip("/").rpartition("/")
        if last == OPAQUE:
            raise SystemExit(f"smoke: {name}: opaque directories are not supported")
        if last.startswith(WHITEOUT):
            removed = root / parent / last.removeprefix(WHITEOUT)
            subprocess.run(["rm", "-rf", removed], check=True)
    extract = ["tar", "-C", str(root), "-xpf", str(layer), "--numeric-owner"]
    subprocess.run([*extract, f"--exclude={WHITEOUT}*"], check=True)


def mount(*arguments: str | Path) -> None:
    """Run mount. Raises SystemExit if it is refused."""
    process = subprocess.run(["mount", *arguments], capture_output=True, text=True, check=False)
    if process.returncode:
        sys.stderr.write(f"smoke: this machine refuses to mount: {process.stderr.strip()}\n")
        raise SystemExit(3)


def mount_below(root: Path, uid: int) -> None:
    """Mount the root read-only, with the kernel's file systems and the chart's volumes."""
    for path in WRITABLE:
        (root / path[1:]).mkdir(parents=True, exist_ok=True)
    mount("--bind", root, root)
    for path in ("proc", "sys", "dev"):
        mount("--rbind", f"/{path}", root / path)
    for path in WRITABLE:
        mount("-t", "tmpfs", "-o", f"uid={uid},mode=0755,size=16m", "tmpfs", root / path[1:])
    mount("-o", "remount,bind,ro", root)


def in_image(image: Image, uid: int, *command: str) -> subprocess.Popen[str]:
    """Start a command of the image as that user, with the image's environment only."""
    words = ["chroot", f"--userspec={uid}:{uid}", "--groups=", str(image.root), *command]
    return subprocess.Popen(
        words,
        env=dict(image.environment),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def output_of(image: Image, uid: int, *command: str, accepted: Sequence[int] = (0,)) -> str:
    """Run a command to its end. Raises CheckError if its exit code is not in *accepted*."""
    process = in_image(image, uid, *command)
    try:
        out, _ = process.communicate(timeout=COMMAND_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise CheckError(f"does not end within {COMMAND_SECONDS:.0f} s") from None
    if process.returncode not in accepted:
        raise CheckError(f"exit code {process.returncode}: {out.strip()[-2000:]}")
    return out


def require(condition: bool, why: str) -> None:
    """Raise CheckError with the reason unless the condition holds."""
    if not condition:
        raise CheckError(why)


def starts_as_promised(image: Image, _uid: int) -> None:
    """Check the entry point and command that the chart relies on."""
    words = [*image.entrypoint, *image.command]
    require(words == ["/usr/local/bin/temper", "agent"], f"is {words}")


def tells_its_version(image: Image, uid: int) -> None:
    """Check that the agent's version is the image's label."""
    version = image.labels["org.opencontainers.image.version"]
    out = output_of(image, uid, "/usr/local/bin/temper", "--version")
    require(version in out.split(), f"{out.strip()!r}, but the label is {version}")


def doctor_reports(image: Image, uid: int) -> None:
    """Check that the doctor runs to its end and prints a document."""
    out = output_of(image, uid, "temper", "doctor", "--output", "json", accepted=DOCTORS)
    require(bool(json.loads(out)), "an empty report")


def plugins_are_active(image: Image, uid: int) -> None:
    """Check that every plugin of the workspace is installed and active."""
    plugins = json.loads(output_of(image, uid, "temper", "plugins", "--output", "json"))
    states = {plugin["name"]: plugin["state"] for plugin in plugins}
    require(states.keys() >= PLUGINS, f"lacks {sorted(PLUGINS - states.keys())}")
    require(set(states.values()) == {"active"}, f"{states}")


def profiles_are_listed(image: Image, uid: int) -> None:
    """Check that the profiles that ship with Temper are found."""
    out = output_of(image, uid, "temper", "profiles", "list")
    require("mysql-innodb" in out, out)


def engine_runs(image: Image, uid: int) -> None:
    """Check that the engine finds its libraries, and has the version of the label."""
    version = image.labels["codes.temper.engine"].split()[-1]
    out = output_of(image, uid, "scx_layered", "--version")
    require(version in out, f"{out.strip()!r}, but the label is {version}")


def helps(*command: str) -> Callable[[Image, int], None]:
    """Return a check that a command loads with all its imports."""

    def check(image: Image, uid: int) -> None:
        out = output_of(image, uid, *command, "--help")
        require("Usage" in out, out)

    return check


def get(port: int, path: str) -> str:
    """Return the agent's answer. Raises URLError while there is none."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
        require(answer.status == HTTPStatus.OK, f"{path}: {answer.status}")
        text: str = answer.read().decode()
        return text


def get_in_time(agent: subprocess.Popen[str], port: int, path: str) -> str:
    """Retry until there is an answer. Raises CheckError if the agent ends or never answers."""
    deadline = time.monotonic() + ANSWER_SECONDS
    while agent.poll() is None and time.monotonic() < deadline:
        with suppress(URLError, ConnectionError, TimeoutError):
            return get(port, path)
        time.sleep(0.2)
    raise CheckError(f"no answer to {path}")


def free_port() -> int:
    """Return an unused port."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port: int = listening.getsockname()[1]
        return port


def agent_observes(image: Image, uid: int) -> None:
    """Check that the agent reports this machine's threads, answers, and ends on SIGTERM."""
    port = free_port()
    listen = ("--observe-only", "--listen", f"127.0.0.1:{port}")
    agent = in_image(image, uid, *image.entrypoint, *image.command, *listen)
    problem = ""
    try:
        get_in_time(agent, port, "/healthz")
        require("temper_mode" in get_in_time(agent, port, "/metrics"), "/metrics lacks temper_mode")
        require(bool(threads_seen(agent, port)), "/observe reports no thread")
    except CheckError as error:
        problem = str(error)
    agent.send_signal(signal.SIGTERM)
    try:
        output, _ = agent.communicate(timeout=COMMAND_SECONDS)
    except subprocess.TimeoutExpired:
        agent.kill()
        raise CheckError("does not end on SIGTERM") from None
    require(not problem, f"{problem}; its output: {output[-2000:]}")
    require(agent.returncode == 0, f"ends with {agent.returncode}: {output[-2000:]}")


def threads_seen(agent: subprocess.Popen[str], port: int) -> Sequence[object]:
    """Return the busiest threads, once the agent has a snapshot with some."""
    deadline = time.monotonic() + ANSWER_SECONDS
    while time.monotonic() < deadline:
        threads: Sequence[object] = json.loads(get_in_time(agent, port, "/observe"))["threads"]
        if threads:
            return threads
        time.sleep(0.5)
    return ()


CHECKS: Mapping[str, Callable[[Image, int], None]] = {
    "entry point and command": starts_as_promised,
    "temper --version": tells_its_version,
    "temper doctor": doctor_reports,
    "temper plugins": plugins_are_active,
    "temper profiles list": profiles_are_listed,
    "scx_layered --version": engine_runs,
    "kubectl-temper --help": helps("kubectl-temper"),
    "temper k8s --help": helps("temper", "k8s"),
    "temper overcommit --help": helps("temper", "overcommit"),
    "temper placement --help": helps("temper", "placement"),
    "temper agent --observe-only": agent_observes,
}


def holds(image: Image, uid: int, name: str) -> bool:
    """Run one check and print its outcome."""
    began = time.monotonic()
    outcome, why = "ok", ""
    try:
        CHECKS[name](image, uid)
    except CheckError as error:
        outcome, why = "FAILED", f": {error}"
    sys.stdout.write(f"{outcome:6}  uid {uid:<5}  {name} ({time.monotonic() - began:.1f} s){why}\n")
    sys.stdout.flush()
    return not why


def try_all(archive: Path) -> bool:
    """Unpack once and run every check as both users, each with mounts of its own."""
    with tempfile.TemporaryDirectory(prefix="smoke.") as work:
        image = unpack(archive, Path(work))
        outcomes = []
        for uid in (0, NOBODY):
            mount_below(image.root, uid)
            outcomes += [holds(image, uid, name) for name in CHECKS]
            subprocess.run(["umount", "--recursive", image.root], check=True)
        return all(outcomes)


def main() -> None:
    """Check the image that the command line names."""
    sys.exit(0 if try_all(Path(sys.argv[1])) else 1)


if __name__ == "__main__":
    main()
