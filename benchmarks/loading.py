"""Measure time and memory to load data from a warm disk: `prer.data.load` and making the stream.

    python benchmarks/loading.py mnist cifar10 PATH... --json benchmarks/records/loading.json

Each data set is loaded three times, in new processes. Memory is the peak above that of the imports, relative to the bytes
of the raw arrays. Linux only, because it reads /proc.
"""

import argparse
import json
import re
import subprocess
import sys
import time
from pathlib import Path

ROUNDS = 3


def kilobytes(key):
    return int(re.search(rf"{key}:\s+(\d+)", Path("/proc/self/status").read_text())[1])


def measure(data):
    from prer.streams.config import StreamConfig

    Path("/proc/self/clear_refs").write_text("5")  # reset the peak
    before, begin = kilobytes("VmRSS"), time.perf_counter()
    stream = StreamConfig(data=data, resplit=0.2).build()
    seconds = time.perf_counter() - begin
    x = stream[0].x
    peak = (kilobytes("VmHWM") - before) * 1024
    return {
        "seconds": seconds,
        "peak_over_raw": peak / x.nbytes,
        "raw_bytes": x.nbytes,
        "samples": len(x),
        "type": str(x.dtype),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", nargs="+")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--once", action="store_true", help="measure here and print JSON")
    options = parser.parse_args()
    if options.once:
        print(json.dumps(measure(options.data[0])))
        return
    from prer.runs.environment import environment

    found = {}
    for data in options.data:
        command = [sys.executable, __file__, data, "--once"]
        runs = [
            json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            for _ in range(ROUNDS + 1)
        ]
        found[Path(data).name] = {"rounds": runs[1:]}  # the first warms the disk
        worst = {key: max(run[key] for run in runs[1:]) for key in ("seconds", "peak_over_raw")}
        print(
            f"{Path(data).name:<12} {runs[0]['samples']:>7,} samples  at most {worst['seconds']:.2f} s  {worst['peak_over_raw']:.2f} x raw"
        )
    if options.json:
        names = " ".join(Path(data).name for data in options.data)
        record = {"command": f"python benchmarks/loading.py {names}", "environment": environment(), "data": found}
        options.json.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
