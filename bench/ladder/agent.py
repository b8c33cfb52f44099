"""The product's own agent under the settings of an arm."""

import json
import subprocess
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

from attrs import frozen

from bench.ladder.arms import Arm
from bench.ladder.pods import NAMESPACE, halting, running

ADDRESS = "127.0.0.1:9177"
ENFORCING_S = 900.0
ASK_S, ANSWER_S = 2.0, 60.0
END_S = 60.0
LOG_LINES = 30

Json = dict[str, Any]


class NotInTime(Exception):  # noqa: N818 - reads as the fact it reports
    """Raised when the agent does not get where it should, with the end of its log."""


@frozen
class Files:
    """The files of one agent, all below one directory."""

    directory: Path

    @property
    def settings(self) -> Path:
        """The settings file."""
        return self.directory / "agent.toml"

    @property
    def pods(self) -> Path:
        """The PodList."""
        return self.directory / "pods.json"

    @property
    def profiles(self) -> Path:
        """The directory of workload profiles."""
        return self.directory / "profiles"

    @property
    def safe_mode(self) -> Path:
        """The file that requests safe mode."""
        return self.directory / "safe-mode"

    @property
    def log(self) -> Path:
        """What the agents print."""
        return self.directory / "agent.log"

    def write(self, arm: Arm, engine: Path, pods: str) -> None:
        """Write all that an agent of this arm reads."""
        self.profiles.mkdir(parents=True, exist_ok=True)
        profile = self.profiles / "ladder.toml"
        for path, text in ((profile, arm.profile), (self.safe_mode, "ladder" * arm.is_stock)):
            path.unlink(missing_ok=True)
            if text:
                path.write_text(text)
        self.pods.write_text(pods)
        self.settings.write_text(to_toml(merged(self._settings(engine), arm.settings)))

    def _settings(self, engine: Path) -> Json:
        return {
            "run_directory": str(self.directory / "run"),
            "state_directory": str(self.directory / "state"),
            "scheduler": {"engine": str(engine), "start_deadline_s": 240.0},
            "safe_mode": {"file": str(self.safe_mode)},
            "pods": {"source": "file", "file": str(self.pods)},
            "profiles": {"directory": str(self.profiles)},
            "server": {"listen": ADDRESS},
        }


class Agent:
    """A running agent."""

    def __init__(
        self,
        process: "subprocess.Popen[str]",
        cgroup: Path,
        log: Path,
        address: str = ADDRESS,
    ) -> None:
        self.cgroup = cgroup
        self.address = address
        self._process = process
        self._log = log
        self._is_halted = False

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def has_ended(self) -> bool:
        """Whether its process has ended."""
        return self._process.poll() is not None

    @contextmanager
    def halted(self) -> Iterator[None]:
        """Stop the agent's process during the block. Meanwhile it gives no answer."""
        self._is_halted = True
        try:
            with halting(self.pid):
                yield
        finally:
            self._is_halted = False

    def ask(self, path: str) -> Any:  # noqa: ANN401 - JSON may say anything
        """Return the agent's answer, or an empty table while there is none."""
        if self._is_halted:
            return {}
        try:
            return json.loads(self.read(path))
        except (OSError, ValueError):
            return {}

    def read(self, path: str) -> str:
        """Return the text that the agent answers; raise OSError where it does not."""
        with urllib.request.urlopen(f"http://{self.address}{path}", timeout=ANSWER_S) as answer:
            text: str = answer.read().decode()
        return text

    def wait_for(self, mode: str) -> Json:
        """Wait until the agent is in *mode*. Return that observation, or raise NotInTime."""
        began, seen = time.monotonic(), {}
        while time.monotonic() - began < ENFORCING_S and self._process.poll() is None:
            seen = self.ask("/observe?top=1")
            if seen.get("mode") == mode:
                return dict(seen)
            time.sleep(ASK_S)
        told = {key: seen.get(key) for key in ("mode", "reason", "detail")}
        last = "\n".join(self._log.read_text(errors="replace").splitlines()[-LOG_LINES:])
        raise NotInTime(f"not {mode}: {told}, exit code {self._process.returncode}\n{last}")

    def plan_hash(self) -> str:
        """Return a hash of the engine's configuration, empty without one."""
        config = self.ask("/config")
        return hashed(json.dumps(config, sort_keys=True)) if config else ""

    def layers(self) -> dict[str, list[int]]:
        """Return the CPUs that each layer owns now."""
        return {each["name"]: each["cpus"] for each in self.ask("/observe?top=1").get("layers", [])}

    def wait_for_profile(self, pod: str, profile: str) -> None:
        """Wait until a pod has a profile, or raise NotInTime. A slow plugin is loaded late."""
        began, seen = time.monotonic(), ""
        while seen != profile:
            if time.monotonic() - began > ENFORCING_S or self._process.poll() is not None:
                raise NotInTime(f"{pod} has not the profile {profile}: {seen or 'none'}")
            time.sleep(ASK_S)
            seen = self.ask(f"/explain?pod={NAMESPACE}/{pod}").get("profile") or ""

    def is_demoted(self, pod: str) -> bool:
        """Return whether the plan demotes a layer of a pod."""
        places = self.ask(f"/explain?pod={NAMESPACE}/{pod}").get("places") or []
        return any(place["demoted"] for place in places)

    def layer_of(self, pod: str) -> dict[int, str]:
        """Return the layer of each thread of a pod, by the engine's record or else by the plan."""
        rows = self.ask(f"/explain?pod={NAMESPACE}/{pod}").get("threads") or []
        return {row["tid"]: row.get("layer") or row.get("expected_layer") or "" for row in rows}


@contextmanager
def agent_running(files: Files, temper: Path, cgroup: Path) -> Iterator[Agent]:
    """Run an agent in a cgroup. End it as an operator would, with SIGTERM."""
    command = [str(temper), "agent", "--settings", str(files.settings)]
    with running(cgroup, command, files.log) as process:
        try:
            yield Agent(process, cgroup, files.log)
        finally:
            process.terminate()
            process.wait(END_S)


def hashed(text: str) -> str:
    """Return the first twelve digits of a text's SHA-256, empty for no text."""
    return sha256(text.encode()).hexdigest()[:12] if text else ""


def merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> Json:
    """Return both tables as one, in which *above* wins."""
    tables = dict(below)
    for key, value in above.items():
        is_table = isinstance(value, Mapping) and isinstance(tables.get(key), Mapping)
        tables[key] = merged(tables[key], value) if is_table else value
    return tables


def to_toml(table: Mapping[str, Any], name: str = "") -> str:
    """Return nested tables of strings, numbers, booleans and lists as TOML."""
    values = [
        f"{key} = {json.dumps(value)}\n"
        for key, value in table.items()
        if not isinstance(value, Mapping)
    ]
    text = (f"[{name}]\n" if name else "") + "".join(values)
    for key, value in table.items():
        if isinstance(value, Mapping):
            text += "\n" + to_toml(value, f"{name}.{key}" if name else key)
    return text
