"""The declaration of a setting, and units that several bounds use."""

from typing import Any

from attrs import field

from temper_core.documents import FORM

MILLISECOND_US = 1_000
SECOND_US = 1_000_000


def setting(default: Any, help: str, *, form: str = "", **options: Any) -> Any:  # noqa: A002, ANN401 - attrs' own way
    """Declare one setting with its default, and a sentence with unit and reason.

    *form* says what the pattern of ``matches_re`` allows: ``must be <form>, not 'x'``.
    """
    forms = {FORM: form} if form else {}
    return field(default=default, metadata={"help": help, **forms}, **options)
