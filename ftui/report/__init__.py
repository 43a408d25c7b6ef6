"""The record in words."""
