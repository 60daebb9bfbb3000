"""A page about runs, and its figures; reads run folders, and is never called by training."""
