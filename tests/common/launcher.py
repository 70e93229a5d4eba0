"""Starts commands for grebe_cli.run and measures their memory. A program of its own, small and
without imports: a process inherits the peak of the one that forked it, and the tests' own is large.

Reads a line per command: JSON of {"args", "out", "err", "timeout"}; writes a line of
{"code", "peak_bytes"}; code is null when the command was killed for lasting too long.
"""

import json
import os
import signal
import sys


def run(job):
    pid = os.fork()
    if pid == 0:
        try:
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.dup2(os.open(job["out"], os.O_WRONLY | os.O_TRUNC), 1)
            os.dup2(os.open(job["err"], os.O_WRONLY | os.O_TRUNC), 2)
            os.execv(job["args"][0], job["args"])
        finally:
            os._exit(127)
    late = []

    def kill(*_):
        late.append(True)
        os.kill(pid, signal.SIGKILL)

    signal.signal(signal.SIGALRM, kill)
    signal.setitimer(signal.ITIMER_REAL, job["timeout"])
    _, status, usage = os.wait4(pid, 0)
    signal.setitimer(signal.ITIMER_REAL, 0)
    code = None if late else os.waitstatus_to_exitcode(status)
    return {"code": code, "peak_bytes": usage.ru_maxrss * 1024}


if __name__ == "__main__":
    for line in sys.stdin:
        print(json.dumps(run(json.loads(line))), flush=True)
