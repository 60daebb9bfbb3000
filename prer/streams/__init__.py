"""Tasks in order: what is learned, one after another."""
