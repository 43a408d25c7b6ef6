"""Why a process ended: the first cause among all its traces, in words, with its kind and its place in the log.

The logs in `logs/` were made by torch, accelerate and gloo on the CPU, and written by the documented formats for GPUs and NCCL.
"""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from ftui.engine.causes import Evidence, explain
from ftui.engine.logs import attempt_lines
from ftui.engine.postmortem import run_ended, why_ended
from ftui.engine.symptoms import meaning
from ftui.machine.kernel import gpu_faults, kernel_lines
from ftui.record.rows import Outcome, Status
from tests.builders.jobs import ended_job, says, small_job
from tests.builders.processes import until

LOGS = Path(__file__).parent / "logs"


@pytest.mark.parametrize(
    ("name", "processes", "kind", "fault", "sentence", "place"),
    [
        ("two-processes-one-killed", 2, "machine", "killed", "process 2 of 2 was killed by SIGKILL, by hand", "(SIGKILL)"),
        (
            "two-processes-one-raised", 2, "plan", "exception",
            "process 2 of 2: ValueError: label 7 is out of range for 3 classes (w.py:10)", "ValueError: label 7 is",
        ),
        (
            "two-processes-one-hangs", 2, "machine", "timeout",
            "process 1 of 2: a process waited for the others in vain: RuntimeError: [", "Timed out waiting 5000ms",
        ),
        ("nccl-timeout", 2, "machine", "timeout", "process 2 of 2: a process waited for the others in vain: ", "cpp:607] [Rank 1]"),
        (
            "nccl-peer-gone", 2, "plan", "exception",
            "process 2 of 2: RuntimeError: mat1 and mat2 shapes cannot be multiplied (16x384 and 768x11) (ftui/train/loop.py:61)",
            "RuntimeError: mat1",
        ),
        ("cuda-out-of-memory", 1, "plan", "out of memory", "Tried to allocate 20.00 GiB", "torch.OutOfMemoryError"),
        ("cuda-error", 1, "machine", "GPU error", "unspecified launch failure (ftui/train/loop.py:212)", "torch.Accel"),
        ("device-assert", 1, "plan", "GPU assertion", "an index was out of range on the GPU", "torch.AcceleratorError"),
        ("port-in-use", 2, "machine", "port in use", "address already in use", "torch.distributed.DistNetworkError"),
        ("worker-shared-memory", 1, "machine", "shared memory", "exited unexpectedly", "exited unexpectedly"),
    ],
)  # fmt: skip
def test_the_cause_in_a_log_is_the_first_one_and_its_line_is_told(
    name: str, processes: int, kind: str, fault: str, sentence: str, place: str
) -> None:
    log = LOGS / f"{name}.txt"
    cause = explain(Evidence(attempt_lines(log), log.name, processes, exit_code=1))
    assert (cause.kind, cause.name) == (kind, fault)
    assert sentence in cause.sentence
    file, _, line = str(cause.place).partition(":")
    assert file == log.name and place in log.read_text(encoding="utf-8").splitlines()[int(line) - 1]


def test_a_gpu_fault_in_the_kernels_log_comes_before_the_error_it_led_to() -> None:
    faults = gpu_faults(kernel_lines(LOGS / "kernel.txt"), 27_000)
    cause = explain(Evidence(attempt_lines(LOGS / "cuda-error.txt"), exit_code=1, faults=faults))
    assert (cause.kind, cause.name) == ("machine", "Xid 79")
    assert cause.sentence.startswith(
        "GPU fault Xid 79 on PCI:0000:3b:00: the GPU has fallen off the bus; then torch.Acc"
    )
    other = explain(Evidence(attempt_lines(LOGS / "cuda-out-of-memory.txt"), exit_code=1, faults=faults))
    assert other.name == "out of memory", "a fault of a GPU explains no want of memory"


