"""The commands. Parses first and imports late: `ftui --help` loads nothing heavier than argparse.

Exit codes: 0 done · 1 the answer is no · 2 wrong usage · 3 the campaign is not in a state for this · 75 stopped, can be continued ·
70 a fault of ours. With `--json`, standard output holds one JSON document and nothing else; text for people goes to standard error.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ftui import __version__
from ftui.answer import DONE, NO, STATE, STOPPED, USAGE, Answer, print_json
from ftui.queue import add_queue_commands

if TYPE_CHECKING:
    from ftui.data.prepare import DataReport
    from ftui.machine.devices import Device
    from ftui.plan.schema import Plan
    from ftui.record.layout import CampaignFiles


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    options = _parser().parse_args(arguments)
    try:
        command: Callable[[argparse.Namespace], int] = options.command
        return command(options)
    except Answer as answer:
        print(answer, file=sys.stderr)
        return answer.code
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        sys.stderr.close()
        return DONE


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="ftui",
        description="From a written hypothesis to a fine-tune that can be defended. Without a command: the app.",
        epilog="C is a campaign: a directory, or a name under campaigns/ here or in the user's data folder.",
    )
    parser.add_argument("--version", action="version", version=f"ftui {__version__}")
    parser.set_defaults(command=_app, campaign=None, report=False)
    commands = parser.add_subparsers(title="commands", metavar="")

    def add(
        name: str, command: Callable[[argparse.Namespace], int], summary: str, *, json: bool = False
    ) -> argparse.ArgumentParser:
        sub = commands.add_parser(name, help=summary, description=summary)
        sub.set_defaults(command=command)
        if json:
            sub.add_argument("--json", action="store_true", help="one JSON document on standard output")
        return sub

    def campaign(sub: argparse.ArgumentParser) -> argparse.ArgumentParser:
        sub.add_argument("campaign", metavar="C", help="campaign: a directory or a name")
        return sub

    new = add("new", _new, "plan a campaign step by step: a new one, or one that is not finished")
    new.add_argument("name", metavar="NAME", nargs="?", help="name of the campaign, or a directory to make")
    new.add_argument(
        "--no-edit", action="store_true", help="only write a commented example plan, to be filled in with an editor"
    )
    opened = campaign(add("open", _app, "the app on one campaign"))
    opened.add_argument("--report", action="store_true", help="start at the report")
    campaign(add("check", _check, "check plan and data; needs no model", json=True))
    inspected = campaign(add("inspect", _inspect, "encoded examples, what carries loss, lengths, leakage", json=True))
    inspected.add_argument(
        "--example", metavar="N", type=int, help="show example N (from 1) token by token instead of the facts"
    )
    inspected.add_argument(
        "--split", choices=("train", "validation"), default="train", help="of this split (default: train)"
    )
    inspected.add_argument("--longest", action="store_true", help="count examples from the longest")
    inspected.add_argument("--text", metavar="T", default="", help="only examples that say T")
    planned = campaign(add("plan", _plan, "arithmetic, what can be shown, variants, rental, what fits", json=True))
    which = "predict memory and time on a device not rented yet: h100, l4, 4090, …, or a size (24GB); encodes the data"
    planned.add_argument("--for", metavar="DEVICE", dest="device", type=_device, help=which)
    preflight = campaign(add("preflight", _preflight, "the gates: every operation once, on this machine", json=True))
    preflight.add_argument("--accept", metavar="N", type=int, help="put remedy N of the last gates into the plan")
    preflight.add_argument(
        "--fit", action="store_true", help="search the largest micro-batch that fits, the update unchanged"
    )
    run = campaign(add("run", _run, "start or continue", json=True))
    how = run.add_mutually_exclusive_group()
    how.add_argument("--wait", action="store_true", help="stay and print progress until it ends")
    how.add_argument(
        "--detach", action="store_true", help="return at once (the default); training goes on without this terminal"
    )
    run.add_argument("--because", metavar="WHY", help="why the plan was changed: needed once runs have begun")
    noted = campaign(add("note", _note, "write down a decision or an observation, or list them", json=True))
    noted.add_argument("text", metavar="TEXT", nargs="?", help="what to note (default: standard input)")
    noted.add_argument("--list", action="store_true", help="show the notebook instead")
    campaign(add("status", _status, "what is going on", json=True))
    add_queue_commands(lambda name, wish, summary: campaign(add(name, lambda o: wish(_find(o), o), summary, json=True)))
    campaign(add("copy", _copy, "copy what is new to the plan's destination, now", json=True))
    report = campaign(add("report", _report, "the report of what was recorded; reads only"))
    report.add_argument("--format", choices=("text", "md", "json"), default="text")
    report.add_argument("-o", "--output", metavar="F", type=Path, help="write to a file instead of standard output")
    add("doctor", _doctor, "look at this machine", json=True)
    return parser


def _device(words: str) -> Device:
    from ftui.machine.devices import UnknownDevice, find_device

    try:
        return find_device(words)
    except UnknownDevice as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _find(options: argparse.Namespace) -> CampaignFiles:
    from ftui.record.layout import find_campaign

    try:
        return find_campaign(options.campaign)
    except FileNotFoundError as error:
        raise Answer(USAGE, str(error)) from None


def _load_plan(files: CampaignFiles) -> Plan:
    from ftui.plan.load import PlanError, load_plan

    try:
        return load_plan(files.root)
    except PlanError as error:
        count = len(error.problems)
        raise Answer(NO, f"{error}\n{count} problem{'s' if count != 1 else ''} in the plan") from None


def _app(options: argparse.Namespace) -> int:
    files = _find(options) if options.campaign else None
    _needs_terminal()
    from ftui.ui.app import run_app

    return run_app(files, begin="report" if options.report else "monitor")


def _needs_terminal() -> None:
    if not sys.stdout.isatty() and not sys.stderr.isatty():
        raise Answer(USAGE, "the app needs a terminal; `ftui --help` lists the commands for scripts")


def _new(options: argparse.Namespace) -> int:
    from ftui.plan.example import EXAMPLE
    from ftui.plan.load import PLAN_FILE
    from ftui.record.layout import CampaignFiles, new_campaign_folder

    if options.no_edit:
        if options.name is None:
            raise Answer(USAGE, "a plan needs a name: ftui new NAME --no-edit")
        plan = new_campaign_folder(options.name) / PLAN_FILE
        if plan.exists():
            raise Answer(STATE, f"{plan}: exists already; edit it, or choose another name")
        (plan.parent / "data").mkdir(parents=True, exist_ok=True)
        plan.write_text(EXAMPLE, encoding="utf-8")
        print(f"{plan}: an example to fill in; `ftui check {plan.parent}` says what is missing")
        return DONE
    _needs_terminal()
    from ftui.ui.app import run_app
    from ftui.ui.wizard.begin import BadName, begin_plan

    if options.name is None:
        return run_app(None, begin="plan")
    try:
        folder = begin_plan(options.name)
    except BadName as problem:
        raise Answer(USAGE, str(problem)) from None
    except OSError as problem:
        raise Answer(NO, f"{problem.filename or options.name}: {problem.strerror}") from None
    return run_app(CampaignFiles(folder), begin="plan")


def _check_data(files: CampaignFiles, plan: Plan) -> DataReport:
    from ftui.data.prepare import check_data

    return check_data(plan, files.root)


def _check(options: argparse.Namespace) -> int:
    from ftui.plan.load import PlanError, load_plan, unknown_slices

    files = _find(options)
    errors: list[str] = []
    warnings: list[str] = []
    report = None
    try:
        plan = load_plan(files.root)
    except PlanError as error:
        errors += map(str, error.problems)
    else:
        report = _check_data(files, plan)
        errors += map(str, report.errors)
        warnings += map(str, report.warnings)
        if report.labels:
            errors += unknown_slices(plan, report.labels)
    if options.json:
        data = None if report is None else {"hash": report.hash, "labels": report.labels, "counts": report.counts}
        print_json({"ok": not errors, "errors": errors, "warnings": warnings, "data": data})
    for sentence in warnings:
        print(f"warning: {sentence}", file=sys.stderr)
    for sentence in errors:
        print(f"error: {sentence}", file=sys.stderr)
    if not options.json and report is not None and not errors:
        sizes = ", ".join(f"{len(rows):,} {name}" for name, rows in report.splits.items())
        print(
            f"{files.name}: plan and data can be used: {sizes}; {len(report.labels)} categories; version {report.hash}"
        )
    return NO if errors else DONE


def _inspect(options: argparse.Namespace) -> int:
    from ftui.data.examples import Examples
    from ftui.data.inspection import inspect, inspection_content
    from ftui.data.inspection_text import inspection_text
    from ftui.example import example_text

    files = _find(options)
    inspection = inspect(_load_plan(files), files)
    if options.example is None:
        content = inspection_content(inspection)
        print_json(content) if options.json else print(inspection_text(content))
        return NO if inspection.errors else DONE
    examples = Examples(inspection, files.root)
    chosen = examples.choose(options.split, text=options.text, order="longest" if options.longest else "data")
    if not 1 <= options.example <= len(chosen):
        raise Answer(USAGE, f"there is no example {options.example}; {len(chosen):,} are left to choose from")
    example = examples.example(options.split, chosen[options.example - 1])
    print_json(example) if options.json else print(example_text(example))
    return NO if example["problem"] else DONE


def _plan(options: argparse.Namespace) -> int:
    from ftui.plan.describe import plan_text
    from ftui.planning import described_campaign

    files = _find(options)
    described = described_campaign(files, _load_plan(files), options.device)
    texts = [plan_text(described)]
    if "forecast" in described:
        from ftui.forecast import forecast_text

        texts.append(forecast_text(described["forecast"]))
    print_json(described) if options.json else print("\n".join(texts))
    return DONE


def _run(options: argparse.Namespace) -> int:
    from ftui.engine.client import EngineError, start, supervisor_alive

    files = _find(options)
    plan = _load_plan(files)
    if options.because is not None and not options.because.strip():
        raise Answer(USAGE, "--because needs words: the report will show them")
    if not supervisor_alive(files):
        _refuse_what_cannot_start(files, plan)
        _note_what_is_closed(files)
        try:
            start(files, because=options.because)
        except EngineError as error:
            raise Answer(STATE, str(error)) from None
    elif options.because is not None:
        again = f"`ftui stop {options.campaign}`, then the same again"
        raise Answer(STATE, f"{files.name} is running; a changed plan is read when it is started: {again}")
    elif not options.wait:
        print(f"{files.name} is running already", file=sys.stderr)
    if options.wait:
        from ftui.progress import wait

        wait(files)
    elif not options.json:
        print(
            f"{files.name} runs without this terminal; `ftui open {options.campaign}` shows it, `ftui stop {options.campaign}` stops it"
        )
    return _tell(files, options, waited=options.wait)


def _preflight(options: argparse.Namespace) -> int:
    from ftui.engine.client import supervisor_alive
    from ftui.preflight import accept_remedy, fit_micro_batch, try_gates

    files = _find(options)
    plan = _load_plan(files)
    if supervisor_alive(files):
        raise Answer(STATE, f"{files.name} is running; its gates are tried before its runs")
    if options.accept is not None:
        return accept_remedy(files, plan, options.accept)
    _refuse_what_cannot_start(files, plan)
    run = fit_micro_batch if options.fit else try_gates
    return run(files, plan, json=options.json)


def _refuse_what_cannot_start(files: CampaignFiles, plan: Plan) -> None:
    """What would fail in the supervisor's first seconds is said here, where somebody reads it."""
    from ftui.data.base import BaseError, find_base
    from ftui.machine.versions import missing_packages
    from ftui.plan.load import unknown_slices

    report = _check_data(files, plan)
    sentences = [str(f) for f in report.errors] or unknown_slices(plan, report.labels)
    sentences += missing_packages(plan)
    try:
        find_base(plan.model, files.root)
    except BaseError as error:
        sentences.append(str(error))
    if sentences:
        raise Answer(NO, "\n".join(sentences))


