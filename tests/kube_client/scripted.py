"""An API server that answers what it is told to: things that the real one seldom says."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

from temper_kube.access import Access


class Scripted:
    """Gives the answers to lists and watches in their order, the last of them again and again.

    A list is (status, headers, document), a watch (status, headers, lines); after the last line a
    watch ends, or waits where that is ``HANG``, or sends a blank now and then where it is
    ``TRICKLE``. ``asked`` are the queries.
    """

    HANG, TRICKLE = "hang", "trickle"

    def __init__(self):
        self.lists, self.watches, self.asked = [], [], []
        self.hanging = threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                outer.answer(self)

            def log_message(self, *_):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        self.access = Access("127.0.0.1", self._server.server_port, is_tls=False)

    def close(self):
        self.hanging.set()
        self._server.shutdown()
        self._server.server_close()

    def answer(self, handler):
        query = {key: values[0] for key, values in parse_qs(urlsplit(handler.path).query).items()}
        self.asked.append(query)
        answers = self.watches if "watch" in query else self.lists
        status, headers, body = answers.pop(0) if len(answers) > 1 else answers[0]
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name, value)
        handler.end_headers()
        for line in body if isinstance(body, list) else [body]:
            if line == self.HANG:
                self.hanging.wait(30)
                return
            while line == self.TRICKLE:
                handler.wfile.write(b" ")
                if self.hanging.wait(0.02):
                    return
            text = line if isinstance(line, str) else json.dumps(line)
            handler.wfile.write(text.encode() + b"\n")
            handler.wfile.flush()


def listing(*names, version="10", more=""):
    items = [item(name) for name in names]
    metadata = {"resourceVersion": version, **({"continue": more} if more else {})}
    return 200, {}, {"kind": "PodList", "metadata": metadata, "items": items}


def item(name, version="11"):
    return {"kind": "Pod", "metadata": {"name": name, "uid": name, "resourceVersion": version}}


def event(kind, name, version="11"):
    return {"type": kind, "object": item(name, version)}


def bookmark(version):
    return {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": version}}}


def failure(code, message, **details):
    status = {"kind": "Status", "code": code, "message": message, "details": details}
    return {"type": "ERROR", "object": status}


def refusal(status, message, **headers):
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return status, named, {"kind": "Status", "code": status, "message": message}
