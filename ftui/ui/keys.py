"""Every key of the app, in one place. Screens and panels take their bindings from here; help and the palette are made of them.

A tooltip is the sentence that help shows; the description is the word at the bottom of the screen, where `show` is set.
"""

from __future__ import annotations

from textual.binding import Binding


def key(
    id: str, keys: str, action: str, word: str, sentence: str, *, show: bool = False, display: str | None = None
) -> Binding:
    """A binding as this app wants them: with an id, a word and a sentence."""
    return Binding(keys, action, word, show=show, key_display=display, tooltip=sentence, id=id)


EVERYWHERE = (
    key("app.help", "question_mark,f1", "help", "keys", "Show the keys of this screen", show=True, display="?"),
    key("app.palette", "ctrl+p,colon", "app.command_palette", "actions", "Find an action by name", display="^p"),
    key("app.note", "n", "note", "note", "Write into the campaign's notebook", show=True),
    key("app.quit", "q", "leave", "quit", "Leave the app; training goes on", show=True),
    key("app.back", "escape", "back", "back", "Leave one layer", display="Esc"),
)

PANEL = (
    key("panel.down", "down,j", "move(1)", "down", "One line down", display="↓ j"),
    key("panel.up", "up,k", "move(-1)", "up", "One line up", display="↑ k"),
    key("panel.page-down", "pagedown", "page(1)", "page down", "One page down", display="PgDn"),
    key("panel.page-up", "pageup", "page(-1)", "page up", "One page up", display="PgUp"),
    key("panel.first", "home,g", "end(-1)", "first", "To the first line", display="Home g"),
    key("panel.last", "end,G", "end(1)", "last", "To the last line", display="End G"),
)

HOME = (
    key("home.open", "enter", "open", "open", "Open the monitor of the campaign", show=True, display="Enter"),
    key("home.start", "s", "start", "start", "Launch the campaign, or continue it", show=True),
    key("home.report", "r", "report", "report", "Read the campaign's report", show=True),
    key("home.inspect", "i", "inspect", "inspect", "See the data as the loss will see it", show=True),
    key("home.edit", "e", "edit", "plan", "Read or change the plan, step by step", show=True),
    key("home.new", "N", "new", "new", "Plan a new campaign", show=True),
    key("home.doctor", "d", "doctor", "doctor", "See whether this machine is fit for a campaign"),
    key("home.reload", "f5,R", "reload", "reload", "Look for campaigns again", display="F5 R"),
)

