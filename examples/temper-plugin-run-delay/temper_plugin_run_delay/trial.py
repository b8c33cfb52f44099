"""A trial of the profile ``favoured.toml``, whose threads get a CPU sooner."""

from importlib import resources
from typing import Any

from attrs import define, field

from temper_core import InputError, InstrumentContext, Request, Trial, parse_profile


@define
class Trials:
    """Tries the profile on pods, and releases every trial on close."""

    context: InstrumentContext
    _trials: list[Trial] = field(factory=list)

    def begin(self, request: Request) -> dict[str, Any]:
        """Begin a trial. The body is ``{"pod": "namespace/name", "seconds": 60}``."""
        body = request.json()
        match body:
            case {"pod": str(pod), "seconds": int() | float() as seconds}:
                file = resources.files("temper_plugin_run_delay") / "favoured.toml"
                profile = parse_profile(file.read_text(encoding="utf-8"), "favoured.toml")
                trial = self.context.try_profile(profile, [pod], seconds)
            case _:
                raise InputError('the body is {"pod": "namespace/name", "seconds": 60}')
        self._trials = [*self.active(), trial]
        return {"trial": trial.id}

    def active(self) -> list[Trial]:
        """Return the active trials."""
        return [trial for trial in self._trials if trial.is_active()]

    def release(self, _request: Request | None = None) -> dict[str, Any]:
        """Release all of them."""
        active = self.active()
        for trial in active:
            trial.release()
        return {"released": len(active)}
