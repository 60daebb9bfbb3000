"""Networks with a seed axis."""
