"""One experiment in one folder."""
