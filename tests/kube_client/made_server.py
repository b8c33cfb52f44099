"""An API server that says what a test wants: fleets of thousands, and what goes wrong."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

DROP = "drop"
"""An answer: the connection is closed without one, as load balancers do to those that rest."""


class MadeServer:
    """Keeps connections open; ``answers`` are functions of the query by path, or plain answers.

    An answer is a document, a pair of status and document, a list of events, or DROP. What is not
    there is a 404. ``asked`` are the requests as (method, path, query), ``bodies`` and ``headers``
    what came with them.
    """

    def __init__(self):
        self.answers, self.asked, self.bodies, self.headers = {}, [], [], []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_GET(self):
                outer.answer(self)

            def do_PATCH(self):
                outer.answer(self)

            def do_POST(self):
                outer.answer(self)

            def do_PUT(self):
                outer.answer(self)

            def do_DELETE(self):
                outer.answer(self)

            def log_message(self, *_):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def close(self):
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def answer(self, handler):
        parts = urlsplit(handler.path)
        query = {key: values[0] for key, values in parse_qs(parts.query).items()}
        self.asked.append((handler.command, parts.path, query))
        self.headers.append(dict(handler.headers))
        sent = handler.rfile.read(int(handler.headers.get("Content-Length", 0)))
        self.bodies.append(json.loads(sent) if sent else None)
        given = self.answers.get(parts.path, (404, {"kind": "Status", "message": "not found"}))
        given = given(query) if callable(given) else given
        if given == DROP:
            handler.close_connection = True
            return
        if isinstance(given, list):
            _send(handler, 200, "".join(json.dumps(each) + "\n" for each in given), {})
            handler.close_connection = True
            return
        status, document, *headers = given if isinstance(given, tuple) else (200, given)
        _send(handler, status, json.dumps(document), headers[0] if headers else {})


def _send(handler, status, text, headers):
    body = text.encode()
    handler.send_response_only(status)  # the headers are those of the answer alone
    for name, value in {"Content-Length": str(len(body)), **headers}.items():
        handler.send_header(name, value)
    handler.end_headers()
    handler.wfile.write(body)


def node(name, **annotations):
    told = {f"temper.codes/{key.replace('_', '-')}": value for key, value in annotations.items()}
    return {
        "metadata": {"name": name, "annotations": told, "resourceVersion": "5"},
        "status": {
            "nodeInfo": {"kernelVersion": "6.12.9"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def agent(on):
    return {
        "metadata": {"name": f"temper-agent-{on}", "namespace": "temper"},
        "spec": {"nodeName": on, "containers": [{"image": "registry.example/temper:1"}]},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
    }


def listed(*items, version="5"):
    return {"metadata": {"resourceVersion": version}, "items": list(items)}


def in_pages(items):
    """Return an answer that gives *items* page by page, as the API server does."""

    def page(query):
        begin, size = int(query.get("continue", 0)), int(query.get("limit", len(items)))
        more = {"continue": str(begin + size)} if begin + size < len(items) else {}
        return {"metadata": more, "items": items[begin : begin + size]}

    return page
