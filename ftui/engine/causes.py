"""Why a process ended: one cause, the first, in words, with its kind and its place in the log.

An end leaves many traces: an exit code, the words of each process, the launcher's, the kernel's. One is the cause and the others
are its results. Who was asked to stop is believed first; then what the process itself said; then, for one that could not speak, the
kernel; then the log, where a process that lost another one is never the first.
"""

from __future__ import annotations

import signal
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ftui.engine.logs import LogLine
from ftui.engine.symptoms import GPU_ERROR, Fallen, Finding, Kind, fallen_worker, findings, meaning
from ftui.machine.kernel import Killed, Xid
from ftui.record.secrets import redact


@dataclass(frozen=True)
class Cause:
    """Why a process ended."""

    kind: Kind
    name: str
    """In a word or three, the same for the same fault: "out of memory", "disk full", "killed", "exception" …"""
    sentence: str
    place: str | None = None
    """File and line of the log it was read from, e.g. `log.txt:412`."""


@dataclass(frozen=True)
class Evidence:
    """All that is known of an end."""

    lines: Sequence[LogLine] = ()
    """What the attempt printed."""
    log_name: str = "log.txt"
    processes: int = 1
    exit_code: int | None = None
    """Negative for a signal; None where nobody was there to see it."""
    pid: int | None = None
    said: str | None = None
    """The cause that the process itself left, where it did."""
    stopped: str | None = None
    """Why the supervisor asked it to end, where it did."""
    stop_kind: Kind = "asked"
    stop_name: str = "stop"
    killed_after: float | None = None
    """Seconds after which it was killed because it had not ended as asked."""
    memory_kills: int = 0
    """Processes of its memory group that the kernel ended while it lived."""
    killed: Sequence[Killed] = ()
    """Processes that the kernel ended while it lived, by the kernel's log."""
    faults: Sequence[Xid] = ()
    """GPU faults while it lived, by the kernel's log."""
    restarted: bool = False
    """The machine was started anew since it began."""


def explain(evidence: Evidence) -> Cause:
    """The one cause. Total: whatever the evidence, there is one."""
    cause = _explain(evidence)
    return replace(cause, sentence=redact(cause.sentence))


def _explain(evidence: Evidence) -> Cause:
    if evidence.stopped is not None and evidence.said is None:
        late = evidence.killed_after
        killed = "" if late is None else f"; it had not ended {late:.0f} s after it was asked to, and was killed"
        return Cause(evidence.stop_kind, evidence.stop_name, evidence.stopped + killed)
    lines = list(evidence.lines)
    found = findings(lines)
    if evidence.said is not None:
        return _with_gpu_fault(_what_it_said(evidence.said, lines, found, evidence), evidence)
    fallen = fallen_worker(lines) if evidence.processes > 1 else None
    code = evidence.exit_code if fallen is None else fallen.code
    if code == -signal.SIGKILL:
        return _killed(evidence, fallen)
    chosen = _first(found, fallen, evidence.processes)
    if chosen is not None and not (chosen.symptom.follows and code is not None and code < 0):
        return _with_gpu_fault(_from_finding(chosen, evidence), evidence)
    words = next((line for line in reversed(lines) if line.text.startswith("ftui: ")), None)
    if words is not None and (code is None or code > 0):
        sentence = words.text.removeprefix("ftui: ")
        symptom = meaning(sentence)
        return Cause(symptom.kind, symptom.name, sentence, _place(evidence, words.number))
    if code is not None and code < 0:
        return _with_gpu_fault(_by_signal(-code, evidence, fallen), evidence)
    if code is None:
        if evidence.restarted:
            return Cause("machine", "restart", "its process ended when the host was restarted")
        if evidence.memory_kills or any(killed.pid == evidence.pid for killed in evidence.killed):
            return _killed(evidence, fallen)
        return Cause("machine", "lost", "its process ended while no supervisor was there to see why")
    if code == 0:
        return Cause("machine", "lost", "it ended as if it were done, but left no outcome")
    return Cause("machine", "lost", f"ended with code {code} and without a word; see {evidence.log_name}")


