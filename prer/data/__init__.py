"""Where data comes from: a name of the catalogue, or a file."""
