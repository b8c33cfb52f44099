"""kubectl as a child process: it knows the cluster, the user and how to reach a container."""

import json
import re
import resource
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import IO, Any

from attrs import frozen

from temper_core import InputError, MachineError

PROGRAM = "kubectl"
LARGEST_ANSWER_BYTES = 16 << 20
LARGEST_FILE_BYTES = LARGEST_ANSWER_BYTES + 1
"""So that an answer that is too large is known as such."""
PIECE_BYTES = 256 * 1024
ENDS_WITHIN_S = 20.0
"""Seconds in which kubectl ends after the end of its input."""
USAGE_ERROR = 2
"""The exit code of ``temper`` for input that is refused."""
_EPILOGUE = re.compile(r"^(command terminated with exit code [0-9]+|error: exit status [0-9]+)$")
"""The text that kubectl adds to the error of the command that it ran."""


@frozen
class Kubectl:
    """kubectl with the options of a cluster. Empty ones are kubectl's own choice."""

    kubeconfig: str = ""
    context: str = ""

    def read(self, *words: str) -> Any:  # noqa: ANN401 - any JSON
        """Return the JSON that ``kubectl get`` prints.

        Names that an API server told follow the word ``--``: others could be options.
        Raises InputError if the object does not exist, MachineError if kubectl fails otherwise.
        """
        command = [*self._command(), "get", "--output=json", *words]
        run = subprocess.run(command, capture_output=True, check=False)  # noqa: S603 - no shell
        if run.returncode:
            message = _message(run.stderr)
            raise InputError(message) if "(NotFound)" in message else MachineError(message)
        return parsed(run.stdout, "kubectl")

    def exec_words(
        self, namespace: str, pod: str, words: Sequence[str], *, takes_input: bool = False
    ) -> list[str]:
        """Return the command that runs *words* in the first container of *pod*."""
        options = [f"--namespace={namespace}", *(["--stdin"] if takes_input else [])]
        return [*self._command(), "exec", *options, pod, "--", *words]

    def _command(self) -> list[str]:
        program = shutil.which(PROGRAM)
        if program is None:
            raise MachineError(f"{PROGRAM} is not on the PATH")
        options = {"--kubeconfig": self.kubeconfig, "--context": self.context}
        return [program, *(f"{option}={value}" for option, value in options.items() if value)]


@frozen
class AgentPod:
    """The pod of an agent, in whose container ``temper`` runs."""

    kubectl: Kubectl
    namespace: str
    name: str

    def ask(self, *words: str) -> Any:  # noqa: ANN401 - any JSON
        """Run ``temper`` in the pod and return the JSON that it prints. Raise as ``finish``."""
        with self.begin(*words) as command:
            command.process.wait()
            return command.finish()

    @contextmanager
    def begin(self, *words: str) -> Iterator["RemoteCommand"]:
        """Start ``temper`` in the pod. At the end of the block kubectl is killed if it still runs.

        kubectl has a session of its own, so that Ctrl-C does not reach it.
        """
        with (
            tempfile.TemporaryFile() as output,
            tempfile.TemporaryFile() as errors,
            self._started(words, output, errors, start_new_session=True) as process,
        ):
            try:
                yield RemoteCommand(self.name, process, output, errors)
            finally:
                process.kill()

    @contextmanager
    def converse(self, *words: str) -> Iterator["Conversation"]:
        """Start ``temper`` in the pod, to write to it and to read from it.

        Its standard input is closed at the end of the block. kubectl then has some seconds to end.
        It has a session of its own, so that Ctrl-C does not reach it.
        """
        command = self.kubectl.exec_words(
            self.namespace, self.name, ("temper", *words), takes_input=True
        )
        with (
            tempfile.TemporaryFile() as errors,
            _begun(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                start_new_session=True,
            ) as process,
        ):
            try:
                yield Conversation(self.name, process, errors)
            finally:
                _end(process)

    def copy(self, words: Sequence[str], write: Callable[[bytes], object]) -> int:
        """Pass what ``temper`` prints in the pod to *write*, and return its size.

        A connection that breaks off ends it early. Raises as ``RemoteCommand.finish`` if nothing
        was printed.
        """
        size = 0
        with (
            tempfile.TemporaryFile() as errors,
            self._started(words, subprocess.PIPE, errors) as process,
        ):
            try:
                for piece in iter(partial(process.stdout.read, PIECE_BYTES), b""):  # type: ignore[union-attr]  # PIPE
                    write(piece)
                    size += len(piece)
            except BaseException:
                process.kill()
                raise
            process.wait()
            if not size:
                raise _failure(self.name, process.returncode, errors)
        return size

    def _started(
        self,
        words: Sequence[str],
        output: IO[bytes] | int,
        errors: IO[bytes],
        *,
        start_new_session: bool = False,
    ) -> "subprocess.Popen[bytes]":
        return _begun(
            self.kubectl.exec_words(self.namespace, self.name, ("temper", *words)),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=errors,
            start_new_session=start_new_session,
        )


