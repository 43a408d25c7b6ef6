"""The sections of `campaign.toml`. Every field says what it means and in which unit; unknown fields are errors.

Checks that need only one section live here; what spans sections is in `load.py`. Values are immutable: a variant or an
amendment makes a new plan.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    StringConstraints,
    field_validator,
    model_serializer,
    model_validator,
)

SCHEMA = 1
"""Version of the plan's form. A newer one is refused, an older one is read."""

Sentence = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
Slug = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9-]{0,39}$")]
Share = Annotated[float, Field(ge=0, le=1)]

RESERVED_VARIANTS = ("control", "base")
"""`control` is the plan itself, `base` the model before any update; no variant may take their names."""

WHOLE = "whole"
EACH_CATEGORY = "each category"

TaskName = Literal["text-classification", "generation", "extraction", "image-classification"]
"""What the model is to do with an example."""

MetricName = Literal[
    "accuracy",
    "macro_f1",
    "loss",
    "exact_match",
    "valid_json",
    "required_fields",
    "field_f1",
    "recall",
    "precision",
    "f1",
]

WHOLE_METRICS: dict[str, tuple[str, ...]] = {
    "text-classification": ("accuracy", "macro_f1"),
    "generation": ("loss", "exact_match"),
    "extraction": ("valid_json", "required_fields", "exact_match", "field_f1"),
    "image-classification": ("accuracy", "macro_f1"),
}
"""Metrics of a whole evaluation, by task.

accuracy, exact_match, valid_json, required_fields: share of examples. macro_f1: mean of the categories' F1. loss: mean per
target token. field_f1: F1 over all fields of all examples together (micro).
"""

SLICE_METRICS: dict[str, tuple[str, ...]] = {
    "text-classification": ("recall", "precision", "f1"),
    "generation": ("loss", "exact_match"),
    "extraction": ("recall", "precision", "f1"),
    "image-classification": ("recall", "precision", "f1"),
}
"""Metrics of one slice, by task: of one category, for extraction of one field."""

LOWER_IS_BETTER = frozenset({"loss"})
"""Metrics of which less is better; of all others, more is."""


class Section(BaseModel):
    """A table of the plan."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Hypothesis(Section):
    """What the campaign is to find out (H1)."""

    statement: Sentence
    task: TaskName = "text-classification"
    metric: MetricName = "macro_f1"
    direction: Literal["higher", "lower"] = "higher"
    min_improvement: Annotated[float, Field(gt=0)]
    """Smallest difference in `metric` worth having, in the metric's own unit."""
    reference: Literal["base", "control"] = "control"
    """What a variant is compared with: the model before training, or the control."""
    alpha: Annotated[float, Field(gt=0, lt=0.5)] = 0.05
    """Chance of a false "supported" over all variants together."""

    @model_validator(mode="after")
    def metric_fits_task(self) -> Hypothesis:
        allowed = WHOLE_METRICS[self.task]
        if self.metric not in allowed:
            raise ValueError(f"metric {self.metric!r} is none of {self.task}; use one of {', '.join(allowed)}")
        if self.metric in LOWER_IS_BETTER and self.direction == "higher":
            raise ValueError(f'less {self.metric} is better; write direction = "lower"')
        return self


class Guardrail(Section):
    """What must not get worse (H2)."""

    name: Sentence
    metric: MetricName
    slice: Sentence = WHOLE
    """`whole`, `each category`, or the name of one category; for extraction, a field is a category."""
    tolerance: Annotated[float, Field(ge=0)]
    """How much worse than the reference is still acceptable."""
    reference: Literal["base", "control"] = "control"

    def problem(self, task: str) -> str | None:
        """What keeps this guardrail from being judged in an evaluation of `task`, None when nothing does."""
        allowed = WHOLE_METRICS[task] if self.slice == WHOLE else SLICE_METRICS[task]
        if self.metric in allowed:
            return None
        return f"metric {self.metric!r} does not apply to the slice {self.slice!r} of {task}; use one of {', '.join(allowed)}"


