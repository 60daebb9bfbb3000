#!/bin/sh
# Wall and CPU time of the fast tests of two checkouts, one after the other.
#
#   benchmarks/test_times.sh OLD NEW
#
# Both need an environment (.venv, made by scripts/test) and their C extension. Nothing else may run on the machine.
export OMP_NUM_THREADS=1
for checkout in "$@"; do
    cd "$checkout" || exit 1
    dist=$(grep -o -- "--dist loadfile" scripts/test)
    echo "== $(git describe --always --abbrev=12), pytest -n 2 $dist -m 'not slow' --cov=prer"
    # shellcheck disable=SC2086
    (time .venv/bin/python -m pytest -n 2 $dist -q -m "not slow" --cov=prer --cov-report=) 2>&1 | tail -6
    cd - > /dev/null || exit 1
done
