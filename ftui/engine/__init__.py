"""Supervisor, queue, placement and launches."""
