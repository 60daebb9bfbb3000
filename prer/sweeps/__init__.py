"""Many runs on an engine."""