@pytest.mark.parametrize(
    ("said", "kind", "fault"),
    [
        ("the checkpoint after update 10 could not be written: the disk is full (3.1 kB free)", "machine", "disk full"),
        ("SafetensorError: Error while serializing: I/O error: No space left on device (os error 28)", "machine", "disk full"),
        ("OSError: [Errno 122] Disk quota exceeded: '/work'", "machine", "disk full"),
        ("OSError: [Errno 5] Input/output error", "machine", "input/output error"),
        ("OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB", "plan", "out of memory"),
        ("RuntimeError: [enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't allocate memory", "plan", "out of memory"),
        ("_ArrayMemoryError: Unable to allocate 80.0 GiB for an array with shape (10,)", "plan", "out of memory"),
        ("method.targets: 'nothing' matches no module", "plan", "exception"),
        ("RuntimeError: CUDA error: uncorrectable ECC error encountered", "machine", "GPU error"),
        ("RuntimeError: No CUDA GPUs are available", "machine", "no GPU"),
        ("ConnectionError: ('Connection aborted.', ConnectionResetError(104, 'Connection reset by peer'))", "machine", "network"),
        ("FileNotFoundError: [Errno 2] No such file or directory: 'x'", "plan", "exception"),
    ],
)  # fmt: skip
def test_what_a_process_said_itself_has_a_kind(said: str, kind: str, fault: str) -> None:
    symptom = meaning(said)
    assert (symptom.kind, symptom.name) == (kind, fault)


def test_an_exception_is_told_with_the_frame_and_the_line_of_its_own_attempt(tmp_path: Path) -> None:
    ended_job(tmp_path, "raise KeyError('of an earlier attempt')")
    job = ended_job(tmp_path, "print('begun')\nraise KeyError('of this one')")
    cause = why_ended(job)
    assert (cause.kind, cause.name) == ("plan", "exception")
    assert cause.sentence == "KeyError: 'of this one' (<string>:2)"
    number = len(job.log.read_text().splitlines())
    assert cause.place == f"log.txt:{number}"
    silent = ended_job(tmp_path, "import sys; sys.exit(3)")
    assert why_ended(silent).sentence == "ended with code 3 and without a word; see log.txt"


def test_of_one_process_the_last_exception_counts_and_what_was_handled_before_does_not(tmp_path: Path) -> None:
    code = "import traceback\ntry: 1 / 0\nexcept Exception: traceback.print_exc()\nraise ValueError('the end')"
    assert why_ended(ended_job(tmp_path, code)).sentence == "ValueError: the end (<string>:4)"


def test_of_a_chain_of_exceptions_the_one_that_left_counts(tmp_path: Path) -> None:
    """Of several processes the first counts, so the first of a chain must not be taken for one of its own."""
    code = "try: {}['x']\nexcept KeyError as error: raise ValueError('no column x') from error"
    assert why_ended(ended_job(tmp_path, code, processes=2)).sentence == "ValueError: no column x (<string>:2)"


def test_memory_that_may_not_be_had_is_the_plans_fault(tmp_path: Path) -> None:
    limit = f"import resource; resource.setrlimit(resource.RLIMIT_AS, ({1 << 30}, {1 << 30})); bytearray(4 << 30)"
    cause = why_ended(ended_job(tmp_path, limit))
    assert (cause.kind, cause.name, cause.sentence) == ("plan", "out of memory", "MemoryError (<string>:1)")


def test_numpys_own_want_of_memory_is_recognised_though_its_name_is_private(tmp_path: Path) -> None:
    cause = why_ended(ended_job(tmp_path, "import numpy; numpy.ones((1 << 20, 1 << 30))"))
    assert (cause.kind, cause.name) == ("plan", "out of memory") and "Unable to allocate 8.00 PiB" in cause.sentence


def test_an_interrupt_by_hand_was_asked_for(tmp_path: Path) -> None:
    ended = run_ended(ended_job(tmp_path, "import os; os.kill(os.getpid(), 2)\nwhile True: pass"), None)
    assert (ended.status, ended.fields["kind"], ended.fields["fault"]) == ("lost", "asked", "interrupted")


