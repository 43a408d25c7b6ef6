"""What the kernel says of processes it ended and GPUs that failed, from its log and from the counters of memory groups."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ftui.machine.kernel import LOG, gpu_faults, kernel_lines, killed_for_memory, memory_kills

PRINTED = Path(__file__).parent.parent / "engine" / "logs" / "kernel.txt"


def test_processes_ended_for_want_of_memory_since_a_moment_with_the_kernels_own_line() -> None:
    lines = kernel_lines(PRINTED)
    assert [killed.pid for killed in killed_for_memory(lines, 0)] == [77, 22885]
    (killed,) = killed_for_memory(lines, 27_000)
    assert killed.pid == 22885 and killed.line.startswith("Memory cgroup out of memory: Killed process 22885 (python3)")
    assert killed_for_memory(lines, 27_022) == []


def test_a_gpu_fault_is_named_and_what_only_follows_from_one_is_not_taken_for_it() -> None:
    (fault,) = gpu_faults(kernel_lines(PRINTED), 0)
    assert (fault.number, fault.device, fault.words) == (79, "PCI:0000:3b:00", "the GPU has fallen off the bus")


def test_a_log_that_cannot_be_read_says_nothing(tmp_path: Path) -> None:
    assert kernel_lines(tmp_path / "none") == []


@pytest.mark.skipif(not os.access(LOG, os.R_OK), reason="the kernel's log is closed to this user")
def test_the_running_kernels_log_is_read_to_its_end_without_waiting_for_more() -> None:
    lines = kernel_lines()
    assert lines and [line.seconds for line in lines] == sorted(line.seconds for line in lines)


def test_counters_of_the_own_and_outer_groups_of_both_versions(tmp_path: Path) -> None:
    root, own = tmp_path / "cgroup", tmp_path / "own"
    (root / "outer" / "inner").mkdir(parents=True)
    own.write_text("0::/outer/inner\n", encoding="ascii")
    assert memory_kills(root, own) == 0, "no group counts"
    (root / "outer" / "inner" / "memory.events").write_text(
        "low 0\nhigh 9\nmax 31\noom 4\noom_kill 2\noom_group_kill 0\n"
    )
    (root / "outer" / "memory.events").write_text("oom 4\noom_kill 3\n")
    assert memory_kills(root, own) == 5
    (root / "memory" / "job").mkdir(parents=True)
    (root / "memory" / "job" / "memory.oom_control").write_text("oom_kill_disable 0\nunder_oom 0\noom_kill 7\n")
    own.write_text("4:memory:/job\n", encoding="ascii")
    assert memory_kills(root, own) == 7


@pytest.fixture
def narrow_group() -> Iterator[Path]:
    """A memory group of 60 MB, of version 1 or 2, where this user may make one."""
    for base, limit in (
        (Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes"),
        (Path("/sys/fs/cgroup"), "memory.max"),
    ):
        group = base / f"ftui-test-{os.getpid()}"
        try:
            group.mkdir()
            (group / limit).write_text(str(60 << 20))
        except OSError:
            if group.is_dir():
                group.rmdir()
            continue
        yield group
        group.rmdir()
        return
    pytest.skip("this user may make no memory group")


def test_a_real_kill_by_the_kernel_is_counted_and_found_in_its_log(narrow_group: Path, tmp_path: Path) -> None:
    own = tmp_path / "own"
    version_1 = narrow_group.parent.name == "memory"
    own.write_text(f"4:memory:/{narrow_group.name}\n" if version_1 else f"0::/{narrow_group.name}\n", encoding="ascii")
    root = narrow_group.parent.parent if version_1 else narrow_group.parent
    before = memory_kills(root, own)
    greedy = "import os, sys; open(sys.argv[1], 'w').write(str(os.getpid())); bytearray(200 << 20)"
    process = subprocess.Popen([sys.executable, "-c", greedy, str(narrow_group / "cgroup.procs")])
    assert process.wait() == -signal.SIGKILL
    assert memory_kills(root, own) == before + 1
    if os.access(LOG, os.R_OK):
        assert process.pid in [killed.pid for killed in killed_for_memory(kernel_lines(), 0)]
