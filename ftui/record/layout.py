"""Names of the files and folders in a campaign's directory. Nothing else in ftui spells them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from platformdirs import user_data_path

from ftui.plan.load import PLAN_FILE


@dataclass(frozen=True)
class RunFiles:
    """The files of one run."""

    root: Path

    @property
    def settings(self) -> Path:
        return self.root / "run.toml"

    @property
    def series(self) -> Path:
        return self.root / "series.jsonl"

    @property
    def outcome(self) -> Path:
        return self.root / "outcome.json"

    @property
    def log(self) -> Path:
        return self.root / "log.txt"

    @property
    def checkpoints(self) -> Path:
        return self.root / "checkpoints"

    @property
    def predictions(self) -> Path:
        return self.root / "predictions"

    def validation_predictions(self, update: int) -> Path:
        return self.predictions / f"validation-{update:08d}.jsonl"

    @property
    def test_predictions(self) -> Path:
        return self.predictions / "test.jsonl"

    @property
    def test_metrics(self) -> Path:
        """Metrics of the test evaluation; exists once its predictions are complete."""
        return self.predictions / "test-metrics.json"

    @property
    def model(self) -> Path:
        """What the run's process trained: parameters and their count, the base's hash, how examples became inputs (P2)."""
        return self.root / "model.json"

    @property
    def environment(self) -> Path:
        """Versions, driver and device names of the latest attempt (B1)."""
        return self.root / "environment.json"


@dataclass(frozen=True)
class GateFiles:
    """The files of one pass through the gates: a pilot has a run's settings and log beside its rows."""

    root: Path

    @property
    def rows(self) -> Path:
        return self.root / "rows.jsonl"

    @property
    def run(self) -> RunFiles:
        return RunFiles(self.root)

    @property
    def continued(self) -> Path:
        """The updates behind the pilot's checkpoint, for a new process to compare."""
        return self.root / "continued.json"

    @property
    def artefact(self) -> Path:
        """What the pilot exports; removed when it was loaded again."""
        return self.root / "artefact"


@dataclass(frozen=True)
class CampaignFiles:
    """The files of one campaign, `root` being its directory."""

    root: Path

    @property
    def name(self) -> str:
        return self.root.name

    @property
    def plan(self) -> Path:
        return self.root / PLAN_FILE

    @property
    def journal(self) -> Path:
        return self.root / "journal.jsonl"

    @property
    def requests(self) -> Path:
        return self.root / "requests"

    @property
    def data(self) -> Path:
        return self.root / "data"

    @property
    def data_current(self) -> Path:
        """Names the latest prepared data version; written by the preparation, read by the engine."""
        return self.root / "data" / "current.json"

    def data_version(self, data_hash: str) -> Path:
        return self.data / data_hash

    def data_unusable(self, data_hash: str) -> Path:
        """What could be read of data with errors, to be looked at; no run reads it."""
        return self.data / f"unusable-{data_hash}"

    def manifest(self, data_hash: str) -> Path:
        return self.data_version(data_hash) / "manifest.json"

    def leakage(self, data_hash: str) -> Path:
        return self.data_version(data_hash) / "leakage.json"

    def gates(self, gate_id: str) -> GateFiles:
        return GateFiles(self.root / "gates" / gate_id)

    @property
    def runs(self) -> Path:
        return self.root / "runs"

    def run(self, run_id: str) -> RunFiles:
        return RunFiles(self.runs / run_id)

    @property
    def machine(self) -> Path:
        return self.root / "machine.jsonl"

    @property
    def exports(self) -> Path:
        return self.root / "exports"

    @property
    def report(self) -> Path:
        return self.root / "report"

    @property
    def report_json(self) -> Path:
        return self.report / "report.json"

    @property
    def report_markdown(self) -> Path:
        return self.report / "report.md"

    @property
    def backup(self) -> Path:
        """What is safe elsewhere, file by file; written by the process that copies."""
        return self.root / "backup.json"

    @property
    def backup_lock(self) -> Path:
        """Held while a copy goes on."""
        return self.root / "backup.lock"

    @property
    def backup_log(self) -> Path:
        return self.root / "backup.log"

    @property
    def backup_stage(self) -> Path:
        """What a copying program is to take along; there only while it works."""
        return self.root / ".backup"

    @property
    def supervisor(self) -> Path:
        """Who supervises, as of its last heartbeat; held under a lock while it lives."""
        return self.root / "supervisor.json"

    @property
    def supervisor_lock(self) -> Path:
        return self.root / "supervisor.lock"

    @property
    def supervisor_log(self) -> Path:
        return self.root / "supervisor.log"


def campaigns_home() -> Path:
    """Where campaigns live that are not under `campaigns/` of the working directory."""
    return user_data_path("ftui") / "campaigns"


def campaign_folders() -> list[Path]:
    """Folders searched for campaigns by name, in order."""
    return [Path("campaigns"), campaigns_home()]


def new_campaign_folder(name_or_path: str) -> Path:
    """Where a new campaign of this name lies: under `campaigns/` of the working directory, or where a path says."""
    given = Path(name_or_path).expanduser()
    return given if "/" in name_or_path else campaign_folders()[0] / given


def known_campaigns() -> list[CampaignFiles]:
    """Every campaign in the searched folders, by name."""
    found = [
        CampaignFiles(plan.parent.resolve())
        for folder in campaign_folders()
        if folder.is_dir()
        for plan in sorted(folder.glob(f"*/{PLAN_FILE}"))
    ]
    return sorted(found, key=lambda campaign: campaign.name)


def find_campaign(name_or_path: str) -> CampaignFiles:
    """The campaign in a directory, or by name. Raises FileNotFoundError with a sentence that says where was looked."""
    given = Path(name_or_path).expanduser()
    candidates = [given, *(folder / name_or_path for folder in campaign_folders())]
    for candidate in candidates:
        if (candidate / PLAN_FILE).is_file() or (candidate / "journal.jsonl").is_file():
            return CampaignFiles(candidate.resolve())
    looked = ", ".join(str(folder) for folder in campaign_folders())
    if given.is_dir():
        raise FileNotFoundError(f"{given}: holds no {PLAN_FILE}; `ftui new` writes one to start from")
    raise FileNotFoundError(f"{name_or_path}: no such campaign, neither a directory nor a name under {looked}")
