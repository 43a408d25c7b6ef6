"""Whole screens: home, monitor of one campaign, inspection of its data, report, the wizard on its plan; what the doctor says;
and the layers above: help, questions, texts to write. `wishes.py` is what the monitor's keys ask of a supervisor."""
