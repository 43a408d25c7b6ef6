"""The wizard's steps and what each asks: a field of the plan, in a person's words, and why it matters."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from ftui.plan.draft import MISSING, Draft, Steps
from ftui.plan.fields import Field, all_fields
from ftui.plan.schema import TASK_COLUMNS


@dataclass(frozen=True)
class Question:
    """One field, asked for. A field that does not apply is asked all the same where the file gives it a value."""

    name: str
    """As in `all_fields`; in a list of tables `guardrails[].metric`."""
    asks: str
    why: str
    applies: Callable[[Draft], bool] = field(default=lambda _: True, repr=False)

    @property
    def field(self) -> Field:
        return all_fields()[self.name]

    def steps(self, item: int | None = None) -> Steps:
        """The way to the field in a draft, in item `item` of a list of tables."""
        steps: list[str | int] = []
        for part in self.name.split("."):
            steps.append(part.removesuffix("[]"))
            if part.endswith("[]"):
                assert item is not None
                steps.append(item)
        return tuple(steps)


@dataclass(frozen=True)
class Step:
    """One page of the wizard."""

    key: str
    title: str
    aim: str
    """What this page is for, in one sentence."""
    questions: tuple[Question, ...] = ()
    short: str = ""
    """Title where there is little room; "" where the title is short."""
    items: str = ""
    """Name of the list of tables this page is about, "" for none."""

    @property
    def sections(self) -> tuple[str, ...]:
        """First parts of the names of the fields that belong here."""
        return tuple(dict.fromkeys(question.name.split(".")[0].removesuffix("[]") for question in self.questions))


def value_of(draft: Draft, name: str) -> object:
    """What a field is: the file's value, else the default; None where it has neither."""
    given = draft.given(tuple(name.split(".")))
    default = all_fields()[name].default
    return given if given is not MISSING else None if default is MISSING else default


def task(draft: Draft) -> str:
    return str(value_of(draft, "hypothesis.task"))


def writes(draft: Draft) -> bool:
    """Whether the model writes text."""
    return task(draft) in ("generation", "extraction")


def _task(*names: str) -> Callable[[Draft], bool]:
    return lambda draft: task(draft) in names


def _method(*kinds: str) -> Callable[[Draft], bool]:
    return lambda draft: value_of(draft, "method.kind") in kinds


def _column(name: str) -> Callable[[Draft], bool]:
    return lambda draft: name in TASK_COLUMNS.get(task(draft), ())


def _cut_from_train(draft: Draft) -> bool:
    return value_of(draft, "data.validation") is None


def _classifies(draft: Draft) -> bool:
    return not writes(draft)


def _copies(draft: Draft) -> bool:
    return value_of(draft, "backup.destination") is not None or value_of(draft, "backup.command") is not None


_adapter = _method("lora", "qlora")

HYPOTHESIS = Step(
    "hypothesis", "Hypothesis", "Say what should become better, before anything is trained.",
    (
        Question("hypothesis.statement", "What do you want to find out?",
                 "One sentence you could defend afterwards; the report begins with it, dated and frozen."),
        Question("hypothesis.task", "What does the model do?", "Decides how examples are read, trained on and judged."),
        Question("hypothesis.metric", "Which number decides?",
                 "One number decides. A mean over categories (macro_f1) cannot be won by the largest one alone."),
        Question("hypothesis.direction", "Is more of it better?", "Of a loss less is better, of all others more."),
        Question("hypothesis.min_improvement", "Gain worth having",
                 "Differences below it are not worth the change; it also says how many examples you need."),
        Question("hypothesis.reference", "Compared with",
                 "The control is the plan as written, trained; the base is the model before any training."),
        Question("hypothesis.alpha", "Risk of false 'supported'", "Over all variants together; 0.05 is one in twenty."),
    ),
)  # fmt: skip

