"""The HTTP endpoints."""

from collections.abc import Iterable
from importlib import resources
from typing import Any

from attrs import frozen

from temper_core import Answer, Endpoint, Request
from temper_plugin_run_delay.live import Live
from temper_plugin_run_delay.logs import Logs
from temper_plugin_run_delay.summaries import Summaries
from temper_plugin_run_delay.trial import Trials

NOT_FOUND = 404
ASSETS = {"page.js": "text/javascript", "page.css": "text/css"}
HTML = "text/html; charset=utf-8"
NAME = {"name": "The log, as GET /run-delay/logs names it."}
POD = {
    "type": "object",
    "required": ["pod", "seconds"],
    "properties": {"pod": {"type": "string"}, "seconds": {"type": "number"}},
}


@frozen
class Routes:
    """Maps paths to handlers. ``acts`` marks those that need the socket or a token."""

    live: Live
    logs: Logs
    summaries: Summaries
    trials: Trials

    def endpoints(self) -> Iterable[Endpoint]:
        """Return all of them."""
        yield from self._of_the_page()
        yield from self._of_logs()
        yield from self._of_summaries_and_trials()

    def _of_the_page(self) -> Iterable[Endpoint]:
        yield Endpoint("run-delay-page", "GET", "/", "The page.", _page, media_type=HTML)
        yield Endpoint(
            "run-delay-asset",
            "GET",
            "/run-delay/page/{file:path}",
            "Script and style of the page.",
            _asset,
            parameters={"file": "The name of the file."},
        )
        yield Endpoint(
            "run-delay-live",
            "GET",
            "/run-delay/live",
            "The run delay of each snapshot as it comes.",
            self._stream,
            media_type="text/event-stream",
        )

    def _of_logs(self) -> Iterable[Endpoint]:
        path = "/run-delay/logs/{name}"
        yield Endpoint("list-delay-logs", "GET", "/run-delay/logs", "All logs.", self._list)
        yield Endpoint(
            "get-delay-log", "GET", path, "A log, in whole or in part.", self._file, parameters=NAME
        )
        yield Endpoint(
            "drop-delay-log",
            "DELETE",
            path,
            "Remove a log.",
            self._drop,
            acts=True,
            parameters=NAME,
        )

    def _of_summaries_and_trials(self) -> Iterable[Endpoint]:
        summaries, trials = self.summaries, self.trials
        yield Endpoint(
            "summarize-delay-log",
            "POST",
            "/run-delay/logs/{name}/summary",
            "Summarize a log in a helper process.",
            summaries.begin,
            acts=True,
            parameters=NAME,
        )
        path, text = "/run-delay/summary", "The last summary."
        yield Endpoint("get-delay-summary", "GET", path, text, summaries.show)
        path, text = "/run-delay/trials", "Try the profile favoured on a pod."
        yield Endpoint("try-favoured", "POST", path, text, trials.begin, acts=True, body_schema=POD)
        text = "Release all trials of this plugin."
        yield Endpoint("release-favoured", "DELETE", path, text, trials.release, acts=True)

    def _stream(self, _request: Request) -> Answer:
        return Answer(media_type="text/event-stream", stream=self.live.events())

    def _list(self, _request: Request) -> Any:  # noqa: ANN401 - JSON
        return {"logs": self.logs.sizes()}

    def _file(self, request: Request) -> Answer:
        file = self.logs.file(request.query["name"])
        return Answer(file=file, media_type="application/jsonl")

    def _drop(self, request: Request) -> Answer:
        name = request.query["name"]
        if not self.logs.remove(name):
            return Answer(b'{"error": "there is no such log"}\n', status=NOT_FOUND)
        return Answer(b'{"removed": true}\n')


def _page(_request: Request) -> Answer:
    return Answer(_content("page.html"), HTML)


def _asset(request: Request) -> Answer:
    name = request.query["file"]
    if name not in ASSETS:
        return Answer(b'{"error": "there is no such file"}\n', status=NOT_FOUND)
    return Answer(_content(name), ASSETS[name], headers={"Cache-Control": "max-age=3600"})


def _content(name: str) -> bytes:
    return (resources.files("temper_plugin_run_delay") / "page" / name).read_bytes()