def _note_what_is_closed(files: CampaignFiles) -> None:
    from ftui.record.journal import read_journal
    from ftui.record.state import CONTINUABLE, fold

    state = fold(read_journal(files.journal))
    if state.closed and not state.runs_of(*CONTINUABLE):
        print(f"{files.name} is closed; only what is new in its plan will be run", file=sys.stderr)


def _tell(files: CampaignFiles, options: argparse.Namespace, *, waited: bool) -> int:
    from ftui.engine.client import supervisor_alive
    from ftui.record.summary import CLOSED, summarise

    summary = summarise(files, supervisor_alive(files))
    if options.json:
        print_json(summary)
    if summary["paused"]:
        print(f"its queue is paused; `ftui resume {options.campaign}` lets it go on", file=sys.stderr)
    if not waited:
        return DONE
    if not options.json and summary["verdict"]:
        print(f"\nverdict: {summary['verdict']}. {summary['verdict_sentence']}\nreport:  {files.report_markdown}")
    if summary["state"] == CLOSED:
        return DONE if any(run["status"] == "completed" for run in summary["runs"]) else NO
    gates_failed = any(gates["passed"] is False for gates in summary["gates"][-1:])
    return NO if summary["faults"] or gates_failed else STOPPED


def _status(options: argparse.Namespace) -> int:
    from ftui.engine.client import supervisor_alive
    from ftui.record.journal import read_journal
    from ftui.record.state import fold
    from ftui.record.summary import summarise, summary_text

    files = _find(options)
    summary = summarise(files, supervisor_alive(files))
    plan = fold(read_journal(files.journal)).plan
    print_json(summary) if options.json else print(summary_text(summary, plan.hypothesis.metric if plan else None))
    return DONE


