"""Answers in the place of the engine's statistics: honestly, slowly, with garbage, or never."""

import socket
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Self

LINE_BYTES = 1 << 20
SLOW_S = 3.0


class StatsProxy:
    """Listens on *path* and passes on to the engine's socket *behind*, as told.

    Manners: ``honest``, ``slow`` (three seconds late), ``garbage``, ``hung``, ``cut`` (hangs up).
    """

    def __init__(self, path: Path, behind: Path) -> None:
        self._manner = "honest"
        self._path = path
        self._behind = behind
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen()

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._path.unlink(missing_ok=True)

    def behave(self, manner: str, for_s: float = 0.0) -> None:
        """Answer in that manner from now on; return after *for_s* seconds of it."""
        self._manner = manner
        time.sleep(for_s)

    def _accept(self) -> None:
        with suppress(OSError):  # it was closed
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with suppress(OSError), client, socket.socket(socket.AF_UNIX) as engine:
            engine.connect(str(self._behind))
            answers = engine.makefile("rb")
            for question in client.makefile("rb"):
                engine.sendall(question)
                if not self._answer(client, answers.readline(LINE_BYTES)):
                    return

    def _answer(self, client: socket.socket, line: bytes) -> bool:
        """Send what the manner makes of *line*; return whether the conversation goes on."""
        if self._manner == "hung":
            return True
        if self._manner == "slow":
            time.sleep(SLOW_S)
        client.sendall(b'{"errno": "no\xff' * 100 + b"\n" if self._manner == "garbage" else line)
        return self._manner != "cut"
