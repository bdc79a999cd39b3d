"""What the commands that read records share: their options, and opening the records behind a ledger."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pgmpy_dp.cli.common import assignments, file_option

if TYPE_CHECKING:
    from pgmpy_dp.data import PrivateDataset
    from pgmpy_dp.privacy import PrivacyBudget
    from pgmpy_dp.schema import Schema

_OPTIONS = (
    file_option("--schema", "schema_path", required=True, help="Schema file: what each column may hold."),
    click.option(
        "--missing",
        multiple=True,
        metavar="VARIABLE=STATE",
        help="State that stands for missing values of a variable; may be repeated. Without one they are refused.",
    ),
    click.option(
        "--other",
        multiple=True,
        metavar="VARIABLE=STATE",
        help="State that stands for values that are not declared; may be repeated. Without one they are refused.",
    ),
    click.option(
        "--neighbours",
        type=click.Choice(["add_remove", "replace_one"]),
        default="add_remove",
        show_default=True,
        help="What one record (or unit) may change: whether it is there, their number being private, or what it says, "
        "their number being public.",
    ),
    click.option(
        "--unit",
        metavar="COLUMN",
        help="Protect all rows of a person at once: the column that tells whose a row is, such as person_id.",
    ),
    click.option(
        "--max-rows",
        type=click.IntRange(1),
        help="With --unit: count at most so many rows of each, drawn at random. Without it all count, and share a "
        "weight of 1.",
    ),
    file_option("--ledger", exists=False, help="Ledger to charge; see pgmpy-dp ledger create."),
)


def record_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options of a command that reads records; it gets them as the keywords of `RecordOptions`."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


@dataclass(frozen=True)
class RecordOptions:
    """What the options say."""

    schema_path: Path
    missing: tuple[str, ...]
    other: tuple[str, ...]
    neighbours: str
    unit: str | None
    max_rows: int | None
    ledger: Path | None

    def schema(self) -> Schema:
        """The schema of the file, with the states that stand for missing and for other values."""
        from pgmpy_dp.schema import Schema

        schema = Schema.load(self.schema_path)
        missing, other = (
            _typed(schema, assignments(schema, given, option))
            for given, option in ((self.missing, "--missing"), (self.other, "--other"))
        )
        declared = {v: schema.bins.get(v, states) for v, states in schema.states.items()}
        return Schema(declared, {**schema.missing, **missing}, {**schema.other, **other})

    def budget(self, epsilon: float, delta: float = 0.0) -> PrivacyBudget:
        """The ledger, or without one a budget for this call alone."""
        from pgmpy_dp.cli.ledgers import open_ledger
        from pgmpy_dp.privacy import PrivacyBudget

        return PrivacyBudget(epsilon, delta) if self.ledger is None else open_ledger(self.ledger)

    def dataset(self, data: Path, schema: Schema, budget: PrivacyBudget, *, in_memory: bool = False) -> PrivateDataset:
        """The records behind the ledger. A Parquet file is read by its engine, unless it must be in memory."""
        from pgmpy_dp.data import PrivateDataset

        records: Any = data
        if in_memory and self.unit is None and not data.name.lower().endswith((".csv", ".gz", ".zst", ".bz2", ".xz")):
            try:
                import pyarrow.parquet as parquet
            except ImportError as error:
                raise ImportError(f"{data}: samples are taken in memory, by pip install pyarrow.") from error
            # Not by pandas, which makes floats of all integers of a column where one is missing.
            records = parquet.read_table(data, columns=list(schema.variables))
        return PrivateDataset(
            records, schema, budget, neighbours=self.neighbours, unit=self.unit, max_rows=self.max_rows
        )

    def charged(self, budget: PrivacyBudget) -> tuple[dict[str, Any], str]:
        """What the ledger says after a charge, for JSON and as a line."""
        from pgmpy_dp.cli.ledgers import summary

        if self.ledger is None:
            return {}, "Charged to no ledger: nothing adds this up with other releases from these records (--ledger)."
        held = summary(budget)  # type: ignore[arg-type]
        return {"ledger": held}, f"Ledger {self.ledger}: epsilon {held['remaining']['epsilon']:.6g} remains."


def _typed(schema: Schema, given: dict[str, str]) -> dict[str, Any]:
    """A text that writes a declared state is that state; another is a new one."""
    known = {v: {str(state): state for state in schema.states[v]} for v in given}
    return {variable: known[variable].get(text, text) for variable, text in given.items()}


@contextmanager
def values_kept_back() -> Iterator[None]:
    """Let through only messages that this package wrote: those of other libraries may hold values of records."""
    try:
        yield
    except (click.ClickException, OSError, ImportError):
        raise
    except Exception as error:
        frames = [frame.f_globals.get("__name__", "") for frame, _ in traceback.walk_tb(error.__traceback__)]
        if isinstance(error, (ValueError, TypeError)) and frames[-1].startswith("pgmpy_dp."):
            raise
        raise click.ClickException(
            f"Reading or counting failed ({type(error).__name__}). The message is kept back, since it may show values "
            "of records; check that the columns of the data are what the schema says. What was charged stays charged."
        ) from None
