"""Whole screens: home, monitor of one campaign, report; and the layers above them: help, typed confirmation."""
