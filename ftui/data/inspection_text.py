"""An inspection in words and aligned lines: what `ftui inspect` prints and the app's panels show."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rich.cells import cell_len

from ftui.data.sources import SPLITS
from ftui.record.text import aligned, safe

LABELS_SHOWN = 40
EXAMPLES_SHOWN = 3
"""Findings of one kind, and pairs of rows, that are shown; the rest is counted. `--json` has all that was kept."""

BAR = 24
"""Cells of the longest bar of the histogram."""


@dataclass(frozen=True)
class Section:
    """A heading and its lines. A line that is a sentence may be wrapped; aligned ones are kept short."""

    title: str
    lines: list[str]


def sections(content: Mapping[str, Any]) -> list[Section]:
    """The parts of an inspection (`inspection.inspection_content`) that have something to say, in reading order."""
    made = [
        Section("Findings", list(_findings(content))),
        Section("Data", list(_data(content))),
        Section("Splits", list(_splits(content))),
        Section("Fields" if content["fields"] is not None else "Categories", list(_labels(content))),
        Section("Tokens", list(_tokens(content))),
        Section("Lengths of train", list(_histogram(content))),
        Section("Special tokens", list(_special(content))),
        Section("Pictures", [f"{i}. {step}" for i, step in enumerate(content["transform"] or [], 1)]),
        Section("Equal texts", list(_duplicates(content))),
        Section("Almost equal texts", list(_near(content))),
    ]
    return [section for section in made if section.lines]


def inspection_text(content: Mapping[str, Any]) -> str:
    """All sections as one text."""
    parts = ["\n".join([s.title, "─" * cell_len(s.title), *s.lines]) for s in sections(content)]
    return "\n\n".join(parts)


def finding_groups(findings: list[dict[str, str]]) -> list[tuple[str, str, list[dict[str, str]]]]:
    """Findings by severity and kind, errors first: (severity, kind, findings)."""
    groups: dict[tuple[str, str], list[dict[str, str]]] = defaultdict(list)
    for finding in findings:
        groups[finding["severity"], finding["kind"]].append(finding)
    ordered = sorted(groups.items(), key=lambda item: item[0][0] != "error")
    return [(severity, kind, found) for (severity, kind), found in ordered]


def _findings(content: Mapping[str, Any]) -> Iterator[str]:
    if not content["findings"]:
        yield "nothing stands out"
    for severity, kind, found in finding_groups(content["findings"]):
        yield f"{severity}: {kind}" + (f" ({len(found)} listed)" if len(found) > 1 else "")
        for finding in found[:EXAMPLES_SHOWN]:
            field = f"{finding['field']}: " if finding["field"] else ""
            yield f"  {finding['place']}: {field}{finding['message']}"
        if len(found) > EXAMPLES_SHOWN:
            yield f"  … and {len(found) - EXAMPLES_SHOWN} more like these"


def _data(content: Mapping[str, Any]) -> Iterator[str]:
    state = "can be used" if content["usable"] else "cannot be used as it is"
    yield f"version {content['data']}, {state}"
    rows = [[f["split"], f["name"], f"{f['rows']:,} rows", f"sha256 {f['sha256'][:12]}…"] for f in content["files"]]
    yield from aligned(rows, right=(2,)) if rows else ()
    yield f"cleaning: {', '.join(content['cleaning']) or 'none'}"
    if content["dropped"]:
        yield f"{content['dropped']:,} rows were left out; dropped.jsonl of the version says which and why"


def _splits(content: Mapping[str, Any]) -> Iterator[str]:
    sizes = content["splits"]
    yield from aligned([[name, f"{sizes[name]:,}"] for name in SPLITS], right=(1,))
    by = content["split_by"]
    unit = f" of {content['unit']}" if content["unit"] else ""
    yield {
        "files": "as the plan's files give them" + (f", checked by {content['unit']}" if unit else ""),
        "hash": f"cut by the hash{unit or ' of the text'}",
        "stratified": "cut in proportion within each category, by the hash of the text",
        "time": f"cut by time{', units of ' + content['unit'] + ' whole' if unit else ''}: the latest rows are the test",
    }[by]
    yield "test is sealed: its sizes and lengths are told, its rows are not shown"


def _labels(content: Mapping[str, Any]) -> Iterator[str]:
    counts = content["counts"]
    if not counts:
        return
    if content["fields"] is not None:
        rows = [["rows that give", *SPLITS]]
        rows += [[field, *(f"{given[name]:,}" for name in SPLITS)] for field, given in content["fields"].items()]
        yield from aligned(rows, right=(1, 2, 3))
        return
    classes = {label: str(i) for i, label in enumerate(content["labels"])}
    with_classes = content["task"].endswith("classification")
    names = [label for label in content["labels"] if label in counts] if with_classes else []
    names += [label for label in counts if label not in names]
    head = ["class"] * with_classes + ["category", *SPLITS]
    rows = [head]
    for label in names[:LABELS_SHOWN]:
        number = [classes.get(label, "none")] * with_classes
        rows.append([*number, safe(label, 40), *(f"{counts[label][name]:,}" for name in SPLITS)])
    first = len(head) - len(SPLITS)
    yield from aligned(rows, right=(*([0] if with_classes else []), *range(first, len(head))))
    if len(names) > LABELS_SHOWN:
        yield f"… and {len(names) - LABELS_SHOWN} more categories"


def _tokens(content: Mapping[str, Any]) -> Iterator[str]:
    facts = content["facts"]
    if not facts or facts["train"]["lengths"] is None:
        return
    rows: list[list[str]] = [["", *SPLITS]]

    def add(name: str, of: Any, *, always: bool = True) -> None:
        values = [of(facts[split]) if facts[split]["lengths"] else None for split in SPLITS]
        if always or any(values):
            rows.append([name, *("–" if v is None else f"{v:,}" for v in values)])

    for name in ("median", "p90", "p99", "longest"):
        add(name, lambda f, name=name: f["lengths"][name])
    add("tokens the model sees", lambda f: f["tokens"])
    add(f"rows longer than {content['max_length']}", lambda f: f["cut_rows"] or _too_long(f))
    add("tokens cut off", lambda f: f["cut_tokens"], always=False)
    add("targets", lambda f: f["targets"])
    add("targets cut off", lambda f: f["targets_lost"], always=False)
    add("rows without target", lambda f: f["rows_without_target"])
    add("unknown tokens", lambda f: f["unknown"][0] if f["unknown"] else 0, always=False)
    add("in rows", lambda f: f["unknown"][1] if f["unknown"] else 0, always=False)
    yield from aligned(rows, right=(1, 2, 3))
    share = facts["train"]["loss_share"]
    if share is not None:
        yield f"{share:.1%} of the tokens of train carry loss; the rest is context"
    else:
        yield "one target per row: its category"
    if (padding := content["padding"]) is not None:
        whole = padding["tokens"] + padding["padding"]
        how = f"{content['batching']}, micro-batches of {content['micro_batch']}"
        yield f"{padding['padding'] / whole if whole else 0:.1%} of what an epoch computes is padding ({how})"
    yield f"truncation: {content['truncation']}"


def _too_long(facts: Mapping[str, Any]) -> int:
    """Rows refused for their length, where the plan cuts nothing."""
    return int(facts["problems"].get("too many tokens", 0)) + int(facts["problems"].get("no target left", 0))


def _histogram(content: Mapping[str, Any]) -> Iterator[str]:
    facts = content["facts"].get("train")
    if not facts or not facts["lengths"]:
        return
    bars = facts["lengths"]["bars"]
    most = max(rows for _, _, rows in bars)
    lines = []
    for low, high, rows in bars:
        bar = "█" * (rows * BAR // most) or ("▏" if rows else "")
        lines.append([f"{low:,}–{high:,}" if high > low else f"{low:,}", f"{rows:,}", bar])
    yield from aligned(lines, right=(0, 1))


def _special(content: Mapping[str, Any]) -> Iterator[str]:
    special = content["special_tokens"]
    if not special:
        return
    yield (
        "  ".join(f"{name.removesuffix('_token')} {safe(token)}" for name, token in special["named"].items()) or "none"
    )
    if special["ends"]:
        yield f"an answer ends with {' or '.join(map(safe, special['ends']))}"
    if special["padding_is_end"]:
        yield (
            f"padding and end are one token ({safe(special['padding'])}): padding is told by its place, the end carries loss"
        )
    if content["task"] in ("generation", "extraction"):
        yield (
            "chats are written by the model's own template" if special["template"] else "the model has no chat template"
        )


def _duplicates(content: Mapping[str, Any]) -> Iterator[str]:
    for pair in content["duplicates"]:
        first, second = pair["splits"]
        if not pair["texts"]:
            continue
        where = f"repeated within {first}" if first == second else f"both in {first} and in {second}"
        after = f", {pair['only_after_cleaning']:,} only after cleaning" if pair["only_after_cleaning"] else ""
        yield f"{pair['texts']:,} {'text' if pair['texts'] == 1 else 'texts'} {where}{after}"
        for example in pair["examples"][:EXAMPLES_SHOWN]:
            places = ", ".join(f"{row['file']}:{row['line']}" for row in example["rows"][:4])
            yield f"  {safe(example['text'], 60)}  ({places})"


def _near(content: Mapping[str, Any]) -> Iterator[str]:
    for pair in content["near"]:
        (first, second), (rows, others) = pair["splits"], pair["rows"]
        if not rows:
            continue
        where = f"within {first}" if first == second else f"of {first} are like {others:,} of {second}"
        yield f"{rows:,} rows {where}, by {content['similarity']:g} of their trigrams or more"
        for example in pair["examples"][:EXAMPLES_SHOWN]:
            places = " and ".join(f"{row['file']}:{row['line']}" for row in example["rows"])
            yield f"  {example['similarity']:.2f}  {example['difference']}  ({places})"
