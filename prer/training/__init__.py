"""A phase of training: its steps, its optimisers, its tensors."""
