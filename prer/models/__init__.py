"""A learner with what it has learned: saved, loaded, asked."""
