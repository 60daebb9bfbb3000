"""The commands, one file for each group: thin and typed. Only commands that need torch import it."""