GUARDRAILS = Step(
    "guardrails", "Guardrails", "Say what must not get worse while the metric gets better.",
    (
        Question("guardrails[].name", "In your words", "How the report names it."),
        Question("guardrails[].metric", "Measured by", "Recall: what is found of a category. Precision: what is right of the found."),
        Question("guardrails[].slice", "Where", "The whole test set, each category by itself, or one category or field."),
        Question("guardrails[].tolerance", "May get worse by at most", "0 asks for proof that nothing is lost, which takes many examples."),
        Question("guardrails[].reference", "Compared with", "The control, or the base where doing nothing is the limit."),
    ),
    items="guardrails",
)  # fmt: skip

DATA = Step(
    "data", "Data", "Say where the examples are and what their columns mean.",
    (
        Question("data.train", "Training files", "Paths or globs beside campaign.toml; pictures: a folder with one folder per class."),
        Question("data.validation", "Validation files", "None here and none below: both are cut from the training files."),
        Question("data.test", "Test files", "Sealed until the candidates are fixed; opened once."),
        Question("data.columns.text", "Column with the text", "What the model reads.", _column("text")),
        Question("data.columns.label", "Column with the category", "What the model is to answer.", _column("label")),
        Question("data.columns.messages", "Column with the chat", "A list of messages; it takes the place of prompt and answer.",
                 _column("messages")),
        Question("data.columns.prompt", "Column with the prompt", "What is asked; it carries no loss.", _column("prompt")),
        Question("data.columns.answer", "Column with the answer", "What is to be learnt; only it carries loss.", _column("answer")),
        Question("data.columns.category", "Column with a category", "Lets each kind of example be judged by itself.", _column("category")),
        Question("data.columns.fields", "Column with the fields", "The object that is to be found in the text.", _column("fields")),
        Question("data.columns.image", "Column with the picture", "Its path, relative to the data file; folders need none.",
                 _column("image")),
        Question("data.columns.id", "Column that names a row", "Without one, rows are called by file and line."),
        Question("data.unit", "What must stay together", "Rows of one conversation, patient or document never cross splits."),
        Question("data.time", "Column with the time", "Trained on before, judged by after: what use will look like."),
        Question("data.split.by", "How the splits are cut", "By name (hash), in proportion (stratified), or by time.", _cut_from_train),
        Question("data.split.validation", "Share for validation", "Settings are chosen by it.", _cut_from_train),
        Question("data.split.test", "Share for the test", "The verdict rests on it; too small, and nothing can be told.", _cut_from_train),
        Question("data.cleaning", "Cleaning rules", "Named and versioned, applied to every split alike."),
        Question("data.labels", "Categories in class order", "Needed where the base has a trained head of the same classes.", _classifies),
        Question("data.instruction", "Instruction", "What the model is told before each example.", writes),
        Question("data.bad_rows", "A row that cannot be used", "Stops the campaign, or is named, left out and kept in a file."),
        Question("data.duplicates.across", "Equal text in two splits", "A model that has seen the test answers it by heart."),
        Question("data.duplicates.within_train", "Equal text twice in train", "Counts double; often a mistake of collection."),
        Question("data.duplicates.near", "Almost equal text", "Paraphrases and templates leak like copies do."),
        Question("data.duplicates.similarity", "How equal is almost", "Share of letters' trigrams in common; 0.85 is one word of ten."),
        Question("data.hub", "Data set of the hub", "owner/name; the paths above are then inside it."),
        Question("data.revision", "Its commit", "40 hex digits, for `main` moves.", lambda d: value_of(d, "data.hub") is not None),
    ),
)  # fmt: skip

INSPECT = Step("inspect", "Inspect", "See the data as the loss will see it, before any GPU time is spent.")

