"""How an endpoint reads the JSON body of a request."""

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
    """Fit a request's *body* to a *model*; a request without a body gets the model's defaults.

    Raises InputError, which is answered with 400, for what does not fit: *source* names the body,
    *example* is one in JSON.
    """
    if body is None:
        body = {}
    if not isinstance(body, dict):
        raise InputError(f"the body must be a JSON object such as {example}")
    try:
        return documents.fit(body, model, source=source)
    except RecursionError as error:
        raise DocumentError(source, ["is nested too deeply"]) from error
