#!/bin/sh
# Support tickets whose intents arrive week by week: from CSV files to a model that is taught on, and to a page that
# compares it with other methods. Needs the extra: pip install 'prer[text]'
#
#     examples/tickets.sh [FOLDER]        works in FOLDER, by default a new temporary one
#
# It takes about two minutes on two cores.
set -eu
tickets=$(cd "$(dirname "$0")/tickets" && pwd)
folder=${1:-$(mktemp -d)}
mkdir -p "$folder"
cd "$folder"

# The first week names the column of texts and the network that turns them into vectors; the model remembers both.
prer teach intents "$tickets/week-1.csv" stream.text=text stream.features=minilm --quiet
prer teach intents "$tickets/week-2.csv" --quiet # week-1.csv is not needed any more
prer teach intents "$tickets/week-3.csv" --quiet
prer score intents "$tickets/test.csv"
prer show intents

printf 'text\n"Somebody took my wallet, and the card was in it."\n"How old must my daughter be to open an account?"\n' >new.csv
prer predict intents new.csv

# Is another method better on this data? The same tickets as one file, and a page to send.
{ cat "$tickets/week-1.csv"; tail -qn +2 "$tickets/week-2.csv" "$tickets/week-3.csv"; } >all.csv
prer compare all.csv stream.text=text stream.features=minilm stream.classes_per_task=4 --out runs
prer report runs -o tickets.html