MODEL = Step(
    "model", "Model and method", "Say what is trained: which base, and which of its parameters.",
    (
        Question("model.base", "Base model", "A folder, or owner/name on the hub."),
        Question("model.revision", "Its commit", "40 hex digits: the artefact stays tied to exactly these weights."),
        Question("model.source", "Installed package with it", "package:NAME/FOLDER carries the same files without a network."),
        Question("model.sha256", "Hash of its weights", "Another file under the same name is refused."),
        Question("model.remote_code", "Run its own code?", "Never."),
        Question("method.kind", "How it is trained", "An adapter (lora), an adapter on 4-bit weights (qlora), or every weight (full)."),
        Question("method.targets", "Modules with an adapter", "More modules learn more and need more memory.", _adapter),
        Question("method.rank", "Rank of the adapter", "Width of what it can learn; parameters grow with it.", _adapter),
        Question("method.alpha", "Alpha of the adapter", "Its output is scaled by alpha / rank.", _adapter),
        Question("method.dropout", "Dropout of the adapter", "Against learning few examples by heart.", _adapter),
        Question("method.save_modules", "Modules trained whole", "A new head must be; it is saved with the adapter.", _adapter),
        Question("method.use_rslora", "Scale by root of rank", "Keeps large ranks learning (rsLoRA).", _adapter),
        Question("method.use_dora", "Size and direction apart", "Slower, sometimes better at small ranks (DoRA).", _adapter),
        Question("method.frozen", "Modules left as they are", "Embeddings, for instance: less memory, less forgetting.", _method("full")),
    ),
    short="Model",
)  # fmt: skip

TRAINING = Step(
    "training", "Batch and training", "Say how one run trains, and when it must stop.",
    (
        Question("training.micro_batch", "Examples at a time", "What one process holds in memory at once (micro-batch)."),
        Question("training.accumulation", "Micro-batches per update", "Larger updates without more memory (accumulation)."),
        Question("machine.processes", "Processes per run", "Each is a replica on a GPU of its own and multiplies the update."),
        Question("machine.strategy", "How they share the work", "ddp: each holds the whole model; saves time and no memory."),
        Question("training.hold", "Held equal in variants", "The others follow from it; comparing unequal runs proves nothing."),
        Question("training.amount", "How much of it", "The length of every run."),
        Question("training.learning_rate", "Learning rate", "The setting most worth a variant."),
        Question("training.schedule", "How it falls", "linear and cosine end at 0."),
        Question("training.warmup", "Updates to warm up", "The rate rises from 0 over so many updates."),
        Question("training.weight_decay", "Weight decay", "Pulls trained weights towards 0."),
        Question("training.max_grad_norm", "Clip gradients at", "One odd batch cannot throw the run off."),
        Question("training.max_length", "Longest example (tokens)", "Memory grows with it; special tokens count."),
        Question("training.truncation", "A longer example", "Is an error, loses its end, or loses the left of its prompt."),
        Question("training.batching", "How examples are grouped", "By length or packed saves padding."),
        Question("training.precision", "Precision", "bf16 halves activations on GPUs that have it."),
        Question("training.activation_checkpointing", "Compute activations twice", "Less memory for about a third more time."),
        Question("training.validate_every", "Updates per validation", "Each costs a pass over the validation set."),
        Question("training.checkpoint_every", "Updates per checkpoint", "At most so much is lost to a crash."),
        Question("training.keep_checkpoints", "Checkpoints kept", "Besides the best one."),
        Question("training.stop.nonfinite", "Loss that is no number", "Stops the run, or the update is skipped and recorded."),
        Question("training.stop.divergence", "Stop at × the best loss",
                 "A run is stopped when its loss is so many times its best: written beforehand."),
        Question("training.stop.patience", "Patience, in validations",
                 "Stop after so many validations without a new best; none: every run has its full length."),
        Question("training.stop.max_hours", "Stop after hours", "None: only the rental ends it."),
        Question("machine.backend", "Where it runs", "auto takes a GPU when there is one."),
        Question("machine.slots", "Runs at once, no GPU", "None: one per core."),
        Question("machine.threads", "CPU threads of a process", "More than the cores slow each other down."),
    ),
    short="Training",
)  # fmt: skip

