"""Promises of the inspection screen: every token is seen with what becomes of it, in any script, at any size, without colour."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from PIL import Image
from rich.cells import cell_len

from ftui.record.layout import CampaignFiles
from ftui.ui.app import FtuiApp
from ftui.ui.screens.home import HomeScreen
from ftui.ui.screens.inspect import InspectScreen
from ftui.ui.tokens import ASCII, UNICODE, Piece, token_lines
from ftui.ui.widgets.example import ExamplePanel
from tests.builders.pictures import picture_campaign, tiny_net
from tests.builders.writing import CHATML, tiny_tokenizer, writing_campaign
from tests.ui.seen import inside, lines, text, until

LANGUAGES = {
    "korean": ("내일 저녁 7시에 네 명 자리를 예약하고 싶어요.", "네, 예약되었습니다."),
    "polish": ("Chciałbym zarezerwować stolik na piątek.", "Oczywiście. Zażółć gęślą jaźń!"),
    "indonesian": ("Saya ingin memesan meja untuk empat orang.", "Baik, meja sudah dipesan.\nSampai jumpa!"),
}


@pytest.fixture
def campaign(tmp_path: Path) -> CampaignFiles:
    """Chats in three languages; a control character and colour codes in one of them; the model is a tokenizer and a template."""
    model = tmp_path / "model"
    model.mkdir()
    tiny_tokenizer([t for pair in LANGUAGES.values() for t in pair] * 8).save(str(model / "tokenizer.json"))
    named = {"eos_token": "<|im_end|>", "pad_token": "<|im_end|>"}
    (model / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "PreTrainedTokenizerFast", **named}))
    (model / "chat_template.jinja").write_text(CHATML)
    (model / "config.json").write_text('{"model_type": "llama"}')
    files = writing_campaign(
        tmp_path / "talk", model, "generation", training__max_length=96, training__truncation="cut",
        data__columns={"category": "language"},
    )  # fmt: skip
    for split, count in (("train", 30), ("validation", 6), ("test", 6)):
        rows = []
        for i in range(count):
            language = list(LANGUAGES)[i % 3]
            prompt, answer = LANGUAGES[language]
            rows.append({"prompt": f"{split} {i}: {prompt}", "answer": answer, "language": language})
        if split == "train":
            rows[4]["answer"] = "\x1b[31mred\x1b[0m\x07 " + "very " * 60
        (files.root / "data" / f"{split}.jsonl").write_text(
            "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        )
    return files


async def opened(pilot: object, app: FtuiApp, files: CampaignFiles) -> InspectScreen:
    screen = InspectScreen(files)
    app.push_screen(screen)
    await until(pilot, lambda: screen.query_one(ExamplePanel).example, "an example", 60)  # type: ignore[arg-type]
    return screen


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60)])
async def test_korean_and_polish_rows_are_aligned_with_their_ruler(
    campaign: CampaignFiles, size: tuple[int, int]
) -> None:
    app = FtuiApp()
    async with app.run_test(size=size) as pilot:
        screen = await opened(pilot, app, campaign)
        assert all(cell_len(line) == size[0] for line in lines(app))
        assert "1 of 30" in text(app) and "category korean" in text(app)
        shown = [line.rstrip() for line in inside(screen.query_one(ExamplePanel))]
        at = next(i for i, line in enumerate(shown) if line.startswith("네, 예약되었습니다.<|im_end|>⏎"))
        ruler = shown[at + 1]
        assert cell_len(ruler) == cell_len(shown[at]) and set(ruler) <= {"┗", "━"}
        await pilot.press("right")
        await until(pilot, lambda: "category polish" in text(app), "the Polish row")
        assert "Zażółć gęślą jaźń!" in text(app) and all(cell_len(line) == size[0] for line in lines(app))


async def test_filters_and_jumps_find_what_they_name(campaign: CampaignFiles) -> None:
    app = FtuiApp()
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await opened(pilot, app, campaign)
        await pilot.press("o")
        await until(pilot, lambda: "longest first" in text(app) and "very very" in text(app), "the longest row")
        assert "cut off" in text(app) and "╳" in text(app)
        assert "\x1b" not in text(app) and "\x07" not in text(app) and "\\x07" in text(app)
        await pilot.press("o", "t")
        await until(pilot, lambda: "rows over the length" in text(app) and "1 of 1" in text(app), "the cut row")
        await pilot.press("t", "t", "x")
        await until(pilot, lambda: "category indonesian" in text(app) and "1 of 10" in text(app), "a category")
        await pilot.press("slash", *"JUMPA", "enter")
        await until(pilot, lambda: "with 'JUMPA'" in text(app) and "1 of 10" in text(app), "the text")
        await pilot.press("right", "right")
        await until(pilot, lambda: screen.at == 2 and "3 of 10" in text(app), "the third")
        await pilot.press("v")
        await until(pilot, lambda: "validation" in lines(app)[1] and "1 of 2" in text(app), "the other split")
        await pilot.press("slash", *"nobody says this", "enter")
        await until(pilot, lambda: "No row is left" in text(app), "an empty choice")


async def test_facts_stand_beside_or_behind_the_example_and_the_test_is_never_among_the_splits(
    campaign: CampaignFiles,
) -> None:
    app = FtuiApp()
    async with app.run_test(size=(80, 24)) as pilot:
        await opened(pilot, app, campaign)
        assert "2 Facts" not in text(app)
        await pilot.press("2")
        await until(pilot, lambda: "2 Facts" in text(app) and "longest" in text(app), "the facts")
        assert "1 Example" not in text(app)
        await pilot.resize_terminal(120, 40)
        await until(pilot, lambda: "1 Example" in text(app) and "2 Facts" in text(app), "both")
        for _ in range(3):
            await pilot.press("v")
            await pilot.pause(0.1)
            assert lines(app)[1].split()[0] in ("train", "validation")


async def test_a_row_of_half_a_megabyte_is_shown_cut_and_escaped(campaign: CampaignFiles) -> None:
    """K30: control characters and colour codes are shown, and what is too long for anybody to read is counted."""
    path = campaign.root / "data" / "train.jsonl"
    row = {"prompt": "\x1b[2J\x07 " + "żółć " * 100_000, "answer": "x", "language": "polish"}
    path.write_text(path.read_text() + json.dumps(row, ensure_ascii=False) + "\n")
    app = FtuiApp()
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await opened(pilot, app, campaign)
        await pilot.press("o")
        await until(pilot, lambda: "longest first" in text(app) and "data/train.jsonl:31" in text(app), "the row", 30)
        panel = screen.query_one(ExamplePanel)
        assert panel.example is not None and panel.example["more"] > 100_000
        assert "\x1b" not in text(app) and "\\x07" in text(app)
        panel.focus()
        await pilot.press("end")
        await until(pilot, lambda: "more tokens" in text(app), "the count")


async def test_ascii_alone_tells_loss_from_context(campaign: CampaignFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FTUI_ASCII", "1")
    app = FtuiApp()
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await opened(pilot, app, campaign)
        shown = [line.rstrip() for line in inside(screen.query_one(ExamplePanel))]
        at = next(i for i, line in enumerate(shown) if line.startswith("네, 예약"))
        assert set(shown[at + 1]) <= {"^", "="}


async def test_the_process_ends_with_the_screen_and_what_it_says_is_shown(campaign: CampaignFiles) -> None:
    app = FtuiApp(campaign)
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await opened(pilot, app, campaign)
        assert screen._inspector is not None
        pid = screen._inspector._process.pid
        await pilot.press("escape")
        await until(pilot, lambda: not _alive(pid), "the end of the process")
        (campaign.root / "campaign.toml").write_text("schema = [\n")
        app.push_screen(broken := InspectScreen(campaign))
        await until(
            pilot, lambda: "cannot be inspected" in text(app) and "not valid TOML" in text(app), "the reason", 30
        )
        assert broken.content is None
        await pilot.press("q")


async def test_a_picture_is_drawn_and_described(tmp_path: Path) -> None:
    net = tiny_net(tmp_path / "net")
    files = picture_campaign(tmp_path / "pictures", net)
    app = FtuiApp()
    async with app.run_test(size=(100, 40)) as pilot:
        screen = await opened(pilot, app, files)
        panel = screen.query_one(ExamplePanel)
        await until(pilot, lambda: panel.points, "the picture")
        assert panel.example is not None
        with Image.open(panel.example["picture"]["path"]) as picture:
            assert f"{picture.width} × {picture.height} points, 3 channels" in text(app)
        assert "then resized to" in text(app)
        assert any(set(line.strip()) & set("▀") or set(line.strip()) <= set(" .:-=+*#%@") for line in inside(panel)[8:])


async def test_home_opens_the_inspection(campaign: CampaignFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    app = FtuiApp(campaign)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, HomeScreen) and campaign.name in text(app), "home")
        await pilot.press("i")
        await until(pilot, lambda: isinstance(app.screen, InspectScreen), "the inspection")


PIECES: list[Piece] = [
    ("<s>", "context", True, 1), ("안녕", "context", False, 2), (" wide text", "loss", False, 1), ("a\nb", "loss", False, 1),
    ("x" * 50, "cut", False, 1), ("\n", "cut loss", False, 1), ("\x1b[2J", "loss", False, 1), ("", "context", False, 1),
]  # fmt: skip


@pytest.mark.parametrize("marks", [UNICODE, ASCII])
@pytest.mark.parametrize("width", [8, 20, 80])
def test_lines_fit_and_rulers_are_as_wide_as_their_text(marks: object, width: int) -> None:
    for parts in token_lines(PIECES, width, marks):  # type: ignore[arg-type]
        assert sum(cell_len(part.text) for part in parts) <= width
        assert all(cell_len(part.text) == len(part.ruler) for part in parts)
        assert "\x1b" not in "".join(part.text for part in parts)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
