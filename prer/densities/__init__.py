"""Densities p(z | t, y) of the embeddings, from which the past is sampled."""
