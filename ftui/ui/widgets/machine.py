"""Panel 3: the machine: each GPU's memory and load, or the host's where there is none, and what each run holds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.text import Text

from ftui.ui.glyphs import bar, sparkline
from ftui.ui.theme import STYLES
from ftui.ui.widgets.panel import Panel
from ftui.ui.words import cut, gib, pad, used_of

if TYPE_CHECKING:
    from ftui.machine.sample import Sample


class MachinePanel(Panel):
    """Values are of the latest sample; the small bars are the history of the load."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__("3 Machine", id=id)
        self.samples: Sequence[Sample] = ()

    def show(self, samples: Sequence[Sample]) -> None:
        self.samples = samples
        self.changed()

    def subtitle(self) -> str:
        return f"as of {self.samples[-1].at[11:19]} UTC" if self.samples else ""

    def lines_for(self, width: int) -> tuple[Text | None, list[Text]]:
        if not self.samples:
            return None, [Text("no sample yet; the supervisor takes them", STYLES["muted"])]
        sample, lines = self.samples[-1], []
        for position, gpu in enumerate(sample.gpus):
            loads = [s.gpus[position].utilisation_percent or 0.0 for s in self.samples if position < len(s.gpus)]
            extra = [
                f"{gpu.temperature_c:.0f} °C" if gpu.temperature_c is not None else "",
                f"{gpu.watts:.0f} W" if gpu.watts is not None else "",
                gpu.name,
            ]
            lines.append(
                self._load(f"gpu {gpu.index}", gpu.utilisation_percent, loads, width, "  ".join(filter(None, extra)))
            )
            lines.append(self._share("memory", gpu.memory_used, gpu.memory_total, width))
        host = sample.host
        lines.append(self._load("cpu", host.cpu_percent, [s.host.cpu_percent for s in self.samples], width, ""))
        lines.append(self._share("memory", host.memory_used, host.memory_total, width))
        lines.append(self._share("disk", host.disk_total - host.disk_free, host.disk_total, width))
        for run, process in sample.runs.items():
            name = pad(run, max(10, min(26, width - 18)))
            lines.append(
                _line(
                    (name, "text"),
                    (f" {gib(process.rss_bytes):>8}", "text"),
                    (f" {process.cpu_percent:4.0f} %", "muted"),
                )
            )
        return None, lines

    def _load(self, name: str, percent: float | None, history: list[float], width: int, extra: str) -> Text:
        space = max(6, min(40, width - 16))
        if extra and width >= 50:
            space = max(6, min(space, width - 18 - len(extra)))
        shown = sparkline(history, space, self.glyphs)
        value = "   –  " if percent is None else f"{percent:4.0f} %"
        tail = cut(extra, width - 16 - space - 1) if width >= 50 else ""
        return _line(
            (pad(name, 7), "muted"), (f" {value} ", "bright"), (f" {pad(shown, space)}", "busy"), (f" {tail}", "muted")
        )

    def _share(self, name: str, used: int, total: int, width: int) -> Text:
        size = used_of(used, total)
        space = max(6, min(40, width - 17 - len(size)))
        share = used / total if total else 0.0
        role = "bad" if share > 0.95 else "warn" if share > 0.85 else "busy"
        return _line(
            (pad(name, 7), "muted"),
            (f" {100 * share:4.0f} % ", "text"),
            (f" {bar(share, space, self.glyphs)}", role),
            (f" {size}", "muted"),
        )


def _line(*parts: tuple[str, str]) -> Text:
    return Text.assemble(*((text, STYLES[role]) for text, role in parts), no_wrap=True, end="")
