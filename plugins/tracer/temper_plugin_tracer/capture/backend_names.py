"""The names of the ways to record."""

from collections.abc import Mapping

AUTO = "auto"
NAMES = ("bpf", "tracefs", "bcc", "perfetto")
"""By the order of trying. tracefs is tried before bcc, which compiles for seconds."""
CHOICES = (AUTO, *NAMES)


def names_to_try(choice: str) -> tuple[str, ...]:
    """Return the backends that a *choice* allows, by the order of trying."""
    return NAMES if choice == AUTO else (choice,)


def reasons_in_words(refused: Mapping[str, str]) -> str:
    """Return in words why backends could not be used."""
    return "; ".join(f"{name}: {reason}" for name, reason in refused.items())
