"""Builds the report and writes its files, each replaced whole."""

from __future__ import annotations

from ftui.record.files import replace_json, replace_text
from ftui.record.layout import CampaignFiles
from ftui.report.build import build_report
from ftui.report.markdown import to_markdown
from ftui.report.model import Report


def write_report(files: CampaignFiles) -> Report:
    """Write `report/report.md` and `report/report.json` and return the report.

    `report.json` comes last, so that whoever sees it finds the others at least as new. Raises `ReportError`, OSError.
    """
    report = build_report(files)
    replace_text(files.report_markdown, to_markdown(report))
    replace_json(files.report_json, report.model_dump(mode="json"))
    return report
