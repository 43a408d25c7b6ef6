"""Questions of the wizard that are about no field: which device to predict for, and whether to launch."""

from __future__ import annotations

from datetime import datetime

from textual.app import App

from ftui.machine.devices import CATALOGUE, GIB, UnknownDevice, find_device
from ftui.plan.draft import Draft
from ftui.plan.fields import all_fields
from ftui.ui.screens.edit import ChoiceEditor, Offer, TextEditor
from ftui.ui.wizard.scene import Scene


async def ask_for_device(app: App[None], scene: Scene) -> str | None:
    """Name or size of a device, None when left."""
    found = dict.fromkeys(gpu.name for gpu in scene.gpus.gpus) if scene.gpus else {}
    offered = [Offer(name, "found here") for name in found]
    offered += [Offer(name, f"{device.memory / GIB:.0f} GiB") for name, device in CATALOGUE.items()]
    why = "Memory and time of one step are worked out without the device, and a margin is named."
    text = await app.push_screen_wait(
        ChoiceEditor("Predict for which device?", why, offered, scene.device, open_ended=True)
    )
    if text == ChoiceEditor.TYPED:

        def check(words: str) -> str | None:
            try:
                find_device(words)
            except UnknownDevice as problem:
                return str(problem)
            return None

        text = await app.push_screen_wait(TextEditor("Device or size", "l4, h100, 24GB, …", "", check=check))
    return None if text is None else text.strip()


async def ask_for_cut(app: App[None], scene: Scene) -> Draft | None:
    """The draft after a cut, None when left."""
    cuts = (scene.described or {}).get("cuts") or []
    offered = [Offer(cut["title"], cut["experiment"]) for cut in cuts]
    why = "The gentlest first; what each does to the experiment stands beside it. u takes it back."
    title = await app.push_screen_wait(ChoiceEditor("What makes room?", why, offered, ""))
    cut = next((cut for cut in cuts if cut["title"] == title), None)
    if cut is None:
        return None
    draft = scene.draft
    for name, value in cut["change"].items():
        when = all_fields()[name].kind == "when"
        draft = draft.set(tuple(name.split(".")), datetime.fromisoformat(value) if when else value)
    for variant in cut["drop"]:
        draft = draft.drop("variants", [item.get("id") for item in draft.items("variants")].index(variant))
    return draft


async def ask_to_launch(app: App[None], name: str, *, launched: bool) -> str | None:
    """None unless the plan is to be launched; then the reason for its change, "" where none is needed."""
    offered = [Offer("launch", "the gates first, then the queue; the terminal may close"), Offer("not yet")]
    why = "The plan is frozen: hypothesis, baseline, stop rules. Once runs have begun, a change is an amendment with a reason."
    if await app.push_screen_wait(ChoiceEditor(f"Launch {name}?", why, offered, "launch")) != "launch":
        return None
    if not launched:
        return ""
    asked = "The report shows it beside what was changed; leave it empty where nothing was."
    because = await app.push_screen_wait(TextEditor("Why was the plan changed?", asked, ""))
    return None if because is None else because.strip()
