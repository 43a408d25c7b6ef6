"""Samples of the host and of process trees, with real processes."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import psutil

from ftui.machine.cgroup import MemoryLimit, memory_limit
from ftui.machine.sample import Sample, Sampler
from ftui.record.rows import machine_reader, machine_writer

TREE = """
import subprocess, sys
child = "block = bytearray(64 << 20); print('ready', flush=True); import sys; sys.stdin.read()"
inner = subprocess.Popen([sys.executable, "-c", child], stdin=sys.stdin)
inner.wait()
"""
BUSY = "print('ready', flush=True)\nwhile True: pass"


def start(code: str) -> subprocess.Popen[str]:
    process = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    return process


def end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()


def test_memory_of_a_run_is_that_of_its_whole_tree(tmp_path: Path) -> None:
    process = start(TREE)
    try:
        (child,) = psutil.Process(process.pid).children()
        found = Sampler(tmp_path).sample({"r001": process.pid}).runs["r001"]
        expected = child.memory_info().rss + psutil.Process(process.pid).memory_info().rss
        assert abs(found.rss_bytes - expected) < 4 << 20
        assert found.rss_bytes > 64 << 20
    finally:
        end(process)


def test_processor_use_is_measured_between_samples(tmp_path: Path) -> None:
    sampler, busy, idle = Sampler(tmp_path), start(BUSY), start(TREE)
    try:
        trees = {"busy": busy.pid, "idle": idle.pid}
        sampler.sample(trees)
        used = psutil.Process(busy.pid).cpu_times().user
        while psutil.Process(busy.pid).cpu_times().user < used + 0.3:
            time.sleep(0.01)
        runs = sampler.sample(trees).runs
        assert runs["busy"].cpu_percent > 10 > runs["idle"].cpu_percent
    finally:
        end(busy)
        end(idle)


def test_gone_zombie_and_unknown_processes_are_absent(tmp_path: Path) -> None:
    process = start(BUSY)
    process.kill()
    while psutil.Process(process.pid).status() != psutil.STATUS_ZOMBIE:
        time.sleep(0.01)
    try:
        sample = Sampler(tmp_path).sample({"zombie": process.pid, "gone": 2**22 + 1, "own": os.getpid()})
        assert set(sample.runs) == {"own"}
    finally:
        process.communicate()


def test_sample_comes_back_from_its_file(tmp_path: Path, nvml) -> None:
    nvml(2)
    sample = Sampler(tmp_path).sample({"own": os.getpid()})
    assert len(sample.gpus) == 2 and sample.host.memory_total > sample.host.memory_used > 0
    assert sample.host.disk_total > sample.host.disk_free > 0
    with machine_writer(tmp_path / "machine.jsonl") as writer:
        writer.write(sample.row())
    (row,) = machine_reader(tmp_path / "machine.jsonl").read()
    assert Sample.from_row(row) == sample
    row["host"]["added_later"] = 1
    row["added_later"] = {}
    assert Sample.from_row(row) == sample


def test_silent_gpu_library_is_said_in_the_sample(tmp_path: Path, nvml) -> None:
    fake = nvml(1)
    fake.fail["nvmlDeviceGetCount"] = fake.NVMLError("Unknown Error")
    sample = Sampler(tmp_path).sample()
    assert (sample.gpus, sample.gpu_problem) == ([], "the NVIDIA library answers: Unknown Error")


def group(folder: Path, limit: str, used: int, names: tuple[str, str, str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / names[0]).write_text(limit + "\n")
    (folder / names[1]).write_text(f"{used}\n")
    (folder / "memory.stat").write_text(f"anon 1\n{names[2]} 100\n")


V2 = ("memory.max", "memory.current", "inactive_file")
V1 = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")


def test_tightest_limit_of_the_own_and_outer_groups_counts(tmp_path: Path) -> None:
    root, own = tmp_path / "cgroup", tmp_path / "own"
    own.write_text("0::/outer/inner\n")
    group(root / "outer" / "inner", "max", 500, V2)
    assert memory_limit(root, own) is None
    group(root / "outer", "4000", 1500, V2)
    group(root / "other", "10", 1, V2)
    assert memory_limit(root, own) == MemoryLimit(1400, 4000)
    group(root / "outer" / "inner", "2000", 500, V2)
    assert memory_limit(root, own) == MemoryLimit(400, 2000)


def test_limits_of_version_1_are_found_where_a_container_sees_them(tmp_path: Path) -> None:
    root, own = tmp_path / "cgroup", tmp_path / "own"
    own.write_text("5:cpu,cpuacct:/x\n4:memory:/docker/abc\n0::/\n")
    group(root / "memory", "9223372036854771712", 700, V1)
    assert memory_limit(root, own) is None
    group(root / "memory", "3000", 700, V1)
    assert memory_limit(root, own) == MemoryLimit(600, 3000)
    assert memory_limit(tmp_path / "nothing", tmp_path / "nothing") is None
