"""Reads the JSON body of a request."""

from typing import Any, TypeVar

from temper_core import documents
from temper_core.errors import DocumentError, InputError

Model = TypeVar("Model")


def fit_body(
    body: Any,  # noqa: ANN401 - JSON
    model: type[Model],
    *,
    source: str,
    example: str,
) -> Model:
    """Fit a request's *body* to a *model*. A request without a body gets the model's defaults.

    Raises InputError, which is answered with 400, if the body does not fit. The message names the
    body by *source* and has *example*, a JSON body that fits.
    """
    if body is None:
        body = {}
    if not isinstance(body, dict):
        raise InputError(f"the body must be a JSON object such as {example}")
    try:
        return documents.fit(body, model, source=source)
    except RecursionError as error:
        raise DocumentError(source, ["is nested too deeply"]) from error
