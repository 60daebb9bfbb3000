"""One module for each file format; `data/files.py` chooses among them."""
