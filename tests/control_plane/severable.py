"""A way to the API server that can be cut: TCP from one port to another, and nothing else."""

import socket
import threading
from contextlib import suppress


class Severable:
    """Listens on ``port``; while it is cut nobody gets through, and whoever was is thrown out."""

    def __init__(self, host, port):
        self._target = (host, port)
        self._is_cut = False
        self._lock = threading.Lock()
        self._open = set()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.accepted = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self):
        with self._lock:
            self._is_cut = True
            ends = list(self._open)
        for end in ends:
            _shut(end)

    def mend(self):
        with self._lock:
            self._is_cut = False

    def close(self):
        _shut(self._listener)
        self._listener.close()
        self.cut()

    def _accept(self):
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            self.accepted += 1
            threading.Thread(target=self._carry, args=(near,), daemon=True).start()

    def _carry(self, near):
        with near:
            with self._lock:
                if self._is_cut:
                    return
            try:
                far = socket.create_connection(self._target, timeout=5)
            except OSError:
                return
            with far:
                far.settimeout(None)
                with self._lock:
                    self._open |= {near, far}
                    is_cut = self._is_cut
                if is_cut:
                    _shut(near)
                back = threading.Thread(target=_pump, args=(far, near), daemon=True)
                back.start()
                _pump(near, far)
                back.join()
                with self._lock:
                    self._open -= {near, far}


def _pump(source, target):
    with suppress(OSError):
        while data := source.recv(65_536):
            target.sendall(data)
    _shut(source)
    _shut(target)


def _shut(end):
    with suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