EVALUATION = Step(
    "evaluation", "Evaluation", "Say how every run is judged: all by the same examples and seeds.",
    (
        Question("evaluation.seeds", "Seeds", "One run per variant and seed; with one, luck and progress look alike."),
        Question("evaluation.control_inputs", "Control inputs", "Their outputs must be the same after the artefact is loaded elsewhere."),
        Question("evaluation.format", "JSON schema of an answer", "Its properties are the fields that are judged.", _task("extraction")),
        Question("evaluation.generation.max_new_tokens", "Longest answer, in tokens", "An answer is cut off there, and counts as it is.",
                 writes),
        Question("evaluation.generation.stop", "Tokens that end an answer", "Besides the model's own.", writes),
        Question("evaluation.batch_size", "Examples at a time", "Changes memory and speed, never a result."),
        Question("evaluation.resamples", "Bootstrap resamples", "More make intervals steadier, not narrower."),
    ),
)  # fmt: skip

RENTAL = Step(
    "rental", "Rental", "Say how long the machine is yours, and what its hours are for.",
    (
        Question("rental.days", "Days", "3, 7, 30, or any number; the hours below follow until you set them."),
        Question("rental.starts_at", "Begins at", "With its zone; none: the clock starts at the launch."),
        Question("rental.ends_at", "Ends at", "None: so many days after the beginning."),
        Question("rental.price_per_hour", "Price per hour", "Every hour below gets its price."),
        Question("rental.currency", "Currency", "Three letters."),
        Question("rental.hours.preflight", "Hours for the gates", "One complete step before a thousand trials."),
        Question("rental.hours.experiment", "Hours for training", "What the variants share, by priority."),
        Question("rental.hours.evaluation", "Hours for the evaluation", "Reserved: no training may eat them."),
        Question("rental.hours.resume", "Hours for what goes wrong", "Crashes, restarts, runs taken up again."),
        Question("rental.hours.export", "Hours for the artefact", "Reserved: written, loaded again, compared, copied."),
        Question("rental.hours.margin", "Margin", "Reserved: nobody knows for what."),
        Question("backup.destination", "Copied to", "A folder elsewhere or a URL (s3://…): this machine's disk ends with the rental.",
                 lambda d: value_of(d, "backup.command") is None),
        Question("backup.command", "Copied by a program", "Its words; {source} is the folder with what is new, {files} a list of it.",
                 lambda d: value_of(d, "backup.destination") is None),
        Question("backup.what", "What is copied", "record, exports, checkpoints: the last are large; runs go on from them.", _copies),
        Question("backup.every", "Minutes between copies", "And at each checkpoint, end of a phase and before the rental's end.", _copies),
    ),
)  # fmt: skip

VARIANTS = Step(
    "variants", "Variants", "Change one explained thing each; the control is the plan as written.",
    (
        Question("variants[].id", "Name", "Short: letters, digits and hyphens."),
        Question("variants[].because", "Why this could help", "An answer you can be wrong about is worth asking for."),
        Question("variants[].change", "What it changes", "Fields of method and training, nothing else: all are judged alike."),
        Question("variants[].together", "Why these belong together", "Needed where several fields change at once."),
        Question("variants[].priority", "Priority", "Higher runs first; what does not fit is left out from the end."),
    ),
    items="variants",
)  # fmt: skip

REVIEW = Step("review", "Review", "Read the whole plan once more; the launch freezes it.")

STEPS = (HYPOTHESIS, GUARDRAILS, DATA, INSPECT, MODEL, TRAINING, EVALUATION, RENTAL, VARIANTS, REVIEW)


def questions() -> Iterator[Question]:
    """All of them, in the wizard's order."""
    for step in STEPS:
        yield from step.questions