MONITOR = (
    key("monitor.focus-1", "1", "focus_panel('runs')", "runs", "Go to the runs"),
    key("monitor.focus-2", "2", "focus_panel('chart')", "chart", "Go to the chart"),
    key("monitor.focus-3", "3", "focus_panel('machine')", "machine", "Go to the machine"),
    key("monitor.focus-4", "4", "focus_panel('gates')", "gates", "Go to the gates"),
    key("monitor.focus-5", "5", "focus_panel('clock')", "clock", "Go to the rental clock"),
    key("monitor.focus-6", "6", "focus_panel('log')", "log", "Go to the log"),
    key("monitor.next", "tab", "next_panel(1)", "next panel", "Next panel", display="Tab"),
    key("monitor.previous", "shift+tab", "next_panel(-1)", "panel before", "Panel before", display="Shift+Tab"),
    key(
        "monitor.full",
        "f,enter",
        "full",
        "full",
        "Show the focused panel alone; again to go back",
        show=True,
        display="f",
    ),
    key(
        "monitor.mark",
        "space",
        "mark",
        "mark",
        "Mark the run; with marks, only marked runs are drawn",
        show=True,
        display="Space",
    ),
    key(
        "monitor.metric",
        "m",
        "metric",
        "metric",
        "Switch the chart: loss, then each validation metric there is",
        show=True,
    ),
    key("monitor.smoother", "s", "smooth(1)", "smooth", "Smooth the curves more", show=True),
    key("monitor.rougher", "S", "smooth(-1)", "smooth less", "Smooth the curves less"),
    key("monitor.log-y", "y", "log_y", "log y", "Logarithmic or linear values"),
    key("monitor.x-axis", "x", "x_axis", "x axis", "Count in updates, tokens or time"),
    key("monitor.zoom-in", "plus,equals_sign", "zoom(1)", "zoom in", "Zoom in", show=True, display="+"),
    key("monitor.zoom-out", "minus", "zoom(-1)", "zoom out", "Zoom out", display="-"),
    key("monitor.zoom-reset", "0", "zoom(0)", "whole curve", "Show the whole curve"),
    key("monitor.pan-left", "left,h", "pan(-1)", "left", "Move a zoomed chart to the left", display="← h"),
    key("monitor.pan-right", "right,l", "pan(1)", "right", "Move a zoomed chart to the right", display="→ l"),
    key("monitor.follow", "F", "follow", "follow", "Keep the newest in view, in a zoomed chart and in the log"),
    key("monitor.pause", "p", "pause", "pause", "Hold the view still; training goes on", show=True),
    key("monitor.wrap", "w", "wrap", "wrap", "Wrap long lines of the log, or cut them"),
    key("monitor.events", "v", "events", "events", "Switch panel 6 between the run's log and the campaign's events"),
    key("monitor.report", "r", "report", "report", "Read the report", show=True),
    key("monitor.inspect", "i", "inspect", "inspect", "See the data as the loss sees it", show=True),
    key(
        "monitor.queue",
        "P",
        "pause_queue",
        "pause queue",
        "Let nothing new start; again lets the queue go on",
        show=True,
    ),
    key(
        "monitor.hold",
        "H",
        "hold_run",
        "pause run",
        "Pause the run under the cursor with a checkpoint; again lets it go on",
    ),
    key(
        "monitor.earlier",
        "less_than_sign",
        "reorder(-1)",
        "earlier",
        "Start the waiting run before its neighbour",
        display="<",
    ),
    key(
        "monitor.later",
        "greater_than_sign",
        "reorder(1)",
        "later",
        "Start the waiting run after its neighbour",
        display=">",
    ),
    key("monitor.relaunch", "R", "relaunch", "relaunch", "Queue a run that follows this one with other settings"),
    key(
        "monitor.kill", "X", "kill_run", "kill run", "End the run at once, without a checkpoint, after typing its name"
    ),
    key("monitor.stop", "K", "stop_run", "stop run", "Stop the run under the cursor, after typing its name", show=True),
)

INSPECT = (
    key("inspect.next", "right,l", "step(1)", "next", "The next example", show=True, display="→ l"),
    key("inspect.previous", "left,h", "step(-1)", "before", "The example before", show=True, display="← h"),
    key("inspect.far-next", "right_square_bracket", "step(100)", "100 on", "A hundred examples on", display="]"),
    key(
        "inspect.far-previous", "left_square_bracket", "step(-100)", "100 back", "A hundred examples back", display="["
    ),
    key("inspect.first", "less_than_sign", "jump(-1)", "first", "The first example", display="<"),
    key("inspect.last", "greater_than_sign", "jump(1)", "last", "The last example", display=">"),
    key("inspect.loss", "L", "to_loss", "to the loss", "Scroll to the first token that carries loss"),
    key("inspect.filter", "slash", "filter", "text", "Only rows that say something", show=True, display="/"),
    key("inspect.category", "x", "category(1)", "category", "Only one category: the next one", show=True),
    key("inspect.category-before", "X", "category(-1)", "category before", "Only one category: the one before"),
    key("inspect.order", "o", "order", "longest", "Longest first, or the data's order", show=True),
    key("inspect.only", "t", "only", "cut", "All rows, those over the length, or those that cannot be used", show=True),
    key("inspect.split", "v", "split", "split", "Switch between train and validation; the test is sealed", show=True),
    key("inspect.focus-1", "1", "focus_panel('example')", "example", "Go to the example"),
    key("inspect.focus-2", "2", "focus_panel('facts')", "facts", "Go to findings and facts", show=True),
    key(
        "inspect.panel", "tab,shift+tab", "next_panel", "next panel", "Switch between example and facts", display="Tab"
    ),
    key("inspect.reload", "f5,R", "reload", "reload", "Read and encode the data again", display="F5 R"),
)

REPORT = (
    key("report.page-down", "space", "page(1)", "page down", "One page down", show=True, display="Space"),
    key("report.page-up", "b", "page(-1)", "page up", "One page up", show=True),
)

