"""Worker processes for what may crash, hang or fall over: each case is tried in one, within its time and its memory."""

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
    """A process that tries cases, started anew when one has killed or stopped it.

    Args:
        script: which, called with --worker, calls `answer`.
        first: a case that is soon done with, to wait until everything is imported.
        seconds: after which a case hangs.
    """

    def __init__(self, script, first, seconds):
        self.script, self.first, self.seconds, self.process = Path(script).resolve(), first, seconds, None

    def tried(self, case):
        """What became of one case: result, what was said, seconds, and the worker's peak of memory."""
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
        except BrokenPipeError:  # it was gone after it had answered
            ready, line = True, ""
        if line:
            return json.loads(line)
        result = "crashes" if ready else "hangs"
        self.process.kill()
        said = f"exit {self.process.wait()}"
        self.process = None
        return [result, said, seconds, 0]

    def close(self):
        """Let it end."""
        if self.process:
            self.process.stdin.close()
            self.process.wait()
            self.process.stdout.close()


def answer(judge):
    """Within a worker: say of one case after the other what became of it; what `judge` does not expect is a traceback."""
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
    """Do `one(worker, number)` for all numbers, by so many workers."""

    def share(first):
        worker = make()
        for number in numbers[first::workers]:
            one(worker, number)
        worker.close()

    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(share, range(workers)))


def noted(table, what, result, seconds, peak):
    """Note in a kind's table what became of a case."""
    table.update({what: 1, "distinct": 1, result: 1})
    table["slowest seconds"] = max(table["slowest seconds"], round(seconds, 3))
    table["peak MiB of a worker"] = max(table["peak MiB of a worker"], peak // 1024)
