"""Threads that work when they are told to, and rest otherwise: a program, run by ``crews.py``.

``crew.py NAME THREADS TIMES MS [BIRTHS]``: a line on stdin lets each of the threads work TIMES
times for MS of CPU time, with naps between, and BIRTHS processes be born and die meanwhile; a line
on stdout says that all rest again. With 0 times the threads never rest, and nothing is said.
"""

import os
import sys
import threading
import time
from pathlib import Path

NAP_S = 0.001


class Worker(threading.Thread):
    """One thread of the crew."""

    def __init__(self, name, times, seconds):
        super().__init__(daemon=True)
        self.call, self.done = threading.Semaphore(0), threading.Semaphore(0)
        self._comm, self._times, self._seconds = name, times, seconds

    def run(self):
        rename(self._comm)
        self.done.release()
        while self.call.acquire():
            for _ in range(self._times):
                work(self._seconds)
                time.sleep(NAP_S)
            self.done.release()
            while not self._times:
                pass


def say(word):
    sys.stdout.write(f"{word}\n")
    sys.stdout.flush()


def rename(name):
    Path("/proc/thread-self/comm").write_text(name)


def work(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def be_born_and_die(seconds):
    child = os.fork()
    if child == 0:
        work(seconds)
        os._exit(0)
    os.waitpid(child, 0)


def main():
    name, threads, times, milliseconds, *births = sys.argv[1:]
    seconds = int(milliseconds) / 1000
    rename(name)
    workers = [Worker(f"{name}-{n}", int(times), seconds) for n in range(int(threads))]
    for worker in workers:
        worker.start()
        worker.done.acquire()
    say("up")
    for _ in sys.stdin:
        for worker in workers:
            worker.call.release()
        for _ in range(int(births[0]) if births else 0):
            be_born_and_die(seconds)
        for worker in workers:
            worker.done.acquire()
        say("rest")


main()
