"""What other tools are given: scalars of runs, for trackers of experiments."""
