"""`prer bench`: what training costs, always side by side with something else that does the same work."""
