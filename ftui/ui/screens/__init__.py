"""Whole screens: home, monitor of one campaign, inspection of its data, report; what the doctor says;
and the layers above: help, questions, texts to write."""
