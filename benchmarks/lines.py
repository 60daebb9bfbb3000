"""Lines of Python by folder of the package at two commits.

python benchmarks/lines.py OLD NEW
"""

import subprocess
import sys
from collections import Counter


def git(*words):
    return subprocess.run(["git", *words], capture_output=True, text=True, check=True).stdout


def lines(commit):
    found = Counter()
    for file in git("ls-tree", "-r", "--name-only", commit, "prer").split():
        if file.endswith(".py"):
            _, folder, *rest = file.split("/")
            found[folder if rest else "top level"] += git("show", f"{commit}:{file}").count("\n")
    return found


if __name__ == "__main__":
    old, new = map(lines, sys.argv[1:])
    for folder in sorted({*old, *new}):
        print(f"{folder:12} {old[folder]:6} {new[folder]:6}")
    print(f"{'all':12} {old.total():6} {new.total():6}")
