"""Each gate passes on what is right and fails on what is wrong, says why, and stops only what depends on it (S1, S2, P3, D8)."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ftui.plan.load import load_plan
from ftui.record.estimates import run_durations
from ftui.record.journal import parse_time
from ftui.record.preflight import describe_gates, gate_remedies, gates_text
from ftui.record.rows import GATE_NAMES, GateRow, gates_that_need, next_gate_process, read_gates
from ftui.record.state import Campaign, Gates
from tests.builders.gates import frozen_gates, try_gates, verdicts
from tests.builders.processes import ENVIRONMENT
from tests.builders.tiny import prepared, tiny_campaign, tiny_model, write_rows
from tests.builders.warm import Warm
from tests.builders.writing import tiny_writer, writing_campaign
from tests.train.test_checkpoints import SmallDisk

PASSED = dict.fromkeys(GATE_NAMES, "passed")


def cause(rows: list[GateRow], gate: str) -> str:
    return str(next(row.cause for row in rows if row.gate == gate))


def test_every_gate_writes_a_row_with_time_and_memory_and_the_budget_follows(
    model: Path, warm: Warm, tmp_path: Path
) -> None:
    """K35: the estimate of a run holds its evaluations, checkpoints and start-up, and tells its spread."""
    files = tiny_campaign(tmp_path / "c", model)
    gates = frozen_gates(files)
    rows = try_gates(warm, gates)
    assert tuple(row.gate for row in rows) == GATE_NAMES, gates.run.log.read_text()
    assert verdicts(rows) == PASSED, [row.cause for row in rows]
    assert all(row.device == "cpu" and row.allocated_peak is None for row in rows)
    assert all(row.host_before and row.host_peak and row.host_peak >= row.host_before * 0.9 for row in rows)
    by_name = {row.gate: row for row in rows}
    load = by_name["load"].facts
    # 2 layers × (query, value) × rank 4 × (32 in + 32 out) + pooler 32 × 33 + classifier 3 × 33
    assert load["trainable"] == 2 * 2 * 4 * 64 + 32 * 33 + 3 * 33
    assert load["new_parameters"] == ["classifier.bias", "classifier.weight"]
    assert by_name["tiny subset"].facts["right"] == by_name["tiny subset"].facts["examples"] == 8
    assert by_name["resume"].facts == {"updates": 2, "difference": 0.0}
    assert by_name["reload"].facts["difference"] <= by_name["reload"].facts["tolerance"]
    assert not gates.artefact.exists() and not gates.run.checkpoints.exists(), "only the record stays"
    plan, data = prepared(files)
    durations = run_durations(plan, data, rows)
    expected = (
        12 * by_name["steady update"].facts["seconds_per_update"]
        + 2 * by_name["evaluation"].facts["seconds_whole_split"]
        + 4
        * by_name["checkpoint"].facts[
            "seconds"
        ]  # after updates 4, 8 and 12, and 6 where the validation may be the best
        + load["start_seconds"]
    )
    assert durations["control"].seconds == pytest.approx(expected)
    assert durations["base"].seconds < durations["control"].seconds
    assert durations["control"].low < durations["control"].seconds < durations["control"].high


def test_the_first_update_is_the_one_with_the_longest_examples(model: Path, warm: Warm, tmp_path: Path) -> None:
    files = tiny_campaign(tmp_path / "c", model)
    rows = try_gates(warm, frozen_gates(files), until="resume")
    assert next(row.inputs["longest"] for row in rows if row.gate == "first update") == rows[0].facts["longest"]


@pytest.mark.parametrize("task", ["generation", "extraction"])
def test_a_model_that_writes_passes_every_gate(warm: Warm, tmp_path: Path, task: str) -> None:
    files = writing_campaign(tmp_path / "c", tiny_writer(tmp_path / "model"), task)
    gates = frozen_gates(files)
    rows = try_gates(warm, gates)
    tiny = next(row for row in rows if row.gate == "tiny subset")
    others = {gate: verdict for gate, verdict in verdicts(rows).items() if gate != "tiny subset"}
    assert others == dict.fromkeys(others, "passed"), [row.cause for row in rows if row.cause]
    assert set(verdicts(rows)) == set(GATE_NAMES) and tiny.facts["loss"] < tiny.facts["first_loss"]


def test_labels_that_cannot_be_learnt_fail_the_tiny_subset_and_nothing_else(
    model: Path, warm: Warm, tmp_path: Path
) -> None:
    files = tiny_campaign(tmp_path / "c", model, train_rows=60)
    same = [{"text": "where is my card", "label": ("bank", "kitchen", "travel")[i % 3]} for i in range(60)]
    write_rows(files.root / "data" / "train.jsonl", same)
    rows = try_gates(warm, frozen_gates(files))
    assert verdicts(rows) == PASSED | {"tiny subset": "failed"}
    assert "learns nothing" in cause(rows, "tiny subset") and "ftui inspect" in cause(rows, "tiny subset")


def test_a_parameter_that_does_not_move_fails_its_gate(model: Path, warm: Warm, tmp_path: Path) -> None:
    """A rate so small that fp32 rounds it away: the loss looks fine, and nothing trains (K13)."""
    files = tiny_campaign(tmp_path / "c", model, training__learning_rate=1e-30, training__warmup=0)
    rows = try_gates(warm, frozen_gates(files))
    assert verdicts(rows)["parameters moved"] == "failed"
    assert "trained parameters did not move" in cause(rows, "parameters moved")
    assert verdicts(rows)["resume"] == verdicts(rows)["reload"] == "passed"


def test_a_name_that_matches_no_module_fails_the_load(model: Path, warm: Warm, tmp_path: Path) -> None:
    gates = frozen_gates(tiny_campaign(tmp_path / "c", model, method__targets=["nothing"]))
    assert warm.train(gates.root, verb="pilot") == [1]
    rows = read_gates(gates.rows)
    assert [row.verdict for row in rows] == ["passed", "failed"] + ["skipped"] * 10
    assert "'nothing' matches no module" in cause(rows, "load")
    assert cause(rows, "first update") == "depends on 'load', which failed"
    assert next_gate_process(rows) is None


def test_a_base_that_computes_nan_fails_the_first_update(warm: Warm, tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    broken = tiny_model(tmp_path / "broken")
    tensors = load_file(broken / "model.safetensors")
    name = next(n for n in tensors if "attention.output.dense.weight" in n)
    tensors[name][0, 0] = float("nan")
    save_file(tensors, broken / "model.safetensors", {"format": "pt"})
    rows = try_gates(warm, frozen_gates(tiny_campaign(tmp_path / "c", broken)))
    assert "the loss is nan" in cause(rows, "first update")
    assert verdicts(rows)["checkpoint"] == verdicts(rows)["reload"] == "skipped"
    assert "depends on 'first update'" in cause(rows, "resume")


def test_a_base_that_is_not_the_plans_any_more_fails_the_load(warm: Warm, tmp_path: Path) -> None:
    from ftui.record.files import sha256_file

    own = tiny_model(tmp_path / "own")
    files = tiny_campaign(tmp_path / "c", own, model__sha256=sha256_file(own / "model.safetensors"))
    gates = frozen_gates(files)
    weights = own / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-4] + b"\0\0\0\1")
    rows = try_gates(warm, gates)
    assert verdicts(rows)["load"] == "failed" and "not those of the plan" in cause(rows, "load")


def test_data_that_was_changed_after_its_preparation_fails_the_first_gate(
    model: Path, warm: Warm, tmp_path: Path
) -> None:
    files = tiny_campaign(tmp_path / "c", model)
    gates = frozen_gates(files)
    prepared_rows = next(files.data.glob("*/train.jsonl"))
    prepared_rows.write_text(prepared_rows.read_text().replace("bank", "bunk", 1))
    rows = try_gates(warm, gates)
    assert [row.verdict for row in rows] == ["failed"] + ["skipped"] * 11
    assert "not what its manifest describes" in cause(rows, "data")


LIMITED = """
import resource, sys
import ftui.train.pilot, transformers.models.bert.modeling_bert  # libraries first: the limit is for what the pilot itself needs
from pathlib import Path
size = next(int(l.split()[1]) * 1024 for l in Path("/proc/self/status").read_text().splitlines() if l.startswith("VmSize:"))
resource.setrlimit(resource.RLIMIT_AS, (size + int(sys.argv[2]),) * 2)
from ftui.train.__main__ import main
sys.exit(main(["pilot", sys.argv[1]]))
"""


def test_memory_that_runs_out_is_attributed_and_answered_by_remedies(warm: Warm, tmp_path: Path) -> None:
    """A real limit on the process: the update needs more than it may have, its half as a micro-batch would not."""
    files = tiny_campaign(
        tmp_path / "c", tiny_model(tmp_path / "model"), train_rows=3600, training__micro_batch=2880, training__accumulation=1,
        training__max_length=32, machine={"backend": "cpu", "slots": 1},
    )  # fmt: skip
    gates = frozen_gates(files)
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(gates.root), str(300 << 20)],
        capture_output=True, text=True, env=ENVIRONMENT | {"MALLOC_ARENA_MAX": "1"}, check=False,
    )  # fmt: skip
    rows = read_gates(gates.rows)
    assert done.returncode == 1, done.stdout + done.stderr
    short = next(row for row in rows if row.verdict == "failed")
    assert short.gate == "first update" and "out of memory while" in str(short.cause), short.cause
    assert short.facts["out_of_memory"]["part"] in ("activations", "gradients", "logits")
    assert short.facts["out_of_memory"]["asked"] > 0
    first, *others = gate_remedies(rows, load_plan(files.root))
    assert first.change == {"training.micro_batch": 1440, "training.accumulation": 2} and first.keeps_task
    assert "1440 × 2 × 1 = 2880 examples per update" in first.experiment
    assert [remedy.change for remedy in others] == [{"training.activation_checkpointing": True}]
    state = Campaign(gates=[Gates("g001", parse_time(rows[0].at), passed=False)])
    text = gates_text(describe_gates(files, state, load_plan(files.root)))
    assert "training.micro_batch = 1440, training.accumulation = 2" in text and "out of memory while" in text


@pytest.fixture
def full_disk(tmp_path: Path) -> Iterator[SmallDisk]:
    small = SmallDisk(tmp_path / "c" / "gates" / "g001" / "checkpoints")
    yield small
    subprocess.run(["umount", str(small.path)], capture_output=True, check=False)


def test_a_full_disk_fails_the_checkpoint_and_names_it(
    model: Path, warm: Warm, tmp_path: Path, full_disk: SmallDisk
) -> None:
    gates = frozen_gates(tiny_campaign(tmp_path / "c", model))
    full_disk.mount(8)
    rows = try_gates(warm, gates)
    assert verdicts(rows)["checkpoint"] == "failed" and "disk is full" in cause(rows, "checkpoint")
    assert verdicts(rows)["evaluation"] == verdicts(rows)["tiny subset"] == "passed"
    assert {verdicts(rows)[gate] for gate in gates_that_need("checkpoint")} == {"skipped"}


def test_a_resume_that_skips_an_update_fails_its_gate_and_the_artefact_is_still_tried(
    model: Path, warm: Warm, tmp_path: Path
) -> None:
    gates = frozen_gates(tiny_campaign(tmp_path / "c", model))
    try_gates(warm, gates, until="resume")
    (only,) = gates.run.checkpoints.glob("step-*")
    only.rename(only.with_name("step-00000006"))  # one more than it was: the next update's examples come too early
    rows = try_gates(warm, gates)
    assert verdicts(rows) == PASSED | {"resume": "failed"}
    assert "after a resume" in cause(rows, "resume")


def test_an_artefact_that_answers_differently_fails_the_last_gate(model: Path, warm: Warm, tmp_path: Path) -> None:
    gates = frozen_gates(tiny_campaign(tmp_path / "c", model))
    try_gates(warm, gates, until="reload")
    control = json.loads((gates.artefact / "control.json").read_text())
    control["outputs"][0][0] += 0.01
    (gates.artefact / "control.json").write_text(json.dumps(control))
    rows = try_gates(warm, gates)
    assert verdicts(rows) == PASSED | {"reload": "failed"}
    assert "do not agree" in cause(rows, "reload")
    assert gates.artefact.exists(), "what failed can be looked at"


HANGS = """
import sys, threading, torch
from pathlib import Path
from ftui.record.layout import GateFiles
from ftui.train.gates import Gatekeeper
keeper = Gatekeeper(GateFiles(Path(sys.argv[1])), torch.device("cpu"), 0.3)
with keeper.gate("data"):
    pass