def _what_it_said(said: str, lines: list[LogLine], found: list[Finding], evidence: Evidence) -> Cause:
    """The process's own sentence, and where the log has it."""
    symptom = meaning(said)
    spoken = next((line.number for line in reversed(lines) if line.text == f"ftui: {said}"), None)
    own = [finding for finding in found if not finding.symptom.follows]
    raised = next((f for f in reversed(own) if f.text.partition(": ")[2] and f.text.partition(": ")[2] in said), None)
    number = raised.number if raised is not None else spoken
    return Cause(symptom.kind, symptom.name, said, None if number is None else _place(evidence, number))


def _first(found: list[Finding], fallen: Fallen | None, processes: int) -> Finding | None:
    """The finding that is the cause. Of several processes the first that failed by itself, the one the launcher names before others;
    of one the last, since what came before did not end it."""
    own = [finding for finding in found if not finding.symptom.follows]
    if not found:
        return None
    if processes == 1:
        return (own or found)[-1]
    named = [f for f in own if fallen is not None and f.rank == fallen.rank]
    return (named or own or found)[0]


def _from_finding(finding: Finding, evidence: Evidence) -> Cause:
    who = "" if evidence.processes == 1 or finding.rank is None else f"{_process(finding.rank, evidence)}: "
    words = f"{finding.symptom.words}: " if finding.symptom.words else ""
    frame = f" ({finding.frame})" if finding.frame else ""
    sentence = f"{who}{words}{finding.text}{frame}"
    return Cause(finding.symptom.kind, finding.symptom.name, sentence, _place(evidence, finding.number))


def _killed(evidence: Evidence, fallen: Fallen | None) -> Cause:
    """Ended by SIGKILL, which leaves no words; the kernel may know more."""
    who = "" if fallen is None else f"{_process(fallen.rank, evidence)} was "
    place = None if fallen is None else _place(evidence, fallen.number)
    pids = {evidence.pid, fallen.pid if fallen is not None else None}
    line = next((killed.line for killed in evidence.killed if killed.pid in pids), None)
    if line is None and evidence.memory_kills and evidence.killed:
        line = evidence.killed[0].line  # the ids are those of another namespace; the counter is our group's
    if line is not None or evidence.memory_kills:
        said = f" (kernel log: {line})" if line else " (its memory group counted it)"
        return Cause(
            "machine", "OOM killer", f"{who}killed by the kernel because the host's memory ran out{said}", place
        )
    return Cause("machine", "killed", f"{who}{killed_by(signal.SIGKILL)}", place)


def _by_signal(number: int, evidence: Evidence, fallen: Fallen | None) -> Cause:
    who = "" if fallen is None else f"{_process(fallen.rank, evidence)} was "
    place = None if fallen is None else _place(evidence, fallen.number)
    crashed = number in (signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT, signal.SIGFPE, signal.SIGILL)
    name = "crash" if crashed else "killed"
    return Cause("machine", name, f"{who}{killed_by(number)}", place)


_HINTS: dict[int, str] = {
    signal.SIGKILL: ", by hand or because memory ran out",
    signal.SIGTERM: ", which nobody in this campaign sent",
    signal.SIGBUS: ": often shared memory or a disk that is full",
    signal.SIGXFSZ: ": a file grew beyond the limit set for this user",
}


def killed_by(number: int) -> str:
    """A signal in words, and who may have sent it."""
    try:
        name = signal.Signals(number).name
    except ValueError:
        name = f"signal {number}"
    return f"killed by {name}{_HINTS.get(number, '')}"


def _with_gpu_fault(cause: Cause, evidence: Evidence) -> Cause:
    """A CUDA error, or a crash, is the result of the fault that the driver reported before it."""
    if not evidence.faults or cause.name not in (GPU_ERROR, "no GPU", "timeout", "crash"):
        return cause
    xid = evidence.faults[0]
    sentence = f"GPU fault Xid {xid.number} on {xid.device}: {xid.words}; then {cause.sentence}"
    return Cause("machine", f"Xid {xid.number}", sentence, cause.place)


def _process(rank: int, evidence: Evidence) -> str:
    return f"process {rank + 1} of {evidence.processes}"


def _place(evidence: Evidence, number: int) -> str:
    return f"{evidence.log_name}:{number}"
