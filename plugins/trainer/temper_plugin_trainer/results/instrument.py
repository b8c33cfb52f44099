"""The trainer in the agent: it serves the trainings that run, and keeps the results of others."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from temper_core import Answer, Endpoint, InstrumentContext, OpenInstrument, Request
from temper_plugin_trainer.results.kept_results import LARGEST_RESULT_BYTES, KeptResults
from temper_plugin_trainer.results.runs_under_way import LARGEST_REPORT_BYTES, RunsUnderWay

NOT_FOUND = 404
RUN_PATH = "/training/runs/{id}"
RUN_PARAMETER = {"id": "The id that the run's command has chosen."}


class TrainingResults(OpenInstrument):
    """Serves runs and the newest results at ``/training``. It does nothing until it is asked."""

    def __init__(self, context: InstrumentContext) -> None:
        self._kept = KeptResults(context.state)
        self._kept.load()
        self._runs = RunsUnderWay()

    def endpoints(self) -> Iterable[Endpoint]:
        """Serve ``/training``, and the runs below it."""
        return (
            Endpoint(
                "get-training",
                "GET",
                "/training",
                "The trainings that run on this node, and the results of the newest ones.",
                self._document,
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
            Endpoint(
                "report-training",
                "PUT",
                RUN_PATH,
                "Tell how far a training is. The answer says whether it has to end.",
                self._report,
                acts=True,
                is_series=True,
                parameters=RUN_PARAMETER,
                largest_body_bytes=LARGEST_REPORT_BYTES,
            ),
            Endpoint(
                "abort-training",
                "DELETE",
                RUN_PATH,
                "Have a training end. It ends its trial and its benchmark within seconds.",
                self._abort,
                acts=True,
                parameters=RUN_PARAMETER,
            ),
        )

    def _document(self, _request: Request) -> Mapping[str, Any]:
        return {"running": list(self._runs.documents()), "results": list(self._kept.documents())}

    def _keep(self, request: Request) -> Mapping[str, Any]:
        self._kept.keep(request.json())
        return {"kept": True}

    def _report(self, request: Request) -> Mapping[str, Any]:
        return {"abort": self._runs.report(request.query["id"], request.json())}

    def _abort(self, request: Request) -> Mapping[str, Any] | Answer:
        if self._runs.abort(request.query["id"], str(request.requester)):
            return {"aborting": True}
        error = {"error": "no training of that id runs here"}
        return Answer(json.dumps(error).encode(), status=NOT_FOUND)
