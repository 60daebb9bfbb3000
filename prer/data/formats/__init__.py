"""One file format, one file; `data/files.py` chooses among them."""
