"""The data room as processes of their own, so that neither supervisor nor app carries its libraries or waits for it.

    python -m ftui.data CAMPAIGN            prepare the data of a campaign, as the supervisor starts it
    python -m ftui.data scout CAMPAIGN      say as JSON what fits the half-written plan in it (see `scout.py`)
    python -m ftui.data inspect CAMPAIGN    inspect it and answer questions on standard input (see `examples.serve`)

Exit code 0 when the version is written and current, or when the questions ended; 1 with one sentence per problem on standard
error; 2 for wrong usage.
"""

from __future__ import annotations

import contextlib
import json
import sys
from pathlib import Path

from ftui.data.base import BaseError, find_base
from ftui.data.findings import DataError
from ftui.data.prepare import prepare
from ftui.data.tokenizer import TokenizerError
from ftui.plan.load import PlanError, load_plan
from ftui.plan.schema import Plan
from ftui.record.layout import CampaignFiles


def main(arguments: list[str]) -> int:
    if arguments[:1] == ["scout"] and len(arguments) == 2:
        return scout_campaign(CampaignFiles(Path(arguments[1]).resolve()))
    command, rest = (inspect_campaign, arguments[1:]) if arguments[:1] == ["inspect"] else (prepare_campaign, arguments)
    if len(rest) != 1:
        print("usage: python -m ftui.data [inspect | scout] CAMPAIGN_DIRECTORY", file=sys.stderr)
        return 2
    files = CampaignFiles(Path(rest[0]).resolve())
    try:
        plan = load_plan(files.root)
    except PlanError as problem:
        print(problem, file=sys.stderr)
        return 1
    return command(plan, files)


def prepare_campaign(plan: Plan, files: CampaignFiles) -> int:
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


def inspect_campaign(plan: Plan, files: CampaignFiles) -> int:
    from ftui.data.examples import Examples, serve
    from ftui.data.inspection import inspect, inspection_content
    from ftui.data.inspection_text import sections

    def answer(line: str) -> None:
        print(line, flush=True)

    try:
        inspection = inspect(plan, files)
        content = inspection_content(inspection)
        content["sections"] = [[section.title, section.lines] for section in sections(content)]
        # The first line says that all is read; whoever waits for it need not ask.
        answer(json.dumps({"id": 0, "answer": content}, ensure_ascii=False))
        serve(Examples(inspection, files.root), content, sys.stdin.readline, answer)
    except BrokenPipeError:
        pass
    except OSError as problem:
        print(f"{problem.filename or files.root}: {problem.strerror}", file=sys.stderr)
        return 1
    return 0


def scout_campaign(files: CampaignFiles) -> int:
    from ftui.data.scout import scout

    # As ASCII: a file may hold halves of characters, which no terminal's encoding can write.
    with contextlib.suppress(BrokenPipeError):
        print(json.dumps(scout(files)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
