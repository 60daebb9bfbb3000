"""`python -m prer.cli.worker` is `prer run` as an engine starts it: it ends when its parent process ends."""

import os
import signal
import sys
import threading

from prer.cli.main import main


def end_with_parent() -> None:
    """Wait until the parent closes standard input or dies; then send this process SIGTERM, which saves the run."""
    os.read(sys.stdin.fileno(), 1)
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    threading.Thread(target=end_with_parent, daemon=True).start()
    main(["run", *sys.argv[1:]])
