"""Streams: tasks that are learned one after another."""
