"""The options for what profiles depend on besides pods and metrics."""

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import click
from attrs import frozen

from temper_plugin_power.workloads.profile_files import ProfileFiles, read_profile_files
from temper_plugin_power.workloads.profiling import ProfilingChoices


@frozen
class ProfilingQuestion:
    """The values of the options."""

    derives_class: bool = False
    thread_profiles: Path | None = None

    def read(self) -> ProfileFiles:
        """Return the thread profiles. Raises DocumentError if they cannot be listed."""
        if self.thread_profiles is None:
            return ProfileFiles()
        return read_profile_files(self.thread_profiles)

    def choices(self, files: ProfileFiles) -> ProfilingChoices:
        """Return the choices, with the thread profiles of *files*."""
        return ProfilingChoices(derives_class=self.derives_class, thread_profiles=files.profiles)


OPTIONS = {
    "derives_class": click.option(
        "--derive-class",
        "derives_class",
        is_flag=True,
        help="Workloads without a class that drive CPU or GPU hard are of class performance.",
    ),
    "thread_profiles": click.option(
        "--thread-profiles",
        type=click.Path(path_type=Path, exists=True, file_okay=False),
        metavar="DIRECTORY",
        help="Thread profiles (TOML). Their [traits] are hints of the pods that they are for.",
    ),
}
"""The options by the fields of ProfilingQuestion."""


def profiling_options(command: Callable[..., int]) -> Callable[..., int]:
    """Give *command* these options, as its argument ``profiling``."""

    @wraps(command)
    def choosing(**given: Any) -> int:  # noqa: ANN401 - click's own
        question = ProfilingQuestion(**{name: given.pop(name) for name in OPTIONS})
        return command(profiling=question, **given)

    decorated: Callable[..., int] = choosing
    for option in reversed(OPTIONS.values()):
        decorated = option(decorated)
    return decorated
