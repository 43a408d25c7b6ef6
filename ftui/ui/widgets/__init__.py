"""What is seen on the screens, one file per region: runs, line_chart, machine, gates, clock, log; `panel` is their frame.

A widget shows what it is given. It reads no file and asks no process.
"""
