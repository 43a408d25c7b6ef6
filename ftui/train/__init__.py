"""One training process."""
