"""`ftui run --wait`: calm lines for logs, and a bar below them on a terminal."""

from __future__ import annotations

import signal
import sys

from ftui.engine.follow import Follower
from ftui.record.layout import CampaignFiles
from ftui.record.text import safe


def wait(files: CampaignFiles) -> None:
    """Print what happens on standard error until nobody supervises the campaign. Ctrl-C leaves; training goes on."""
    follower = Follower(files, from_start=True)
    try:
        if sys.stderr.isatty():
            _with_bar(follower)
        else:
            for happening in follower.follow():
                if happening.line is not None:
                    print(safe(happening.line), file=sys.stderr, flush=True)
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        print(
            f"\nleft; {files.name} goes on. `ftui open {files.name}` shows it, `ftui stop {files.name}` stops it",
            file=sys.stderr,
        )
        raise


def _with_bar(follower: Follower) -> None:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )
    from rich.text import Text

    console = Console(stderr=True)
    columns = (TextColumn("updates"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, refresh_per_second=2, transient=True) as progress:
        bar = progress.add_task("updates", total=None)
        for happening in follower.follow():
            if happening.line is not None:
                progress.console.print(Text(safe(happening.line)))
            if happening.updates_planned:
                progress.update(bar, total=happening.updates_planned, completed=happening.updates_done)
