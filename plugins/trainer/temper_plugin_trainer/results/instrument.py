"""The trainer in the agent: it keeps the results of trainings, and serves them."""

from collections.abc import Iterable, Mapping
from typing import Any

from temper_core import Endpoint, InstrumentContext, OpenInstrument, Request
from temper_plugin_trainer.results.kept_results import LARGEST_RESULT_BYTES, KeptResults


class TrainingResults(OpenInstrument):
    """Serves the newest results at ``/training``. It does nothing until it is asked."""

    def __init__(self, context: InstrumentContext) -> None:
        self._kept = KeptResults(context.state)
        self._kept.load()

    def endpoints(self) -> Iterable[Endpoint]:
        """Serve ``/training``."""
        return (
            Endpoint(
                "get-training",
                "GET",
                "/training",
                "The results of the newest trainings on this node.",
                lambda _: {"results": list(self._kept.documents())},
            ),
            Endpoint(
                "keep-training",
                "PUT",
                "/training",
                "Keep the result of a training, to be shown.",
                self._keep,
                acts=True,
                largest_body_bytes=LARGEST_RESULT_BYTES,
            ),
        )

    def _keep(self, request: Request) -> Mapping[str, Any]:
        self._kept.keep(request.json())
        return {"kept": True}
