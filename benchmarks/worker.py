"""Worker processes for cases that may crash or hang, with limits on time and memory."""

import json
import resource
import select
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

MEMORY = 4 << 30


class Worker:
    """A process that tries cases; it is restarted if a case kills or blocks it.

    Args:
        script: the script to run; called with --worker, it calls `answer`.
        first: a short case, to wait until everything is imported.
        seconds: time after which a case counts as hanging.
    """

    def __init__(self, script, first, seconds):
        self.script, self.first, self.seconds, self.process = Path(script).resolve(), first, seconds, None

    def tried(self, case):
        """The outcome of one case: result, message, seconds, and the worker's peak memory."""
        if self.process is None:
            command = [sys.executable, str(self.script), "--worker"]
            self.process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
            )
            self._ask(self.first, 120)
        return self._ask(case, self.seconds)

    def _ask(self, case, seconds):
        try:
            self.process.stdin.write(json.dumps(case) + "\n")
            self.process.stdin.flush()
            ready, _, _ = select.select([self.process.stdout], [], [], seconds)
            line = self.process.stdout.readline() if ready else ""
        except BrokenPipeError:  # it ended after its answer
            ready, line = True, ""
        if line:
            return json.loads(line)
        result = "crashes" if ready else "hangs"
        self.process.kill()
        said = f"exit {self.process.wait()}"
        self.process = None
        return [result, said, seconds, 0]

    def close(self):
        """End the process."""
        if self.process:
            self.process.stdin.close()
            self.process.wait()
            self.process.stdout.close()


def answer(judge):
    """In a worker: write the outcome of each case; an exception that `judge` does not expect becomes a traceback."""
    with open("/proc/self/statm") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
    for line in sys.stdin:
        start = time.perf_counter()
        try:
            result, said = judge(json.loads(line))
        except BaseException as error:
            result, said = "tracebacks", f"{type(error).__name__}: {error}"
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        print(json.dumps([result, said, time.perf_counter() - start, peak]), flush=True)


def shared(one, numbers, workers, make):
    """Call `one(worker, number)` for all numbers, with several workers."""

    def share(first):
        worker = make()
        for number in numbers[first::workers]:
            one(worker, number)
        worker.close()

    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(share, range(workers)))


def noted(table, what, result, seconds, peak):
    """Add the outcome of a case to the table of its kind."""
    table.update({what: 1, "distinct": 1, result: 1})
    table["slowest seconds"] = max(table["slowest seconds"], round(seconds, 3))
    table["peak MiB of a worker"] = max(table["peak MiB of a worker"], peak // 1024)
