"""The controllers of objects."""

from temper_core.observed import Row, rows, table, text


def controller_uid(item: Row) -> str | None:
    """Return the uid of the controller of *item*. None without one, or if the uid is not known.

    A name would also be that of an object of another kind, or of one that was deleted.
    """
    owners = rows(table(item, "metadata"), "ownerReferences")
    controllers = (each for each in owners if each.get("controller") is True)
    return next((text(each, "uid") for each in controllers), "") or None
