"""p(z | t, y), from which the past is sampled."""
