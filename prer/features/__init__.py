"""Frozen networks that turn images and texts into vectors."""
