"""Data sources: catalogue data sets, files and Python objects."""
