"""`prer bench`: the cost of training, always compared with something else that does the same work."""
