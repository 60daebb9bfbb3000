"""Networks with an axis of seeds."""