@pytest.fixture
def full_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of one megabyte."""
    folder = tmp_path / "disk"
    folder.mkdir()
    if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", str(folder)]).returncode:
        pytest.skip("this user may mount nothing")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk_is_the_machines(full_disk: Path, tmp_path: Path) -> None:
    code = (
        "import sys; open(sys.argv[1], 'wb', 0).write(b'0' * (1 << 20)); open(sys.argv[1] + '2', 'wb', 0).write(b'1')"
    )
    cause = why_ended(ended_job(tmp_path, code, str(full_disk / "x")))
    assert (cause.kind, cause.name) == ("machine", "disk full"), cause


@pytest.mark.parametrize(
    ("number", "name", "sentence"),
    [
        (signal.SIGKILL, "killed", "killed by SIGKILL, by hand or because memory ran out"),
        (signal.SIGTERM, "killed", "killed by SIGTERM, which nobody in this campaign sent"),
        (signal.SIGSEGV, "crash", "killed by SIGSEGV"),
    ],
)
def test_a_signal_is_named_and_who_may_have_sent_it(tmp_path: Path, number: int, name: str, sentence: str) -> None:
    cause = why_ended(ended_job(tmp_path, f"import os; os.kill(os.getpid(), {int(number)})"))
    assert (cause.kind, cause.name, cause.sentence) == ("machine", name, sentence)


def kernel_log(folder: Path, pid: int) -> Path:
    """A kernel's log, now, in which that process was killed for want of memory."""
    path = folder / "kernel.txt"
    seconds = time.time() - psutil.boot_time() + 1
    path.write_text(
        f"[{seconds:12.6f}] Out of memory: Killed process {pid} (python3) total-vm:221356kB\n", encoding="ascii"
    )
    return path


def test_a_kill_for_want_of_memory_is_told_from_one_by_hand_by_the_kernels_log_and_counters(tmp_path: Path) -> None:
    job = ended_job(tmp_path, "import os; os.kill(os.getpid(), 9)")
    cause = why_ended(job, kernel_log=kernel_log(tmp_path, job.pid))
    assert (cause.kind, cause.name) == ("machine", "OOM killer")
    assert "memory ran out (kernel log: Out of memory: Killed process" in cause.sentence
    assert why_ended(job, kernel_log=kernel_log(tmp_path, job.pid + 1)).name == "killed", "it was another process"
    job.memory_kills -= 1  # inside a container: the ids are others, but the group counted one more
    cause = why_ended(job, kernel_log=tmp_path / "closed")
    assert (cause.name, cause.sentence) == (
        "OOM killer",
        "killed by the kernel because the host's memory ran out (its memory group counted it)",
    )


def test_who_was_asked_to_stop_ended_for_that_reason_and_the_times_are_kept(tmp_path: Path) -> None:
    job = small_job(
        tmp_path, "import signal; signal.signal(15, lambda *_: None); print('ready')\nwhile True: signal.pause()"
    )
    says(job, "ready")
    job.terminate("stopped by the cli")
    job.terminate("the supervisor got SIGTERM")
    assert not job.poll()
    job.kill()
    assert job.poll() and job.exit_code == -signal.SIGKILL
    ended = run_ended(job, None)
    assert ended.status == "lost" and ended.cause is not None and ended.cause.kind == "asked"
    assert ended.cause.sentence.startswith(
        "stopped by the cli; it had not ended 0 s after it was asked to, and was killed"
    )
    assert ended.fields["terminated_at"] <= ended.fields["killed_at"]


def outcome(status: Status, cause: str | None = None) -> Outcome:
    return Outcome(status=status, cause=cause, updates=7, attempt=1, at="2026-12-01T09:00:00.000+00:00")


@pytest.mark.parametrize(
    ("left", "status", "kind"),
    [
        (outcome("completed"), "completed", None),
        (outcome("failed", "ModelError: 'x' matches no module"), "failed", "plan"),
        (outcome("failed", "OutOfMemoryError: CUDA out of memory."), "failed", "plan"),
        (outcome("failed", "the checkpoint after update 7 could not be written: the disk is full (0 B free)"), "lost", "machine"),
        (outcome("failed", "AcceleratorError: CUDA error: unspecified launch failure"), "lost", "machine"),
        (outcome("diverged", "the loss became nan"), "diverged", "plan"),
        (outcome("stopped", "training.stop.max_hours = 2 was reached at update 7"), "stopped", "asked"),
        (None, "lost", "machine"),
    ],
)  # fmt: skip
def test_faults_of_the_plan_are_results_and_those_of_the_machine_are_losses(
    tmp_path: Path, left: Outcome | None, status: str, kind: str | None
) -> None:
    ended = run_ended(ended_job(tmp_path, "pass"), left)
    assert (ended.status, ended.fields["kind"]) == (status, kind)


