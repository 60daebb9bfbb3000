"""Trained learners: saved, loaded and queried."""
