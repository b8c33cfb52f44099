"""The newest results of trainings, in the state directory of the instrument."""

import json
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from attrs import asdict, define, field, frozen

from temper_core import StateDirectory, TemperError, fit_body, parse_json, read_text
from temper_plugin_trainer.results.training_result import TrainingResult

MOST_KEPT = 32
PREFIX = "result-"
KIB = 1024
LARGEST_RESULT_BYTES = 256 * KIB
SOURCE = "body"
EXAMPLE = "the result.json of a training"


@frozen
class KeptResult:
    """A result, and when it was received, in seconds since 1970."""

    at: float
    result: TrainingResult


@define
class KeptResults:
    """The newest results, at most ``MOST_KEPT``. Any thread may call every method."""

    state: StateDirectory
    _results: dict[str, KeptResult] = field(factory=dict, init=False)
    _lock: threading.Lock = field(factory=threading.Lock, init=False)

    def load(self) -> None:
        """Read what an earlier agent has kept. A file that does not fit is left out."""
        if not self.state.used_bytes():
            return
        for path in self.state.path.glob(f"{PREFIX}*.json"):
            if (kept := _read(path)) is not None:
                self._results[path.name] = kept

    def keep(self, document: object) -> None:
        """Keep the result in *document*, and forget the oldest ones.

        A result that is kept already keeps its time. Raises InputError if the document is none,
        and MachineError if it cannot be written.
        """
        import hashlib  # noqa: PLC0415 - 0.7 MB in every agent, and results are rare

        result = fit_body(document, TrainingResult, source=SOURCE, example=EXAMPLE)
        content = json.dumps(asdict(result))
        name = f"{PREFIX}{hashlib.sha256(content.encode()).hexdigest()[:16]}.json"
        with self._lock:
            if name in self._results:
                return
            kept = KeptResult(time.time(), result)
            self.state.write(name, json.dumps(asdict(kept)).encode())
            self._results[name] = kept
            for oldest in self._newest_first()[MOST_KEPT:]:
                del self._results[oldest]
                (self.state.path / oldest).unlink(missing_ok=True)

    def documents(self) -> Iterator[Mapping[str, Any]]:
        """Yield the results, the newest first."""
        with self._lock:
            kept = [self._results[name] for name in self._newest_first()]
        for each in kept:
            yield {"at": each.at, **asdict(each.result)}

    def _newest_first(self) -> list[str]:
        """Return the names of the files. A time to come counts as the oldest.

        The clock was ahead then, and would be so for each result that comes until that time.
        """
        now = time.time()
        times = {name: kept.at for name, kept in self._results.items()}
        return sorted(times, key=lambda name: times[name] if times[name] <= now else 0.0)[::-1]


def _read(path: Path) -> KeptResult | None:
    try:
        document = parse_json(read_text(path), source=str(path))
        return fit_body(document, KeptResult, source=str(path), example=EXAMPLE)
    except TemperError:
        return None
