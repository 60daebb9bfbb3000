#!/bin/sh
# A model that lives: three lessons on three days, each in a process of its own, and the data of a day is deleted before
# the next one begins. First with tables, then with folders of images. At the end the same lessons are taught in one
# process, to show that nothing is lost by stopping: both models have learned the same, bit for bit.
#
#     examples/lessons.sh [FOLDER]        works in FOLDER, by default a new temporary one
set -eu
PYTHON=${PYTHON:-python3}
cd "${1:-$(mktemp -d)}"
"$PYTHON" - <<'END'  # the digits of scikit-learn, as somebody's tables and images
from pathlib import Path

import numpy as np
from PIL import Image
from sklearn.datasets import load_digits

digits, test = load_digits(), np.random.default_rng(0).random(1797) < 0.2
days = {"monday": (0, 1, 2, 3), "tuesday": (4, 5, 6), "wednesday": (7, 8, 9), "test": range(10)}
for day, classes in days.items():
    rows = np.flatnonzero(np.isin(digits.target, classes) & (test if day == "test" else ~test))
    header = [f"pixel{i}" for i in range(64)] + ["digit"]
    lines = [[f"{value:g}" for value in digits.data[row]] + [f"digit {digits.target[row]}"] for row in rows]
    for copy in ("", "copy-"):  # the copies are for the comparison at the end
        Path(f"{copy}{day}.csv").write_text("\n".join(map(",".join, [header, *lines])) + "\n")
        for row in rows:
            folder = Path(f"{copy}{day}", f"digit {digits.target[row]}")
            folder.mkdir(parents=True, exist_ok=True)
            Image.fromarray((digits.images[row] * 15).astype(np.uint8)).save(folder / f"{row}.png")
END

for kind in .csv ""; do
    model="digits$kind.model"
    for day in monday tuesday wednesday; do
        prer teach "$model" "$day$kind" --quiet
        rm -r "$day$kind" # the data of the day is gone
    done
    prer score "$model" "test$kind"
    prer show "$model"

    "$PYTHON" - "$model" "$kind" <<'END'  # the same lessons in one process
import sys
from pathlib import Path

import prer
from prer.data.files import read

model, kind = sys.argv[1:]
once = prer.ContinualClassifier()
for day in ("monday", "tuesday", "wednesday"):
    data = read(Path(f"copy-{day}{kind}"))
    once.partial_fit(data.x, data.y)
stopped = prer.load(model)
print("in three processes:", stopped.state_digest_)
print("in one process:    ", once.state_digest_)
assert stopped.state_digest_ == once.state_digest_
END
done