class Columns(Section):
    """Names of the columns in the data files. Each task reads its own (`TASK_COLUMNS`)."""

    text: Sentence = "text"
    label: Sentence = "label"
    prompt: Sentence = "prompt"
    """Generation: what is asked."""
    answer: Sentence = "answer"
    """Generation: what is to be answered."""
    messages: Sentence | None = None
    """Generation: a chat, `[{"role": …, "content": …}, …]`; when named, it takes the place of prompt and answer."""
    category: Sentence | None = None
    """Generation: what an example belongs to, so that each category can be judged; without one, all are one category."""
    fields: Sentence = "fields"
    """Extraction: the object that is to be found in the text."""
    image: Sentence = "image"
    """Image classification: path of a picture, relative to the data file."""
    id: Sentence | None = None
    """Column that identifies an example; without one, `file:line` does."""


TASK_COLUMNS: dict[str, tuple[str, ...]] = {
    "text-classification": ("text", "label", "id"),
    "generation": ("prompt", "answer", "messages", "category", "id"),
    "extraction": ("text", "fields", "id"),
    "image-classification": ("image", "label", "id"),
}
"""Fields of `Columns` that each task reads."""


class Split(Section):
    """Shares cut from `train`, where no file is given for validation and test."""

    by: Literal["hash", "stratified", "time"] | None = None
    """`hash`: where a unit falls follows from its name alone. `stratified`: the same within each category, so that shares are met in
    each. `time`: the earliest rows are trained on, the latest are the test. None: time where `data.time` is named, hash where
    `data.unit` is, else stratified for a classification and hash for other tasks."""
    validation: Share = 0.1
    test: Share = 0.1


class Duplicates(Section):
    """What to do with repeated texts, compared after cleaning (D4)."""

    within_train: Literal["drop", "warn", "stop"] = "warn"
    across: Literal["drop-from-train", "warn", "stop"] = "drop-from-train"
    near: Literal["off", "warn", "drop-from-train", "stop"] = "warn"
    """Almost equal texts in two splits. Those within one split are only ever pointed out: a paraphrase is an example of its own.
    `off` searches none; pictures are never searched."""
    similarity: Annotated[float, Field(gt=0.5, le=1)] = 0.85
    """Share of character trigrams that two almost equal texts have in common at least, of all they have. At 0.85, sentences of ten
    words differ in one short word or number or in their order; at 0.7, every other pair found says something else."""

    @property
    def equal(self) -> dict[str, str]:
        """The policy for equal texts alone."""
        return {"within_train": self.within_train, "across": self.across}


Files = Annotated[list[Sentence], Field(min_length=1)]


