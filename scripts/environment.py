"""Make .venv if it is missing or stale, install what is pinned, then run a command in it. Needs python3 and pip."""

import hashlib
import os
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
VENV = ROOT / ".venv"
BIN = VENV / ("Scripts" if os.name == "nt" else "bin")
STAMP = VENV / "installed"


def fingerprint() -> str:
    """What the environment was made from: when this changes, it is stale."""
    files = [ROOT / name for name in ("pyproject.toml", "constraints.txt", "setup.py")]
    files += sorted((ROOT / "prer" / "kernels" / "cpu").glob("*.[ch]"))  # the extension is built by the installation
    parts = [sys.version, *(file.read_text("utf-8") for file in files)]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def make() -> None:
    """A fresh environment; the stamp comes last, so that a broken installation is made again."""
    print("Setting up .venv (once; a few minutes, mostly the download of torch) ...", file=sys.stderr)
    STAMP.unlink(missing_ok=True)
    venv.create(VENV, clear=True, with_pip=True)
    pip = [str(BIN / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    constraints = ["--constraint", str(ROOT / "constraints.txt")]
    # torch first and by its exact version: a range may bring gigabytes of CUDA libraries to a machine without a GPU.
    torch = next(line for line in (ROOT / "constraints.txt").read_text().split() if line.startswith("torch=="))
    if (
        subprocess.run([*pip, torch]).returncode
        or subprocess.run([*pip, *constraints, "--editable", f"{ROOT}[dev]"]).returncode
    ):
        sys.exit("The installation failed; pip's message above says why. Mend it and call this again.")
    STAMP.write_text(fingerprint())


def main() -> None:
    """Run a command of the environment."""
    if sys.version_info < (3, 11):  # noqa: UP036, an older Python may well be the one that is called
        sys.exit(
            f"prer needs Python 3.11 or later, this is {sys.version.split()[0]}; try: PYTHON=python3.12 {sys.argv[1]}"
        )
    if not STAMP.exists() or STAMP.read_text() != fingerprint():
        make()
    command = [str(BIN / sys.argv[2]), *sys.argv[3:]]
    if os.name == "nt":
        sys.exit(subprocess.run(command).returncode)
    os.execv(command[0], command)


if __name__ == "__main__":
    main()