with keeper.gate("load"):
    threading.Event().wait()
"""


def test_a_gate_that_hangs_ends_its_process_and_says_so(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", HANGS, str(tmp_path)],
        capture_output=True,
        text=True,
        env=ENVIRONMENT,
        timeout=60,
        check=False,
    )
    rows = read_gates(tmp_path / "rows.jsonl")
    assert done.returncode == 1 and "ftui: load: did not end within" in done.stdout
    assert [row.verdict for row in rows] == ["passed", "failed"] + ["skipped"] * 10


TWO = {"backend": "cpu", "slots": 2, "processes": 2, "strategy": "ddp"}


def test_every_gate_has_a_row_of_each_process(model: Path, warm: Warm, tmp_path: Path) -> None:
    gates = frozen_gates(tiny_campaign(tmp_path / "c", model, machine=TWO))
    rows = try_gates(warm, gates, processes=2)
    expected = [(name, rank) for name in GATE_NAMES[:-1] for rank in range(2)] + [("reload", 0)]
    assert [(row.gate, row.rank) for row in rows] == expected, gates.run.log.read_text()
    assert {row.verdict for row in rows} == {"passed"}
    assert all(row.host_peak for row in rows)


def test_what_needs_a_gate_follows_the_whole_chain() -> None:
    assert gates_that_need("checkpoint") == ["resume", "export", "disk", "reload"]
    assert gates_that_need("evaluation") == [] and gates_that_need("data") == list(GATE_NAMES[1:])


def test_the_largest_micro_batch_is_found_by_measurement(model: Path, warm: Warm, tmp_path: Path) -> None:
    gates = frozen_gates(tiny_campaign(tmp_path / "c", model, training__micro_batch=3, training__accumulation=4))
    assert warm.train(gates.root, verb="fit") == [0], gates.run.log.read_text()
    found = json.loads((gates.root / "fit.json").read_text())
    assert [(one["micro_batch"], one["accumulation"]) for one in found["tried"]] == [
        (1, 12),
        (2, 6),
        (3, 4),
        (4, 3),
        (6, 2),
        (12, 1),
    ]
    assert found["largest"] == 12 and found["planned"] == 3
    assert all(one["fits"] and one["seconds"] > 0 and one["peak"] > 0 for one in found["tried"])