@frozen
class RemoteCommand:
    """A ``temper`` command that runs in the pod *pod*."""

    pod: str
    process: "subprocess.Popen[bytes]"
    output: IO[bytes]
    errors: IO[bytes]

    def finish(self) -> Any:  # noqa: ANN401 - any JSON
        """Return the JSON that the ended command has printed.

        Raises InputError if ``temper`` refused its input, MachineError if it or kubectl failed.
        """
        if self.process.returncode:
            raise _failure(self.pod, self.process.returncode, self.errors)
        return parsed(_content(self.output), self.pod)


@frozen
class Conversation:
    """A ``temper`` command in the pod *pod* with open standard input and output."""

    pod: str
    process: "subprocess.Popen[bytes]"
    errors: IO[bytes]

    def failure(self) -> InputError | MachineError:
        """Wait a moment for the end of the command, and return why it ended."""
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(ENDS_WITHIN_S)
        return _failure(self.pod, self.process.poll() or 0, self.errors)


def parsed(content: bytes, source: str) -> Any:  # noqa: ANN401 - any JSON
    """Return the JSON of *content*. Raise MachineError if it is none, or too large."""
    if len(content) > LARGEST_ANSWER_BYTES:
        raise MachineError(f"{source} answers with more than {LARGEST_ANSWER_BYTES >> 20} MiB")
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        raise MachineError(f"{source} answers with no JSON: {error}") from error


def _begun(command: Sequence[str], **options: Any) -> "subprocess.Popen[bytes]":  # noqa: ANN401 - of Popen
    """Start *command*, whose files may have ``LARGEST_FILE_BYTES``: a container may never stop."""
    process: subprocess.Popen[bytes] = subprocess.Popen(command, **options)  # noqa: S603 - no shell
    with suppress(OSError):  # it has ended
        bound = LARGEST_FILE_BYTES, LARGEST_FILE_BYTES
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, bound)
    return process


def _end(process: "subprocess.Popen[bytes]") -> None:
    with suppress(OSError):
        process.stdin.close()  # type: ignore[union-attr]  # PIPE
    try:
        process.wait(ENDS_WITHIN_S)
    except subprocess.TimeoutExpired:
        process.kill()


def _failure(pod: str, code: int, errors: IO[bytes]) -> InputError | MachineError:
    message = f"{pod}: {_message(_content(errors))}"
    return InputError(message) if code == USAGE_ERROR else MachineError(message)


def _content(file: IO[bytes]) -> bytes:
    file.seek(0)
    return file.read(LARGEST_ANSWER_BYTES + 1)


def _message(errors: bytes) -> str:
    """Return the last line of an error, without what kubectl adds to it."""
    lines = [line.strip() for line in errors.decode(errors="replace").splitlines()]
    messages = [line for line in lines if line and not _EPILOGUE.match(line)]
    return messages[-1].removeprefix("temper: ") if messages else "failed without a message"