def test_a_stop_is_told_with_who_asked_for_it(tmp_path: Path) -> None:
    def told(left: Outcome, reason: str | None = None) -> tuple[str | None, str, str]:
        job = ended_job(tmp_path, "pass")
        if reason is not None:
            job.terminate(reason, name="deadline")
        ended = run_ended(job, left)
        assert ended.cause is not None and ended.cause.kind == "asked"
        return ended.status, ended.cause.name, ended.cause.sentence

    stopped = outcome("stopped", "asked to stop after update 7")
    assert told(stopped, "the rental ends") == ("stopped", "deadline", "the rental ends; asked to stop after update 7")
    by_nobody = "by a SIGTERM that nobody in this campaign sent; asked to stop after update 7"
    assert told(stopped) == ("stopped", "stop", by_nobody)
    limit = "training.stop.max_hours = 2 was reached at update 7"
    assert told(outcome("stopped", limit)) == ("stopped", "time limit", limit)
    full = "the checkpoint after update 7 could not be written: the disk is full (0 B free)"
    assert told(outcome("failed", full), "the rental ends") == ("lost", "disk full", f"the rental ends; {full}")


def test_an_exception_before_any_outcome_could_be_written_is_a_result_all_the_same(tmp_path: Path) -> None:
    ended = run_ended(ended_job(tmp_path, "import nothing_of_that_name"), None)
    assert (ended.status, ended.fields["kind"]) == ("failed", "plan")
    assert ended.cause is not None and "No module named 'nothing_of_that_name'" in ended.cause.sentence


def test_a_secret_in_a_quoted_line_is_hidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_secretsecret")
    cause = why_ended(ended_job(tmp_path, "raise ValueError('401 for hf_secretsecret')"))
    assert cause.sentence == "ValueError: 401 for [secret] (<string>:1)"


def test_what_a_job_leaves_behind_is_killed_and_told_and_others_are_left_alone(tmp_path: Path) -> None:
    """K18, K29: a helper in a session of its own, and one in the job's; beside them another job's process."""
    forever = "import time; print('helper', flush=True)\nwhile True: time.sleep(60)"
    starts = (
        "import subprocess, sys\n"
        "for own in (True, False):\n"
        f"    p = subprocess.Popen([sys.executable, '-c', {forever!r}], stdout=subprocess.PIPE, start_new_session=own)\n"
        "    p.stdout.readline(); print(p.pid)\n"
        "sys.stdout.flush(); import os; os._exit(1)"
    )
    (tmp_path / "other").mkdir()
    other = small_job(tmp_path / "other", forever)
    job = ended_job(tmp_path, starts)
    helpers = [int(line) for line in job.log.read_text().splitlines()]
    assert len(helpers) == 2 and all(alive(pid) for pid in helpers)
    ended = run_ended(job, None)
    until(lambda: not any(alive(pid) for pid in helpers), "the helpers are gone")
    assert ended.cause is not None and "; left behind and killed: " in ended.cause.sentence
    assert all(f"(pid {pid})" in ended.cause.sentence for pid in helpers)
    assert len(ended.fields["left_behind"]) == 2
    assert not other.poll()
    other.kill()
    assert other.exit_code == -signal.SIGKILL, "the exit code is the process's own, whoever waited for it"


def alive(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def test_a_job_has_no_input_and_a_session_of_its_own(tmp_path: Path) -> None:
    job = ended_job(
        tmp_path, "import os, sys; print(repr(sys.stdin.read()), os.getsid(0) == os.getpid() == os.getpgrp())"
    )
    assert job.log.read_text() == "'' True\n"


def test_limits_of_the_user_are_told_apart_from_a_full_disk(tmp_path: Path) -> None:
    code = (
        f"import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (1024, {resource.RLIM_INFINITY})); "
        "open(sys.argv[1], 'wb', 0).write(b'0' * 2048); open(sys.argv[1], 'ab', 0).write(b'0')"
    )
    cause = why_ended(ended_job(tmp_path, code, str(tmp_path / "x")))
    assert cause.name != "disk full" and "File too large" in cause.sentence
