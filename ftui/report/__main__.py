"""`python -m ftui.report CAMPAIGN_DIRECTORY` writes the report: exit code 0, or 1 with one sentence on standard error."""

from __future__ import annotations

import sys
from pathlib import Path

from ftui.record.layout import CampaignFiles
from ftui.report.build import ReportError
from ftui.report.write import write_report


def main(arguments: list[str]) -> int:
    if len(arguments) != 1:
        print("usage: python -m ftui.report CAMPAIGN_DIRECTORY", file=sys.stderr)
        return 2
    directory = Path(arguments[0])
    if not directory.is_dir():
        print(f"{directory}: no such directory", file=sys.stderr)
        return 1
    try:
        report = write_report(CampaignFiles(directory.resolve()))
    except (ReportError, OSError) as error:
        print(f"the report could not be written: {' '.join(str(error).split())}", file=sys.stderr)
        return 1
    print(report.verdict.sentence)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
