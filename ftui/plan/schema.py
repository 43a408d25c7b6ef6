"""The sections of `campaign.toml`. Every field says what it means and in which unit; unknown fields are errors.

Checks that need only one section live here; what spans sections is in `load.py`. Values are immutable: a variant or an
amendment makes a new plan.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, field_validator, model_validator

SCHEMA = 1
"""Version of the plan's form. A newer one is refused, an older one is read."""

Sentence = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
Slug = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9-]{0,39}$")]
Share = Annotated[float, Field(ge=0, le=1)]

RESERVED_VARIANTS = ("control", "base")
"""`control` is the plan itself, `base` the model before any update; no variant may take their names."""

WHOLE = "whole"
EACH_CATEGORY = "each category"

WHOLE_METRICS = ("accuracy", "macro_f1")
"""Metrics of a whole evaluation (text classification)."""

SLICE_METRICS = ("recall", "precision", "f1")
"""Metrics of one category (text classification)."""


class Section(BaseModel):
    """A table of the plan."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Hypothesis(Section):
    """What the campaign is to find out (H1)."""

    statement: Sentence
    task: Literal["text-classification"] = "text-classification"
    metric: Literal["accuracy", "macro_f1"] = "macro_f1"
    direction: Literal["higher", "lower"] = "higher"
    min_improvement: Annotated[float, Field(gt=0)]
    """Smallest difference in `metric` worth having, in the metric's own unit."""
    reference: Literal["base", "control"] = "control"
    """What a variant is compared with: the model before training, or the control."""
    alpha: Annotated[float, Field(gt=0, lt=0.5)] = 0.05
    """Chance of a false "supported" over all variants together."""


class Guardrail(Section):
    """What must not get worse (H2)."""

    name: Sentence
    metric: Literal["accuracy", "macro_f1", "recall", "precision", "f1"]
    slice: Sentence = WHOLE
    """`whole`, `each category`, or the name of one category."""
    tolerance: Annotated[float, Field(ge=0)]
    """How much worse than the reference is still acceptable."""
    reference: Literal["base", "control"] = "control"

    @model_validator(mode="after")
    def metric_fits_slice(self) -> Guardrail:
        allowed = WHOLE_METRICS if self.slice == WHOLE else SLICE_METRICS
        if self.metric not in allowed:
            raise ValueError(
                f"metric {self.metric!r} does not apply to the slice {self.slice!r}; use one of {', '.join(allowed)}"
            )
        return self


class Columns(Section):
    """Names of the columns in the data files."""

    text: Sentence = "text"
    label: Sentence = "label"
    id: Sentence | None = None
    """Column that identifies an example; without one, `file:line` does."""


class Split(Section):
    """Shares cut from `train` by a hash of the unit, where no file is given for them."""

    validation: Share = 0.1
    test: Share = 0.1


class Duplicates(Section):
    """What to do with repeated texts, compared after cleaning (D4)."""

    within_train: Literal["drop", "warn", "stop"] = "warn"
    across: Literal["drop-from-train", "warn", "stop"] = "drop-from-train"


Files = Annotated[list[Sentence], Field(min_length=1)]


class Data(Section):
    """Where the examples come from, and what is done to them before the model sees them."""

    train: Files
    validation: Files | None = None
    test: Files | None = None
    columns: Columns = Columns()
    unit: Sentence | None = None
    """Column whose values must not cross splits (conversation, patient, document). None: each row is a unit."""
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


class Method(Section):
    """Which parameters are trained (P1)."""

    kind: Literal["full", "lora"] = "lora"
    rank: Annotated[int, Field(ge=1)] = 8
    alpha: Annotated[float, Field(gt=0)] = 16
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.0
    targets: list[Sentence] = []
    """Names (or endings of names) of the linear modules that get an adapter."""
    save_modules: list[Sentence] = []
    """Modules trained and saved whole beside the adapter, such as a new classifier."""
    use_rslora: bool = False
    use_dora: bool = False

    @model_validator(mode="after")
    def lora_names_targets(self) -> Method:
        if self.kind == "lora" and not self.targets:
            raise ValueError('kind = "lora" needs targets, e.g. targets = ["query", "value"]')
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
    hold: Literal["updates", "examples", "epochs"] = "updates"
    """What stays equal between variants; the other two follow (S5)."""
    amount: Annotated[int, Field(ge=1)]
    """How many of `hold`."""
    learning_rate: Annotated[float, Field(gt=0)]
    schedule: Literal["linear", "cosine", "constant"] = "linear"
    warmup: Annotated[int, Field(ge=0)] = 0
    """Updates over which the learning rate rises from 0."""
    weight_decay: Annotated[float, Field(ge=0)] = 0.0
    max_grad_norm: Annotated[float, Field(gt=0)] | None = 1.0
    precision: Literal["fp32", "bf16"] = "fp32"
    activation_checkpointing: bool = False
    max_length: Annotated[int, Field(ge=2)] = 512
    """Tokens per example, special tokens included."""
    truncation: Literal["error", "cut"] = "error"
    """A longer example is an error, or is cut at the end and counted."""
    validate_every: Annotated[int, Field(ge=1)] = 50
    """Updates between validations; the last update is always validated."""
    checkpoint_every: Annotated[int, Field(ge=1)] = 50
    keep_checkpoints: Annotated[int, Field(ge=1)] = 2
    stop: Stop = Stop()


class Evaluation(Section):
    """How every run is judged; the same for all (V2, V3)."""

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

    processes: Literal[1] = 1
    """Training processes of one run."""
    backend: Literal["auto", "cpu", "cuda"] = "auto"
    slots: Annotated[int, Field(ge=1)] | None = None
    """Runs side by side on a machine without a GPU. None: one per core."""
    threads: Annotated[int, Field(ge=1)] = 1
    """CPU threads of one training process."""


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
            length = self.ends_at - self.starts_at
            if abs(length - timedelta(days=self.days)) > timedelta(minutes=1):
                raise ValueError(
                    f"from starts_at to ends_at are {length / timedelta(days=1):g} days, but days = {self.days:g}"
                )
        if self.hours.total > self.days * 24 + 1e-9:
            raise ValueError(f"the hours add up to {self.hours.total:g}, the rental has {self.days * 24:g}")
        return self


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
    variants: list[Variant] = []

    def content(self) -> dict[str, Any]:
        """The plan as plain JSON values, defaults included: what is hashed and kept in the journal."""
        return self.model_dump(mode="json", by_alias=True)
