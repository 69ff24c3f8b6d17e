"""A small process that ends worker processes when their driver has died, with all that they have started.

Workers cannot do that themselves: a call in compiled code may hold the interpreter, and a parent-death signal would
reach the worker but not the simulators that it has started. The file runs by itself, so it imports the standard library
only.
"""

import atexit
import contextlib
import os
import select
import signal
import sys
import threading

MARK = "BASQ_WORKER"
"""Environment variable that a worker hands down to whatever it starts, also to what has a session of its own."""
ROUNDS = 10
"""Times that processes are looked for: they may start others while they are ended."""
LOOK = 1.0
"""Seconds between two looks at whether the driver lives: a process that it has forked may hold the pipe."""


def end(pid: int, mark: str) -> None:
    """Kill a worker process, dead or alive, and whatever it has started.

    The number of a dead one may be another's by now; but not that of its group, while one of its processes lives.
    """
    for _ in range(ROUNDS):
        found = _family(mark) - {os.getpid()}
        if not found:
            break
        for other in found:
            kill(other)
    if hasattr(os, "killpg"):
        with contextlib.suppress(ProcessLookupError, PermissionError):  # nothing left, or too young to have a group
            os.killpg(pid, signal.SIGKILL)


def kill(pid: int) -> None:
    """Kill one process that may have ended."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, getattr(signal, "SIGKILL", signal.SIGTERM))


def _family(mark: str) -> set[int]:
    """Processes that have the mark, or descend from one that has it; nobody where there is no /proc."""
    parents, found, wanted = {}, set(), f"\0{MARK}={mark}\0".encode()
    for name in os.listdir("/proc") if os.path.isdir("/proc/self") else ():
        if name.isdigit():
            with contextlib.suppress(OSError):  # it has ended, or is somebody else's
                state, parent = _read(f"/proc/{name}/stat").rpartition(b")")[2].split()[:2]
                if state not in (b"Z", b"X"):
                    parents[int(name)] = int(parent)
                    if wanted in b"\0" + _read(f"/proc/{name}/environ"):
                        found.add(int(name))
    while children := {child for child, parent in parents.items() if parent in found} - found:
        found |= children
    return found


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


# --- in the driver ----------------------------------------------------------------------------------------------------


class Guard:
    """The driver's end of the pipe to its guard, which is started with the first worker."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pipe: int | None = None
        self._pid = 0
        self._workers: dict[int, str] = {}

    def watch(self, pid: int, mark: str) -> None:
        """End this worker if this process dies."""
        with self._lock:
            self._workers[pid] = mark
            self._tell(f"+{pid} {mark}\n")

    def forget(self, pid: int) -> None:
        """It has ended."""
        with self._lock:
            if self._workers.pop(pid, None) is not None:
                self._tell(f"-{pid} -\n")

    def _tell(self, line: str) -> None:
        if not hasattr(os, "posix_spawn"):
            return
        try:
            if self._pipe is not None:
                os.write(self._pipe, line.encode())
                return
        except BrokenPipeError:  # somebody has killed it
            self.close()
        self._start()

    def _start(self) -> None:
        theirs, self._pipe = os.pipe()
        command = [sys.executable, "-I", "-S", __file__]
        file_actions = [(os.POSIX_SPAWN_DUP2, theirs, 0)]
        self._pid = os.posix_spawn(sys.executable, command, os.environ, file_actions=file_actions, setpgroup=0)
        os.close(theirs)
        os.write(self._pipe, "".join(f"+{pid} {mark}\n" for pid, mark in self._workers.items()).encode())

    def close(self) -> None:
        """Let it end; it has nobody to guard any more, or is started again."""
        if self._pipe is not None:
            os.close(self._pipe)
            self._pipe = None
            with contextlib.suppress(ChildProcessError):
                os.waitpid(self._pid, 0)

    def leave(self) -> None:
        """In a forked child: the workers are its parent's, and so is their guard."""
        self._lock = threading.Lock()
        self._workers.clear()
        if self._pipe is not None:
            os.close(self._pipe)
            self._pipe = None


# --- in the guard -----------------------------------------------------------------------------------------------------


def keep_watch() -> None:
    """Read which workers there are until the driver has died, and end those that are left."""
    driver, text = os.getppid(), b""
    while os.getppid() == driver:
        if select.select([0], [], [], LOOK)[0]:
            new = os.read(0, 1 << 16)
            if not new:
                break
            text += new
    workers: dict[int, str] = {}
    for line in text.decode().splitlines():
        number, mark = line[1:].split()
        workers[int(number)] = mark
        if line[0] == "-":
            del workers[int(number)]
    for pid, mark in workers.items():
        end(pid, mark)


if __name__ == "__main__":
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)  # those are the driver's to handle
    keep_watch()
else:
    guard = Guard()
    atexit.register(guard.close)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=guard.leave)
