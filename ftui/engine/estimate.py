"""What is still to come, in seconds, as a supervisor knows it: from the pilot at first, from the runs themselves as they go (R3)."""

from __future__ import annotations

from ftui.engine.steps import GRACE_SECONDS
from ftui.plan.budget import Spread
from ftui.plan.durations import RunCosts, plan_durations, remaining_duration
from ftui.plan.schema import Plan
from ftui.record.estimates import closing_durations, follow_up_durations, run_costs
from ftui.record.layout import CampaignFiles
from ftui.record.rows import GateRow, read_gates
from ftui.record.spent import READ_BYTES, SpentReader, current_costs
from ftui.record.state import Campaign, Run

LONGEST_GRACE_SECONDS = 1800.0
"""No job is given longer than this to stop, however slow its updates and checkpoints are."""


class Estimate:
    """Durations of runs and of what follows them. Empty until the gates have passed."""

    def __init__(self, files: CampaignFiles, plan: Plan) -> None:
        self._files, self._plan = files, plan
        self.pilot: dict[str, RunCosts] = {}
        """What the pilot measured of each variant's runs."""
        self._rows: list[GateRow] = []
        self._series: dict[str, SpentReader] = {}
        self._ended: set[str] = set()
        self.durations: dict[str, Spread] = {}
        """Of one run of each variant, and of each follow-up by its id, from its beginning."""
        self.remaining: dict[str, Spread] = {}
        """Of each run of which something is done already, a new start included where it needs one."""
        self.closing: dict[str, Spread] = {}
        """Of one `evaluation` on the test split and one `export`."""
        self.grace_seconds = GRACE_SECONDS
        """How long a run may take to stop: for an update, a validation it is in the middle of, and a checkpoint."""

    def measure(self, state: Campaign, *, whole: bool = False) -> None:
        """Take up what the last gates that passed have measured. With `whole`, every series is read to its end at once."""
        passed = [gates for gates in state.gates if gates.passed]
        if passed and state.data is not None:
            rows = self._rows = read_gates(self._files.gates(passed[-1].id).rows)
            self.pilot = run_costs(self._plan, state.data, rows)
            self.closing = closing_durations(state.data, rows)
        self.follow(state, READ_BYTES if not whole else None)

    def follow(self, state: Campaign, limit_bytes: int | None = READ_BYTES) -> None:
        """Take up what runs have done since the last look. Reads only what is new, and of ended runs nothing any more."""
        if not self.pilot or state.data is None:
            return
        for run in state.runs.values():
            if run.attempts and run.id not in self._ended:
                self._series.setdefault(run.id, SpentReader(self._files.run(run.id).series)).read(limit_bytes)
        self._ended = {run.id for run in state.runs.values() if run.status not in ("queued", "running", "lost")}
        spent = {run: reader.spent for run, reader in self._series.items()}
        variants = {run.id: run.variant for run in state.runs.values()}
        costs = current_costs(self.pilot, spent, variants)
        follow_ups = follow_up_durations(state, self._plan, self._rows)
        self.durations = {**plan_durations(self._plan, state.data, costs), **follow_ups}
        self.remaining = {}
        for run in state.runs.values():
            done = self._done(run)
            if done and run.variant in costs and run.follows is None:  # a follow-up may have another length
                left = remaining_duration(self._plan, state.data, run.variant, costs[run.variant], done)
                start = costs[run.variant].start if run.status != "running" else Spread(0, 0, 0)
                self.remaining[run.id] = start + left
        slowest = max(
            (one.update.high + one.validation.high + one.checkpoint.high for one in costs.values()), default=0
        )
        self.grace_seconds = min(LONGEST_GRACE_SECONDS, max(GRACE_SECONDS, 2 * slowest))

    def _done(self, run: Run) -> int:
        """The update a run has reached or, where it has to start again, that of its checkpoint."""
        if run.status == "running" and run.id in self._series:
            return self._series[run.id].spent.updates
        return run.updates if run.status in ("queued", "lost") else 0