class Data(Section):
    """Where the examples come from, and what is done to them before the model sees them."""

    train: Files
    validation: Files | None = None
    test: Files | None = None
    hub: Annotated[str, StringConstraints(pattern=r"^[\w.-]+/[\w.-]+$")] | None = None
    """A data set of the hub, `owner/name`; train, validation and test are then paths or globs inside it."""
    revision: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{40}$")] | None = None
    """Commit of the data set on the hub. Required with `hub`."""
    columns: Columns = Columns()
    instruction: Sentence | None = None
    """Generation and extraction: what the model is told before each example, as its system message."""
    bad_rows: Literal["stop", "drop"] = "stop"
    """A row that cannot be used (no messages, a null answer, …) is an error, or is named, left out and kept in dropped.jsonl."""
    unit: Sentence | None = None
    """Column whose values must not cross splits (conversation, patient, document). None: each row is a unit."""
    time: Sentence | None = None
    """Column that says when a row is from: a number, or a date or time as ISO 8601 (without a zone it is UTC). Named, no row of
    train may be later than the first of validation, nor one of validation later than the first of test."""
    labels: Annotated[list[Sentence], Field(min_length=2)] | None = None
    """Classification: the categories in class order. None: sorted. Needed where the base has a trained head of the same classes."""
    split: Split = Split()
    cleaning: list[Sentence] = []
    """Named, versioned rules, applied in order, e.g. `nfc@1`. See `ftui/data/clean.py`."""
    duplicates: Duplicates = Duplicates()

    @field_validator("train", "validation", "test", mode="before")
    @classmethod
    def one_or_many(cls, value: Any) -> Any:
        return [value] if isinstance(value, str) else value

    @model_validator(mode="after")
    def both_or_neither(self) -> Data:
        if (self.validation is None) != (self.test is None):
            given, missing = ("test", "validation") if self.validation is None else ("validation", "test")
            raise ValueError(
                f"{given} names files but {missing} does not; name both, or neither to have both cut from train"
            )
        return self

    @field_validator("labels")
    @classmethod
    def distinct_labels(cls, value: list[str] | None) -> list[str] | None:
        if value is not None and (twice := sorted({label for label in value if value.count(label) > 1})):
            raise ValueError(f"{twice[0]!r} is named twice; each category is one class")
        return value

    @model_validator(mode="after")
    def split_has_what_it_needs(self) -> Data:
        if self.split.by == "time" and self.time is None:
            raise ValueError('split.by = "time" needs data.time, the column that says when a row is from')
        if self.split.by == "stratified" and self.unit is not None:
            raise ValueError(
                f'split.by = "stratified" cuts row by row, and unit = "{self.unit}" says rows belong together; take split.by = "hash"'
            )
        return self

    @model_validator(mode="after")
    def hub_with_revision(self) -> Data:
        if self.hub is None:
            if self.revision is not None:
                raise ValueError(
                    "revision is the commit of a data set on the hub; name it in hub, or leave revision out"
                )
            return self
        if self.revision is None:
            raise ValueError(
                f"the data set {self.hub} needs the commit it was taken from in revision (40 hex digits); `main` moves"
            )
        for name in ("train", "validation", "test"):
            for pattern in getattr(self, name) or []:
                if pattern.startswith(("/", "~")) or ".." in pattern.split("/"):
                    raise ValueError(f"{name}: {pattern!r} leads out of the data set {self.hub}; name a path inside it")
                if pattern.endswith(".py"):
                    raise ValueError(f"{name}: {pattern!r} is code, which is never fetched; name files of data")
        return self

    @model_serializer(mode="wrap")
    def without_unused_hub(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Plans that name no hub keep the hash they had before there was one to name."""
        content: dict[str, Any] = handler(self)
        unused = {name for name in ("hub", "revision") if content.get(name) is None}
        return {name: value for name, value in content.items() if name not in unused}


class Model(Section):
    """The base model and its exact identity (P4)."""

    base: Sentence
    """Hub id (`owner/name`) or a directory."""
    revision: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{40}$")] | None = None
    """Commit of the hub repository. Required for a hub id."""
    source: Annotated[str, StringConstraints(pattern=r"^package:[A-Za-z_][\w]*(/[\w.-]+)*$")] | None = None
    """An installed package that carries the same files, `package:NAME/FOLDER`; used instead of a download."""
    sha256: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")] | None = None
    """Expected hash of the weights; a different file is refused."""
    remote_code: Literal[False] = False
    """Code from the model's repository is never run."""


ALL_LINEAR = "all-linear"
"""As `method.targets`: every linear module but the head and what is saved whole."""

PATTERN = "re:"
"""Begins an entry of `method.targets` that is a regular expression over whole module names."""


class Method(Section):
    """Which parameters are trained (P1)."""

    kind: Literal["full", "lora", "qlora"] = "lora"
    """`qlora`: the base is held in 4 bits (nf4, double quantisation) and an adapter is trained; needs `ftui[qlora]`."""
    rank: Annotated[int, Field(ge=1)] = 8
    alpha: Annotated[float, Field(gt=0)] = 16
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.0
    targets: list[Sentence] = []
    """Modules that get an adapter: names, endings of names (`query`, `attention.output.dense`), regular expressions that match
    whole names (`re:.*layer\\.[01]\\..*query`), or `all-linear` alone."""
    save_modules: list[Sentence] = []
    """Modules trained and saved whole beside the adapter, such as a new classifier."""
    frozen: list[Sentence] = []
    """Full fine-tuning: modules that stay as the base has them, by name, ending or pattern like `targets`."""
    use_rslora: bool = False
    """Scale by alpha / sqrt(rank) instead of alpha / rank (Kalajdzievski 2023, arXiv:2312.03732)."""
    use_dora: bool = False
    """Train the magnitude of each output apart from its direction (Liu et al. 2024, arXiv:2402.09353)."""

    @property
    def has_adapter(self) -> bool:
        return self.kind in ("lora", "qlora")

    @field_validator("targets", "frozen")
    @classmethod
    def readable_patterns(cls, value: list[str]) -> list[str]:
        if ALL_LINEAR in value and len(value) > 1:
            raise ValueError(f"{ALL_LINEAR!r} names every linear module and stands alone; leave the other names out")
        for name in value:
            try:
                re.compile(name.removeprefix(PATTERN) if name.startswith(PATTERN) else "")
            except re.error as problem:
                raise ValueError(f"{name!r} is no regular expression: {problem}") from None
        return value

    @model_validator(mode="after")
    def lists_fit_kind(self) -> Method:
        if self.has_adapter and self.frozen:
            raise ValueError(f'kind = "{self.kind}" trains what targets and save_modules name; leave `frozen` out')
        if self.has_adapter and not self.targets:
            raise ValueError(
                f'kind = "{self.kind}" needs targets, e.g. targets = ["query", "value"] or ["{ALL_LINEAR}"]'
            )
        return self


class Stop(Section):
    """Causes that end a run before its last update, written beforehand (H5, V4)."""

    nonfinite: Literal["stop", "continue"] = "stop"
    """A loss or gradient that is NaN or infinite: stop the run, or record it and skip the update."""
    divergence: Annotated[float, Field(gt=1)] | None = 3.0
    """Stop when the smoothed loss exceeds this multiple of the lowest smoothed loss so far."""
    patience: Annotated[int, Field(ge=1)] | None = None
    """Stop after this many validations without a new best."""
    max_hours: Annotated[float, Field(gt=0)] | None = None


class Training(Section):
    """How one run trains."""

    micro_batch: Annotated[int, Field(ge=1)]
    """Examples per forward pass and process."""
    accumulation: Annotated[int, Field(ge=1)] = 1
    """Micro-batches per update and process."""
    hold: Literal["updates", "examples", "tokens", "epochs"] = "updates"
    """What stays equal between variants; the others follow (S5). `tokens` counts targets: what carries loss."""
    amount: Annotated[int, Field(ge=1)]
    """How many of `hold`."""
    learning_rate: Annotated[float, Field(gt=0)]
    schedule: Literal["linear", "cosine", "constant"] = "linear"
    warmup: Annotated[int, Field(ge=0)] = 0
    """Updates over which the learning rate rises from 0."""
    weight_decay: Annotated[float, Field(ge=0)] = 0.0
    max_grad_norm: Annotated[float, Field(gt=0)] | None = 1.0
    batching: Literal["shuffled", "length-grouped", "packed"] = "shuffled"
    """How an update's examples fall into micro-batches: in drawn order, by length, or in drawn order as one row without padding."""
    precision: Literal["fp32", "bf16", "fp16"] = "fp32"
    """`fp16` scales the loss and needs a GPU."""
    activation_checkpointing: bool = False
    max_length: Annotated[int, Field(ge=2)] = 512
    """Tokens per example, special tokens included."""
    truncation: Literal["error", "cut", "keep-target"] = "error"
    """A longer example is an error, is cut at its end, or loses the left of its prompt and keeps its whole target; cuts are counted."""
    validate_every: Annotated[int, Field(ge=1)] = 50
    """Updates between validations; the last update is always validated."""
    checkpoint_every: Annotated[int, Field(ge=1)] = 50
    keep_checkpoints: Annotated[int, Field(ge=1)] = 2
    stop: Stop = Stop()


class Generation(Section):
    """How answers are written. Always greedily: a sampled answer would make runs differ by chance."""

    max_new_tokens: Annotated[int, Field(ge=1)]
    """Tokens after which an answer is cut off."""
    stop: list[Annotated[str, StringConstraints(min_length=1)]] = []
    """Tokens that end an answer besides the model's own end tokens, e.g. `<|im_end|>`."""


class Evaluation(Section):
    """How every run is judged; the same for all (V2, V3)."""

    format: Sentence | None = None
    """Extraction: path of the JSON schema of an answer, relative to the campaign; its `properties` are the fields."""
    generation: Generation | None = None
    """Needed where answers are judged. None: a generation task is judged by its loss alone."""

    batch_size: Annotated[int, Field(ge=1)] = 64
    seeds: Annotated[list[Annotated[int, Field(ge=0, lt=2**31)]], Field(min_length=1)]
    """One run per variant and seed; all are reported together."""
    control_inputs: Annotated[list[Sentence], Field(min_length=1)]
    """Texts whose outputs are compared before and after the artefact is reloaded (C3)."""
    resamples: Annotated[int, Field(ge=200)] = 2000
    """Bootstrap resamples of the paired comparison."""

    @field_validator("seeds")
    @classmethod
    def distinct(cls, value: list[int]) -> list[int]:
        if len(set(value)) != len(value):
            raise ValueError("a seed is named twice; the same run twice says nothing new")
        return value


class Machine(Section):
    """Where a run is placed."""

    processes: Annotated[int, Field(ge=1)] = 1
    """Training processes of one run; each takes a place (a GPU, or one of `slots`)."""
    strategy: Literal["single", "ddp"] = "single"
    """`ddp`: each process holds a whole replica and computes its share of every update; gradients are averaged (B3). That saves
    time and no memory."""
    backend: Literal["auto", "cpu", "cuda"] = "auto"
    slots: Annotated[int, Field(ge=1)] | None = None
    """Runs side by side on a machine without a GPU. None: one per core."""
    threads: Annotated[int, Field(ge=1)] = 1
    """CPU threads of one training process."""

    @model_validator(mode="after")
    def strategy_fits_processes(self) -> Machine:
        if (self.strategy == "single") != (self.processes == 1):
            raise ValueError(
                f'strategy = "{self.strategy}" does not go with processes = {self.processes}; '
                'one process is "single", several are "ddp"'
            )
        return self


class RentalHours(Section):
    """Hours reserved for each phase (R2)."""

    preflight: Annotated[float, Field(ge=0)]
    experiment: Annotated[float, Field(gt=0)]
    evaluation: Annotated[float, Field(gt=0)]
    resume: Annotated[float, Field(ge=0)]
    export: Annotated[float, Field(gt=0)]
    margin: Annotated[float, Field(ge=0)]

    @property
    def total(self) -> float:
        return self.preflight + self.experiment + self.evaluation + self.resume + self.export + self.margin


class Rental(Section):
    """The rented time and what it costs (R1)."""

    days: Annotated[float, Field(gt=0)]
    starts_at: datetime | None = None
    """With time zone. None: the clock starts when the campaign is launched."""
    ends_at: datetime | None = None
    """With time zone. None: `days` after the start."""
    price_per_hour: Annotated[float, Field(ge=0)] | None = None
    currency: Annotated[str, StringConstraints(pattern=r"^[A-Z]{3}$")] = "USD"
    hours: RentalHours

    @field_validator("starts_at", "ends_at")
    @classmethod
    def has_zone(cls, value: datetime | None) -> datetime | None:
        if value is not None and value.tzinfo is None:
            raise ValueError("a time needs its zone, e.g. 2026-12-01T09:00:00+01:00")
        return value

    @model_validator(mode="after")
    def hours_fit(self) -> Rental:
        if self.starts_at and self.ends_at:
            # Times of one zone are subtracted as clocks on a wall show them.
            length = self.ends_at.astimezone(UTC) - self.starts_at.astimezone(UTC)
            if abs(length - timedelta(days=self.days)) > timedelta(minutes=1):
                raise ValueError(
                    f"from starts_at to ends_at are {length / timedelta(days=1):g} days, but days = {self.days:g}"
                )
        if self.hours.total > self.days * 24 + 1e-9:
            raise ValueError(f"the hours add up to {self.hours.total:g}, the rental has {self.days * 24:g}")
        return self


CopyPart = Literal["record", "exports", "checkpoints"]


class Backup(Section):
    """Where record and artefacts are copied: the rental's disk ends with the rental (R7)."""

    destination: Sentence | None = None
    """A folder on another machine's disk (absolute, or from `~`), or a URL of any file system fsspec knows, e.g. `s3://bucket/name`. It
    becomes a copy of the campaign's directory and belongs to this campaign alone. What is written is read back and compared."""
    command: Annotated[list[Sentence], Field(min_length=1)] | None = None
    """Instead of a destination: the words of a program that copies, run without a shell. `{source}` is a folder that holds what is new,
    laid out as in the campaign's directory; `{files}` is a file that names it, one relative path a line. It must put every one of them
    under one place and exit with 0 only then: nothing can be read back, its word is all there is."""
    what: Annotated[list[CopyPart], Field(min_length=1)] = ["record", "exports", "checkpoints"]
    """`record`: plan, journal, series, predictions, gates, reports, logs, and what is known of the data, without the data itself.
    `exports`: artefacts. `checkpoints`: the sealed ones that the runs keep."""
    every: Annotated[int, Field(ge=1)] = 15
    """Minutes between two copies. Checkpoints, ends of phases and the rental's end are copied for without waiting for them."""

    @property
    def target(self) -> str:
        """Where to, in one line."""
        return self.destination or " ".join(self.command or [])

    @model_validator(mode="after")
    def one_way(self) -> Backup:
        if (self.destination is None) == (self.command is None):
            found = "neither" if self.destination is None else "both"
            raise ValueError(f"needs destination or command, found {found}; name the one that copies")
        if self.command is not None and not any("{source}" in word for word in self.command):
            raise ValueError(
                'command needs {source}, the folder to copy, e.g. ["rclone", "copy", "{source}", "remote:name"]'
            )
        return self

    @field_validator("destination")
    @classmethod
    def elsewhere(cls, value: str | None) -> str | None:
        if value is None:
            return None
        if "://" not in value:
            if not value.startswith(("/", "~")):
                raise ValueError(
                    f"{value!r} would lie beside the plan; name a folder from / or ~, or a URL such as s3://bucket/name"
                )
        elif "@" in value.partition("://")[2].partition("/")[0] and ":" in value.partition("://")[2].partition("@")[0]:
            raise ValueError("holds a password, and the plan is shown to everybody; leave it to fsspec's own settings")
        return value

    @field_validator("what")
    @classmethod
    def distinct_parts(cls, value: list[CopyPart]) -> list[CopyPart]:
        if len(set(value)) != len(value):
            raise ValueError("names a part twice")
        return value


class Variant(Section):
    """One explained change to the control (V1)."""

    id: Slug
    because: Sentence
    """Why this change could help."""
    change: Annotated[dict[str, Any], Field(min_length=1)]
    """Dotted fields of the plan and their new values."""
    together: Sentence | None = None
    """Why several changes belong together; required when `change` holds more than one."""
    priority: int = 0
    """Higher runs first."""

    @model_validator(mode="after")
    def one_explained_set(self) -> Variant:
        if self.id in RESERVED_VARIANTS:
            raise ValueError(
                f"{self.id!r} is the name of the {'plan itself' if self.id == 'control' else 'untrained model'}; choose another id"
            )
        if len(self.change) > 1 and self.together is None:
            raise ValueError(
                f"changes {len(self.change)} fields at once ({', '.join(sorted(self.change))}); "
                "make them separate variants, or say in `together` why they belong together"
            )
        return self


class Plan(Section):
    """A whole campaign as decided before it runs. `control` is this plan; each variant departs from it."""

    plan_schema: Annotated[int, Field(alias="schema", ge=1, le=SCHEMA)]
    hypothesis: Hypothesis
    guardrails: list[Guardrail] = []
    data: Data
    model: Model
    method: Method
    training: Training
    evaluation: Evaluation
    machine: Machine = Machine()
    rental: Rental
    backup: Backup | None = None
    """None: nothing is copied, and everything ends with the rental."""
    variants: list[Variant] = []

    @model_serializer(mode="wrap")
    def without_unused_backup(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Plans that copy nothing keep the hash they had before there was a section for it."""
        content: dict[str, Any] = handler(self)
        return {name: value for name, value in content.items() if name != "backup" or value is not None}

    def content(self) -> dict[str, Any]:
        """The plan as plain JSON values, defaults included: what is hashed and kept in the journal."""
        return self.model_dump(mode="json", by_alias=True)
