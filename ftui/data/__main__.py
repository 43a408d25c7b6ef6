"""`python -m ftui.data CAMPAIGN_DIRECTORY`: prepare the data of a campaign; the supervisor starts this in its own process.

Exit code 0 when the version is written and current, 1 with one sentence per problem on standard error, 2 for wrong usage.
"""

from __future__ import annotations

import sys
from pathlib import Path

from ftui.data.base import BaseError, find_base
from ftui.data.findings import DataError
from ftui.data.prepare import prepare
from ftui.data.tokenizer import TokenizerError
from ftui.plan.load import PlanError, load_plan
from ftui.record.layout import CampaignFiles


def main(arguments: list[str]) -> int:
    if len(arguments) != 1:
        print("usage: python -m ftui.data CAMPAIGN_DIRECTORY", file=sys.stderr)
        return 2
    files = CampaignFiles(Path(arguments[0]).resolve())
    try:
        plan = load_plan(files.root)
    except PlanError as problem:
        print(problem, file=sys.stderr)
        return 1
    problems: list[str] = []
    directory = None
    try:
        directory = find_base(plan.model, files.root).directory
    except BaseError as problem:
        problems.append(str(problem))
    try:
        version = prepare(plan, files, directory)
    except DataError as problem:
        problems += [str(finding) for finding in problem.findings if finding.severity == "error"]
    except (TokenizerError, OSError) as problem:
        problems.append(str(problem))
    if problems:
        print("\n".join(problems), file=sys.stderr)
        return 1
    sizes = f"{version.train_examples:,} training, {version.validation_examples:,} validation, {version.test_examples:,} test"
    print(f"data version {version.hash}: {sizes} examples in {len(version.labels)} categories")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
