"""Whole screens: home, monitor of one campaign, inspection of its data, report; and the layers above: help, questions."""