WIZARD = (
    key(
        "wizard.answer", "enter", "answer", "answer", "Answer the question under the cursor", show=True, display="Enter"
    ),
    key("wizard.next", "right,l", "turn(1)", "next step", "The next step", show=True, display="→ l"),
    key("wizard.previous", "left,h", "turn(-1)", "step before", "The step before", display="← h"),
    *(
        key(
            f"wizard.step-{number}",
            str(number % 10),
            f"go({number - 1})",
            f"step {number}",
            "Go to the step of this number; 0 is the tenth",
            display="1 – 0" if number == 1 else None,
        )
        for number in range(1, 11)
    ),
    key(
        "wizard.clear",
        "x,delete",
        "clear",
        "take out",
        "Take the answer out of the file: the default holds",
        display="x",
    ),
    key("wizard.add", "a", "add", "add", "Add a guardrail or a variant", show=True),
    key("wizard.drop", "d", "drop", "drop", "Drop the guardrail or variant under the cursor; u brings it back"),
    key("wizard.earlier", "less_than_sign", "shift(-1)", "earlier", "Move the item up", display="<"),
    key("wizard.later", "greater_than_sign", "shift(1)", "later", "Move the item down", display=">"),
    key("wizard.grid", "g", "grid", "grid", "Write variants for a grid of values", show=True),
    key("wizard.cut", "c", "cut", "make room", "Take one of the cuts that would make every run fit"),
    key("wizard.undo", "u", "undo", "undo", "Take the last change back", show=True),
    key("wizard.predict", "m", "predict", "memory", "Predict memory and time on a device not rented yet", show=True),
    key("wizard.inspect", "i", "inspect", "inspect", "See the data as the loss will see it", show=True),
    key("wizard.launch", "L", "launch", "launch", "Freeze the plan and launch the campaign", show=True),
    key("wizard.panel", "tab", "next_panel(1)", "next panel", "Next panel", display="Tab"),
    key("wizard.panel-before", "shift+tab", "next_panel(-1)", "panel before", "Panel before", display="Shift+Tab"),
    key("wizard.reload", "f5,R", "reload", "reload", "Read campaign.toml and the data again", display="F5 R"),
)

DOCTOR = (key("doctor.reload", "f5,R", "reload", "again", "Ask the machine again", show=True, display="F5 R"),)

ENTRY = (
    key("entry.save", "enter", "save", "save", "Save what is written", show=True, display="Enter"),
    key("entry.line", "ctrl+n", "new_line", "new line", "Begin a new line", show=True, display="^n"),
    key(
        "entry.leave",
        "escape",
        "leave",
        "leave",
        "Leave; what is written is kept for next time",
        show=True,
        display="Esc",
    ),
)

DIALOG = (key("dialog.cancel", "escape", "cancel", "cancel", "Close without doing anything", show=True, display="Esc"),)

CHOICE = (
    key(
        "choice.take",
        "enter",
        "take",
        "take",
        "Take what is under the cursor, or all that is marked",
        show=True,
        display="Enter",
    ),
    key("choice.mark", "space", "mark", "mark", "Mark or unmark", show=True, display="Space"),
    key("choice.type", "t", "type", "type it", "Type another answer", show=True),
    key("choice.cancel", "escape", "cancel", "cancel", "Leave the answer as it is", show=True, display="Esc"),
)

HELP = (
    key("help.close", "escape,q,question_mark,f1", "close", "close", "Close the help", show=True, display="Esc"),
    key("help.down", "down,j", "move(1)", "down", "One line down", display="↓ j"),
    key("help.up", "up,k", "move(-1)", "up", "One line up", display="↑ k"),
    key("help.page-down", "pagedown,space", "page(1)", "page down", "One page down", display="Space"),
    key("help.page-up", "pageup,b", "page(-1)", "page up", "One page up", display="b"),
)

ALL = (*EVERYWHERE, *PANEL, *HOME, *MONITOR, *INSPECT, *WIZARD, *REPORT, *DOCTOR, *ENTRY, *DIALOG, *CHOICE, *HELP)


def shown_key(binding: Binding) -> str:
    """The key as help writes it."""
    return binding.key_display or binding.key.split(",")[0]
