"""The version, where it can be read without importing anything else."""

__version__ = "0.2.0"
