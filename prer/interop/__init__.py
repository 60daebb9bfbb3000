"""Export to other tools: scalars of runs, for experiment trackers."""
