"""What the monitor's keys wish of a campaign's supervisor. A wish is left as a file; its answer comes back in the record."""

from __future__ import annotations

from typing import Any, Literal

from textual import work

from ftui.record.layout import CampaignFiles
from ftui.record.requests import Kind
from ftui.record.state import Campaign, Run, priority_to_move
from ftui.record.text import safe
from ftui.ui.screens.base import FtuiScreen


class WishingScreen(FtuiScreen):
    """A screen of one campaign, with a run under its cursor."""

    files: CampaignFiles
    state: Campaign

    def __init__(self) -> None:
        super().__init__()
        self._asked: dict[str, str] = {}
        """Wishes that wait for their answer: what to say when it is yes, by their ids."""

    @property
    def chosen_run(self) -> Run | None:
        """The run under the cursor."""
        raise NotImplementedError

    def hear(self, state: Campaign) -> None:
        """Say what became of this screen's wishes."""
        for identity in self._asked.keys() & state.answers.keys():
            row, said = state.answers[identity], self._asked.pop(identity)
            if row["answer"] == "done":
                self._say(said.format(new_run=row.get("new_run")))
            else:
                self._say(f"Refused: {row['reason']}", "error")

    def _say(self, sentence: str, severity: Literal["information", "warning", "error"] = "information") -> None:
        self.app.notify(safe(sentence), title=self.files.name, severity=severity, markup=False)

    @work(thread=True, group="requests")
    def wish(self, kind: Kind, run: str | None, said: str, **fields: Any) -> None:
        """Leave a wish; `said` is what it comes to when it is granted."""
        try:
            sentence, failed = self._leave(kind, run, said, **fields), False
        except Exception as error:  # whatever it is, who wished has to know
            sentence, failed = str(error) or type(error).__name__, True
        if sentence:
            self.app.call_from_thread(self._say, sentence, "error" if failed else "information")

    def _leave(self, kind: Kind, run: str | None, said: str, **fields: Any) -> str:
        """Leave a wish from a thread; returns a sentence where no answer will come soon. Raises with the reason of a refusal."""
        from ftui.engine.client import EngineError, ask, supervisor_alive

        asked = ask(self.files, kind, run=run, by="app", patience=0, **fields)
        if asked.answer == "refused":
            raise EngineError(f"Refused: {asked.reason}")
        if asked.answer == "done":
            return said.format(new_run=asked.new_run)
        if not supervisor_alive(self.files):
            return "Kept for the next supervisor: `s` on the first screen or `ftui run` starts one."
        self._asked[asked.request.id] = said
        self.app.call_from_thread(lambda: self.hear(self.state))  # the answer may have come in between
        return ""

    def action_pause_queue(self) -> None:
        if self.state.paused:
            self.wish("resume-queue", None, "The queue goes on.")
        else:
            self.wish("pause-queue", None, "The queue is paused: what runs goes on, nothing new starts.")

    def action_hold_run(self) -> None:
        if (run := self._chosen()) is None:
            return
        if run.held is not None or run.status in ("stopped", "lost"):
            self.wish("resume-run", run.id, f"{run.id} goes on when there is a place for it.")
        else:
            self.wish("pause-run", run.id, f"{run.id} is paused; H lets it go on.")

    def action_reorder(self, direction: int) -> None:
        if (run := self._chosen()) is None:
            return
        if run.status != "queued":
            self._say(f"{run.id} is {run.shown}; only a run that waits has a place in the queue", "warning")
        elif (priority := priority_to_move(self.state.runs_of("queued"), run, direction)) is None:
            self._say(f"{run.id} is the {'first' if direction < 0 else 'last'} of those that wait", "warning")
        else:
            self.wish("priority", run.id, f"{run.id} has priority {priority} now.", priority=priority)

    def action_stop_run(self) -> None:
        consequence = "It finishes its update, writes a checkpoint and stops. The queue goes on with the next run."
        self._end_run("Stop a run", "stop-run", consequence, "is asked to stop")

    def action_kill_run(self) -> None:
        consequence = "Its processes end at once, without a checkpoint: updates since the last one are lost. K stops it gracefully."
        self._end_run("Kill a run", "kill-run", consequence, "is killed")

    def _end_run(self, title: str, kind: Kind, consequence: str, said: str) -> None:
        from ftui.ui.screens.confirm import TypedConfirmation

        run = self.chosen_run
        if run is None or run.status != "running":
            what = f"{run.id} is {run.shown}" if run else "there is no run"
            self._say(f"{what}; only a running run can be stopped")
            return
        name = run.id

        def answered(confirmed: bool | None) -> None:
            if confirmed:
                self.wish(kind, name, f"{name} {said}.")

        self.app.push_screen(TypedConfirmation(title, consequence, name), answered)

    def action_relaunch(self) -> None:
        if (run := self._chosen()) is not None:
            self._ask_change(run.id, "")

    def _ask_change(self, run: str, typed: str) -> None:
        """Ask what is changed until it can be, or the question is left; then why."""
        from ftui.engine.wishes import refusal
        from ftui.plan.followup import ChangeRefused, parse_change
        from ftui.record.requests import make_request
        from ftui.ui.screens.ask import TextQuestion

        def answered(text: str | None) -> None:
            if not (text or "").strip():
                return
            try:
                change = parse_change([text or ""])
                sample = make_request("relaunch", run=run, by="app", change=change, because="asked next")
                problem = refusal(self.state, sample)
            except ChangeRefused as refused:
                problem = str(refused)
            if problem is None:
                self._ask_reason(run, text or "", change)
            else:
                self._say(problem, "error")
                self._ask_change(run, text or "")

        self.app.push_screen(TextQuestion(f"Relaunch {run} with (rank = 16; lr = 5e-5)", typed), answered)

    def _ask_reason(self, run: str, typed: str, change: dict[str, Any]) -> None:
        from ftui.ui.screens.entry import TextEntry

        def save(text: str) -> str:
            because = " ".join(text.split())
            done = f"{{new_run}} follows {run} and waits in the queue."
            return self._leave("relaunch", run, done, change=change, because=because) or "Asked for."

        about = f"A new run follows {run} with {typed.strip()}. It is reported, and takes no part in the comparison. Why is it made?"
        self.app.push_screen(TextEntry("Relaunch: why?", about, (f"relaunch {run}", self.files), save))

    def _chosen(self) -> Run | None:
        run = self.chosen_run
        if run is None:
            self._say("There is no run yet.", "warning")
        return run
