"""The report holds what the record holds, whatever became of the campaign, and writes nothing while it reads."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.cells import cell_len

from ftui.plan.schema import WHOLE_METRICS
from ftui.record.journal import Journal
from ftui.record.layout import CampaignFiles
from ftui.record.notebook import write_note
from ftui.record.rows import prediction_writer
from ftui.report.build import ReportError, build_report, current_report, load_report
from ftui.report.markdown import escaped, to_markdown
from ftui.report.model import Report
from ftui.report.runs import thinned
from ftui.report.text import to_text
from ftui.report.write import write_report
from tests.builders import record as builders
from tests.builders.campaign import build_campaign
from tests.builders.copies import backed_up
from tests.builders.record import LABELS, SKILLS, Record

SCENARIOS: list[Callable[[Path], Record]] = [
    builders.never_launched,
    builders.failed_gate,
    builders.closed,
    builders.diverged,
    builders.killed_and_resumed,
]

BLOCKED = """
import sys
class Wall:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("torch", "transformers", "peft", "accelerate", "textual", "sklearn"):
            raise ImportError(f"{name} must not be needed")
sys.meta_path.insert(0, Wall())
"""


def snapshot(root: Path) -> dict[str, str]:
    return {
        str(p.relative_to(root)): hashlib.sha256(p.read_bytes()).hexdigest() if p.is_file() else "folder"
        for p in sorted(root.rglob("*"))
    }


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_every_stage_gives_a_report_that_reads_back_equal(tmp_path: Path, scenario: Callable[[Path], Record]) -> None:
    record = scenario(tmp_path / "c")
    report = write_report(record.files)
    assert load_report(record.files) == report
    for text in (to_markdown(report), to_text(report), to_text(report, 80)):
        assert report.verdict.word in text.lower()
        assert "A larger step" in text
    assert record.files.report_markdown.read_text(encoding="utf-8") == to_markdown(report)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_building_and_loading_write_nothing_and_repeat_exactly(
    tmp_path: Path, scenario: Callable[[Path], Record]
) -> None:
    record = scenario(tmp_path / "c")
    before = snapshot(record.root)
    first, second = build_report(record.files), build_report(record.files)
    assert load_report(record.files) is None
    assert first.model_dump_json() == second.model_dump_json()
    assert snapshot(record.root) == before
    write_report(record.files)
    written = record.files.report_json.read_bytes()
    write_report(record.files)
    assert record.files.report_json.read_bytes() == written


def test_closed_campaign_shows_its_evidence(tmp_path: Path) -> None:
    record = builders.closed(tmp_path / "c")
    report = build_report(record.files)
    best = record.run_id("double-rate", 18)
    assert (report.verdict.word, report.verdict.choice, report.deliver) == ("supported", "double-rate", best)
    test = {s.system: s for s in report.systems if s.split == "test"}
    assert {name: s.metrics["accuracy"].mean for name, s in test.items()} == pytest.approx(SKILLS)
    assert test["double-rate"].gain_over_base["accuracy"].mean == pytest.approx(SKILLS["double-rate"] - SKILLS["base"])
    assert test["base"].metrics["accuracy"].by_seed.keys() == {"17", "18"}
    recall = {(row.system, row.slice): row.metrics["recall"].mean for row in report.slices}
    assert recall == {(system, label): pytest.approx(skill) for system, skill in SKILLS.items() for label in LABELS}
    control = next(row for row in report.confusions if (row.system, row.category) == ("control", LABELS[0]))
    assert (control.wrong, control.of, control.taken_for) == (80, 200, [(LABELS[1], 80)])  # 40 of 100, in two seeds
    assert report.batches[0].sentences[0].startswith("2 × 8 × 1 = 16 examples per update")
    assert sum(p.planned_hours for p in report.rental.phases) == 15
    assert report.model.found["base_sha256"] == "5a" * 32
    assert len(report.environments) == 1 and len(report.environments[0].runs) == 8
    assert report.artefacts[0].verified and report.artefacts[0].manifest["run"] == best
    assert [opening.opening for opening in report.test_openings] == [1]
    assert report.data is not None and report.data.findings == ["train.jsonl:7: repeats line 3"]
    assert any("2 seeds" in limit for limit in report.limits)


def test_best_seed_is_chosen_by_validation_not_by_test(tmp_path: Path) -> None:
    """Seed 18 is better on validation by construction (0.518 against 0.517), seed 17 on the test set."""
    skills = {**SKILLS, ("double-rate", 17): 0.82, ("double-rate", 18): 0.8}
    record = builders.closed(tmp_path / "c", skills)
    report = build_report(record.files)
    assert report.deliver == record.run_id("double-rate", 18)
    double = next(s for s in report.systems if (s.system, s.split) == ("double-rate", "test")).metrics["accuracy"]
    assert double.by_seed == pytest.approx({"17": 0.82, "18": 0.8})
    assert double.mean == pytest.approx(0.81)
    assert double.spread == pytest.approx(0.02 / 2**0.5)  # two values d apart have a standard deviation of d / √2


def test_markdown_holds_everything_a_reader_asks_for(tmp_path: Path) -> None:
    report = build_report(builders.closed(tmp_path / "c").files)
    text = to_markdown(report)
    titles = re.findall(r"^## (.*)$", text, re.M)
    assert titles == [
        "What this does not show",
        "The question, written before any compute",
        "The comparison with the control",
        "What must not get worse",
        "On the test set",
        "On validation data (last validation of each run)",
        "Per category, on the test set",
        "Every run",
        "How examples fall into updates",
        "Gates before the first run",
        "Time and money",
        "Data",
        "Model and method",
        "Machine and versions",
        "Artefact",
    ]
    assert text.index(report.verdict.sentence[:40]) < text.index("## ")
    for run in report.runs:
        assert run.run in text
    assert "PeftModel.from_pretrained(base, 'exports/" in text
    assert "| together" in text and "30.00" in text  # 15 planned hours at 2 per hour


def test_tables_keep_their_shape_and_text_its_meaning(tmp_path: Path) -> None:
    record = builders.closed(tmp_path / "c")
    Journal(record.files.journal, "cli").append(
        "note", text="# not a title\n| a | b |\n\x1b[31mred <b>bold</b> ![x](http://y)"
    )
    text = to_markdown(build_report(record.files))
    assert "\x1b" not in text and "<b>" not in text and "http://y" not in text
    assert "환불 \\| 취소" in text
    for block in re.findall(r"(?:^\|.*\n)+", text, re.M):
        counts = {len(re.findall(r"(?<!\\)\|", line)) for line in block.splitlines()}
        widths = {cell_len(line) for line in block.splitlines()}
        assert len(counts) == 1 and len(widths) == 1, block


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("# title", "\\# title"),
        ("1. one", "1\\. one"),
        ("0.600", "0.600"),
        ("- item", "\\- item"),
        ("macro_f1", "macro_f1"),
        ("_it_ *is*", "\\_it\\_ \\*is\\*"),
        ("a|b", "a\\|b"),
        ("[x](y)", "\\[x\\](y)"),
        ("&lt;", "&amp;lt;"),
    ],
)
def test_markup_in_text_is_escaped(raw: str, shown: str) -> None:
    assert escaped(raw) == shown


@pytest.mark.parametrize("width", [60, 80, 100, 200])
def test_terminal_text_fits_its_width_in_cells(tmp_path: Path, width: int) -> None:
    record = builders.killed_and_resumed(tmp_path / "c")
    record.journal.append("note", text="한국어 메모 " * 40)
    for line in to_text(build_report(record.files), width).splitlines():
        assert cell_len(line) <= width, line


def test_failed_gate_is_reported_with_its_cause(tmp_path: Path) -> None:
    report = build_report(builders.failed_gate(tmp_path / "c").files)
    assert report.verdict.word == "no verdict" and report.deliver is None
    rows = {row.gate: row.verdict for row in report.gates[0].rows}
    assert rows["first update"] == "passed" and rows["steady update"] == "failed" and rows["reload"] == "skipped"
    text = to_markdown(report)
    assert "OutOfMemoryError: 9 GiB asked, 8 GiB there" in text and "No verdict: the gates failed" in text


def test_diverged_runs_stay_in_the_report(tmp_path: Path) -> None:
    record = builders.diverged(tmp_path / "c")
    report = build_report(record.files)
    gone = next(run for run in report.runs if run.run == record.run_id("double-rate", 17))
    assert (gone.status, gone.updates, gone.cause) == ("diverged", 6, "the loss was infinite at update 6")
    assert gone.curve is not None and gone.curve.nonfinite == 1
    assert gone.curve.loss[-1].value is None and gone.curve.last_loss == 50.0
    assert any("double-rate-s17" in limit and "infinite" in limit for limit in report.limits)
    assert report.deliver == record.run_id("control", 18)
    assert "diverged" in to_text(report)


def test_resumed_run_shows_every_attempt(tmp_path: Path) -> None:
    record = builders.killed_and_resumed(tmp_path / "c")
    report = build_report(record.files)
    run = next(run for run in report.runs if run.run == record.run_id("control", 17))
    assert run.status == "completed"
    assert [(a.number, a.status, a.resumed_from) for a in run.attempts] == [(1, "lost", None), (2, "completed", 10)]
    text = to_markdown(report)
    assert "its process was ended by signal 9" in text and "from the checkpoint of update 10" in text


def amend(record: Record, field: str, **reason: str) -> None:
    """An amendment as the supervisor writes it; as an older one did without `because`."""
    times = {"starts_at": "2026-12-01T09:00:00+00:00", "ends_at": "2026-12-04T09:00:00+00:00"}
    record.journal.append("amended", plan_hash="e" * 64, plan=record.plan.content(), changed=[field], **times, **reason)


def test_what_the_pilot_changed_needs_no_reason(tmp_path: Path) -> None:
    record = builders.failed_gate(tmp_path / "c")
    amend(record, "method.rank")
    assert "method.rank — before runs had begun" in to_text(build_report(record.files), 200)


def test_the_notebook_is_whole_dated_and_newer_than_the_written_report(tmp_path: Path) -> None:
    record = builders.closed(tmp_path / "c")
    note = "결정: rank 16\n===\n# żółć | a\n\n\x1b[31mlast"
    write_note(record.files, note, "app")
    written = write_report(record.files)
    write_note(record.files, "after the end", "cli")
    assert current_report(record.files).notes[-1].text == "after the end"
    assert load_report(record.files) == written, "reading wrote nothing"
    notebook = to_markdown(written).split("## Notebook")[1]
    day = f"{record.files.journal.read_text(encoding='utf-8').splitlines()[-1]}"[7:17]
    assert f"- {day} " in notebook
    assert "(app): 결정: rank 16\\\n  \\===\\\n  \\# żółć \\| a\\\n  \\\n  last" in notebook
    lines = to_text(written, 60).split("Notebook")[1].splitlines()
    assert "  # żółć | a" in lines and "  last" in lines


def test_unverified_artefact_and_amendments_are_limits(tmp_path: Path) -> None:
    record = builders.closed(tmp_path / "c")
    amend(record, "hypothesis.min_improvement")
    amend(record, "rental.days", because="The host was slower than planned.")
    record.export(record.run_id("control", 17), verified=False, cause="outputs differ by 0.3")
    report = build_report(record.files)
    limits = "\n".join(report.limits)
    assert "hypothesis.min_improvement; no reason was recorded." in limits
    assert "rental.days; because The host was slower than planned." in limits
    text = to_text(report, 200)
    assert "hypothesis.min_improvement — no reason was recorded" in text
    assert "rental.days — because The host was slower than planned." in text
    assert "outputs differ by 0.3" in limits
    assert "while the rules name double-rate" in limits


def test_category_nobody_recognises_is_a_limit(tmp_path: Path) -> None:
    blind = {name: {LABELS[0]: skill, LABELS[1]: skill, LABELS[2]: 0.0} for name, skill in SKILLS.items()}
    report = build_report(builders.closed(tmp_path / "c", blind).files)
    assert any(limit.startswith("pengembalian dana: recall is 0 in every trained run") for limit in report.limits)


@pytest.mark.parametrize("task", builders.TASKS)
def test_every_task_is_reported_in_its_own_words(tmp_path: Path, task: str) -> None:
    record = builders.of_task(tmp_path / "c", task)
    report = write_report(record.files)
    assert load_report(record.files) == report
    metric = record.plan.hypothesis.metric
    assert (report.verdict.word, report.verdict.metric, report.verdict.choice) == ("supported", metric, "double-rate")
    test = {s.system: s.metrics for s in report.systems if s.split == "test"}
    assert next(iter(test["base"])) == WHOLE_METRICS[task][0], "the task's own metrics come first"
    # Of an extraction, 0.9 are valid and so 0.9 of the fields answered: F1 = 2 · skill / (1 + 0.9).
    expected = {n: 2 * skill / 1.9 if task == "extraction" else skill for n, skill in SKILLS.items()}
    assert {name: metrics[metric].mean for name, metrics in test.items()} == pytest.approx(expected, abs=0.002)
    assert (report.slice_word, bool(report.confusions)) == (
        "field" if task == "extraction" else "category",
        task.endswith("classification"),
    )
    assert {row.slice for row in report.slices} == {
        "extraction": set(builders.FIELDS),
        "generation": set(),  # one category is the whole
    }.get(task, set(LABELS))
    text = to_markdown(report)
    loader = {"text": "SequenceClassification", "image": "ImageClassification"}.get(task.split("-")[0], "CausalLM")
    assert f"base = AutoModelFor{loader}.from_pretrained(" in text
    assert ("AutoImageProcessor" in text, "AutoTokenizer" in text) == (task[0] == "i", task[0] != "i")
    if not task.endswith("classification"):
        foreign = ("accuracy", "macro", "labels.json", "taken for", "num_labels")
        story = text.replace(record.plan.hypothesis.statement, "").replace(escaped(report.statement), "")
        assert [word for word in foreign if word in story] == []
    if task == "extraction":
        assert "Per field, on the test set" in text and "Fields: date, people, 이름" in text


def test_a_generation_of_several_categories_shows_each(tmp_path: Path) -> None:
    record = builders.of_task(tmp_path / "c", "generation")
    state = [json.loads(line) for line in record.files.journal.read_text(encoding="utf-8").splitlines()]
    for row in state:
        if row.get("event") == "data-ready":
            row["data"]["labels"] = ["even", "odd", "rare"]
    record.files.journal.write_text("".join(json.dumps(row) + "\n" for row in state), encoding="utf-8")
    for run in record.runs:
        path = record.files.run(run.id).test_predictions
        rows = builders.texts(SKILLS[run.variant])
        path.unlink()
        with prediction_writer(path) as writer:
            for i, row in enumerate(rows):
                writer.write({**row, "category": ("even", "odd")[i % 2]})
    report = build_report(record.files)
    # Every other of 300 difficulties, evenly spread: 0.6 of them are answered rightly in each category, too.
    found = {(r.system, r.slice): (r.examples, r.metrics["exact_match"].mean) for r in report.slices}
    assert found["control", "odd"] == (150, pytest.approx(0.6, abs=0.01))
    assert "exact_match: of the examples of a category" in to_text(report).lower()
    assert any(limit.startswith("rare: the test set has no example of this category") for limit in report.limits)


def test_a_field_no_run_finds_and_answers_that_never_parse_are_limits(tmp_path: Path) -> None:
    blind = {name: {"date": skill, "people": skill, "이름": 0.0} for name, skill in SKILLS.items()}
    limits = build_report(builders.of_task(tmp_path / "c", "extraction", blind).files).limits
    assert "이름: recall is 0 in every trained run; no system here finds this field." in limits
    assert "exact_match is 0 in every trained run: no output equals its target." in limits
    assert not any(limit.startswith("valid_json") for limit in limits)


def test_seed_is_chosen_by_the_loss_where_validation_writes_no_answers(tmp_path: Path) -> None:
    record = builders.of_task(tmp_path / "c", "generation")
    for run in record.runs:
        path = record.files.run(run.id).series
        if path.exists():
            rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
            for row in rows:
                if row.get("k") == "validation":
                    row["metrics"] = {"loss": 1.5 + run.seed / 100}
                    if row["update"] == 10:  # answers were written once, and not again
                        row["metrics"]["exact_match"] = 0.5 + run.seed / 100
            path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    report = build_report(record.files)
    assert report.deliver == record.run_id("double-rate", 17)  # the lower loss, by construction
    assert "the best by loss on validation" in report.deliver_because
    curve = next(run.curve for run in report.runs if run.run == report.deliver)
    assert curve is not None and [point.update for point in curve.validation["exact_match"]] == [10]


def test_gates_of_a_later_version_are_shown(tmp_path: Path) -> None:
    record = builders.closed(tmp_path / "c")
    path = record.files.gates("g001").rows
    row = json.loads(path.read_text(encoding="utf-8").splitlines()[1])
    row |= {"gate": "weights on the moon", "facts": {"base_sha256": "00" * 32, "nested": {"a": [1, None]}}}
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")
    report = build_report(record.files)
    assert report.gates[0].rows[-1].gate == "weights on the moon"
    assert report.model.found["base_sha256"] == "5a" * 32, "only the load gate says what was loaded"
    assert "weights on the moon" in to_markdown(report)


def test_spikes_survive_thinning() -> None:
    values = [1.0] * 5000
    values[1234], values[4321] = 9.0, float("nan")
    points = thinned(range(1, 5001), values)
    assert len(points) <= 200
    assert (1235, 9.0) in [(p.update, p.value) for p in points]
    assert [p.update for p in points] == sorted({p.update for p in points})


def test_torn_and_broken_optional_files_do_not_stop_a_report(tmp_path: Path) -> None:
    record = builders.closed(tmp_path / "c")
    run = record.files.run(record.run_id("control", 17))
    run.outcome.write_text("{", encoding="utf-8")
    run.environment.write_text('{"torch": NaN}', encoding="utf-8")
    with record.files.journal.open("ab") as file:
        file.write(b'{"at": "2026-')
    report = build_report(record.files)
    assert report.verdict.word == "supported"
    json.dumps(report.model_dump(mode="json"), allow_nan=False)


def test_without_a_campaign_there_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(ReportError, match="no such file"):
        build_report(CampaignFiles(tmp_path))


def test_newer_report_is_refused(tmp_path: Path) -> None:
    record = builders.never_launched(tmp_path / "c")
    write_report(record.files)
    content = json.loads(record.files.report_json.read_text(encoding="utf-8"))
    record.files.report_json.write_text(json.dumps({**content, "report_schema": 99}), encoding="utf-8")
    with pytest.raises(ReportError, match="schema 99 is newer than this ftui, which reads up to 1; update ftui"):
        load_report(record.files)
    record.files.report_json.write_text("[1, 2]", encoding="utf-8")
    with pytest.raises(ReportError, match="is no report of ftui"):
        load_report(record.files)


def run_module(directory: Path) -> subprocess.CompletedProcess[str]:
    code = f"{BLOCKED}\nfrom ftui.report.__main__ import main\nsys.exit(main([{str(directory)!r}]))"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def test_report_needs_no_torch(tmp_path: Path) -> None:
    record = builders.closed(tmp_path / "c")
    done = run_module(record.root)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Supported: ")
    report = load_report(record.files)
    assert isinstance(report, Report) and report == build_report(record.files)


def test_module_fails_with_one_sentence(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "ftui.report", str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stdout == "" and len(done.stderr.splitlines()) == 1
    assert "no such file" in done.stderr


def test_the_report_says_whether_the_record_was_safe_elsewhere(tmp_path: Path) -> None:
    nowhere = build_report(build_campaign(tmp_path / "nowhere", "closed").files)
    assert any("names no place for copies" in limit for limit in nowhere.limits)
    files, backup = backed_up(tmp_path / "copied", f'destination = "{tmp_path}/there"')
    assert f"Nothing had been copied to {tmp_path}/there when this was written." in build_report(files).limits
    journal = Journal(files.journal, "supervisor")
    journal.append("copy-ended", copied=0, bytes=0, left=0, cause="/there: No space left on device")
    failing = build_report(files)
    assert any("had failed since" in limit and "No space left on device." in limit for limit in failing.limits)
    journal.append("copy-ended", copied=44, bytes=1000, left=0, cause=None)
    working = build_report(files)
    assert not any("copied" in limit or "Copies" in limit for limit in working.limits)
    assert "## Copies elsewhere" in to_markdown(working) and "read back and compared" in to_markdown(working)
    assert working.copies is not None and working.copies.target == backup.target