def _copy(options: argparse.Namespace) -> int:
    from ftui.copying import copy_now

    return copy_now(_find(options), json=options.json)


def _note(options: argparse.Namespace) -> int:
    from ftui.note import note, show_notebook

    if options.list and options.text is not None:
        raise Answer(USAGE, "either a note or --list")
    files = _find(options)
    return show_notebook(files, json=options.json) if options.list else note(files, options.text, json=options.json)


def _report(options: argparse.Namespace) -> int:
    from ftui.report.build import ReportError, current_report
    from ftui.report.markdown import to_markdown
    from ftui.report.text import to_text

    files = _find(options)
    try:
        report = current_report(files)
    except ReportError as error:
        raise Answer(NO, str(error)) from None
    if options.format == "json":
        text = report.model_dump_json(indent=2)
    else:
        text = to_markdown(report) if options.format == "md" else to_text(report)
    if options.output is not None:
        options.output.write_text(text.rstrip("\n") + "\n", encoding="utf-8")
    else:
        print(text.rstrip("\n"))
    return DONE


def _doctor(options: argparse.Namespace) -> int:
    from dataclasses import asdict

    from ftui.machine.doctor import diagnose

    checks = diagnose()
    if options.json:
        print_json([asdict(check) for check in checks])
    else:
        width = max(len(check.name) for check in checks)
        for check in checks:
            print(f"{check.verdict:<8} {check.name:<{width}}  {check.message}")
    return NO if any(check.verdict == "problem" for check in checks) else DONE


if __name__ == "__main__":
    sys.exit(main())
