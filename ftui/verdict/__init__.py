"""Paired statistics, guardrails and the decision."""
