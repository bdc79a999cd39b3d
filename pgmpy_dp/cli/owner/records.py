"""The commands that read records share their options, and open the records behind a ledger."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import click

from pgmpy_dp.cli.shared.common import assignments, delta_cautions, emit
from pgmpy_dp.cli.shared.files import file_option, out_option

if TYPE_CHECKING:
    from pgmpy_dp.data import PrivateDataset
    from pgmpy_dp.data.mechanisms.mechanism import PublicTable, Quote
    from pgmpy_dp.data.mechanisms.tables import NoisyTables
    from pgmpy_dp.privacy import PrivacyBudget
    from pgmpy_dp.schema import Clique, Schema

_SCHEMA = (
    file_option(
        "--schema", "schema_path", kinds=("a schema",), required=True, help="Schema file: what each column may hold."
    ),
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
)
_UNIT = (
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
)
_CSV = (
    click.option("--delimiter", metavar="SIGN", help="What parts the fields of the records' .csv file."),
    click.option("--encoding", help="How the records' .csv file writes its characters."),
    click.option(
        "--strip/--no-strip", default=None, help="Leave out blanks at the ends of the fields of the records' .csv file."
    ),
)
_LEDGER = (
    *_CSV,
    file_option("--ledger", kinds=("a ledger",), exists=False, help="Ledger to charge; see pgmpy-dp ledger create."),
    click.option("--no-ledger", is_flag=True, help="Charge no ledger: nothing then adds this up with other releases."),
)
dry_run_option = click.option(
    "--dry-run",
    is_flag=True,
    is_eager=True,
    help="Say how noisy it would be, read no record, charge nothing and write nothing.",
)


def written_option(name: str, kind: str, help: str, endings: tuple[str, ...] = ()) -> Callable[[Any], Any]:
    """Take a file to write, which a dry run alone does without."""

    def given(context: click.Context, option: click.Parameter, path: Path | None) -> Path | None:
        if path is None and not context.params["dry_run"]:
            raise click.MissingParameter(ctx=context, param=option)
        return path

    help = f"{help} Needed but for a --dry-run."
    return out_option(name, kind=kind, endings=endings, callback=given, help=help)


# The delta of the Gaussian noise that is advised, where its noise is so many times less than that of Laplace noise.
GAUSSIAN_DELTA, _WORTHWHILE = 1e-9, 2.0
_EPSILON = "Privacy loss of this release."
_NOISE = (
    click.option("--delta", type=float, default=0.0, show_default=True, help="Above 0 for Gaussian noise only."),
    click.option(
        "--mechanism",
        type=click.Choice(["laplace", "gaussian", "gaussian_block"]),
        default="laplace",
        show_default=True,
        help="Noise: laplace promises epsilon alone; gaussian needs a delta, and is less where many tables share it.",
    ),
)


def noise_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say how noisy tables are."""
    for option in reversed((click.option("--epsilon", type=float, required=True, help=_EPSILON), *_NOISE)):
        command = option(command)
    return command


def noise_options_or_plan(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the same, none of which is needed with a plan."""
    for option in reversed((click.option("--epsilon", type=float, help=_EPSILON), *_NOISE)):
        command = option(command)
    return command


check_option = click.option(
    "--check",
    type=click.FloatRange(0, 0.9),
    show_default="0.15",
    help="With --model: this share of the budget measures pairs that the network does not join. They test it, and tell "
    "bounds how far the records are from it; with 0 there are none, and bounds hold only if the network is right.",
)


def require_delta(mechanism: str, delta: float) -> None:
    """Refuse Gaussian noise without a delta."""
    if mechanism != "laplace" and delta == 0:
        raise click.ClickException(
            f"--mechanism {mechanism} needs a --delta, far below one over the number of records: 1e-8."
        )


def csv_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say how a CSV file of the records is written; what is not given stays as declared."""
    for option in reversed(_CSV):
        command = option(command)
    return command


def with_format(schema: Schema, delimiter: str | None, encoding: str | None, strip: bool | None) -> Schema:
    """Put what the options say of a CSV file in the place of what the schema does."""
    given = {"delimiter": delimiter, "encoding": encoding, "strip": strip}
    named = {name: value for name, value in given.items() if value is not None}
    return schema.replace(csv=replace(schema.csv, **named)) if named else schema  # type: ignore[arg-type]


def record_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of a command that reads records; it gets them as the keywords of `RecordOptions`."""
    for option in reversed((*_SCHEMA, *_UNIT, *_LEDGER)):
        command = option(command)
    return command


def table_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of a command that reads tables whose unit is known otherwise: `record_options` without --unit."""
    for option in reversed((*_SCHEMA, *_LEDGER)):
        command = option(command)
    return command


@dataclass(frozen=True)
class RecordOptions:
    """The values of a command's record options are kept here."""

    schema_path: Path
    missing: tuple[str, ...]
    other: tuple[str, ...]
    neighbours: str
    unit: str | None
    max_rows: int | None
    delimiter: str | None
    encoding: str | None
    strip: bool | None
    ledger: Path | None
    no_ledger: bool

    def schema(self) -> Schema:
        """Read the schema of the file, with what the options add to it."""
        from pgmpy_dp.schema import Schema

        schema = Schema.load(self.schema_path)
        missing = _added(schema, schema.missing, self.missing, "--missing")
        schema = schema.replace(missing=missing, other=_added(schema, schema.other, self.other, "--other"))
        return with_format(schema, self.delimiter, self.encoding, self.strip)

    def budget(self, epsilon: float, delta: float = 0.0) -> PrivacyBudget:
        """Open the ledger, or with ``--no-ledger`` make a budget for this call alone."""
        from pgmpy_dp.cli.owner.ledgers import open_ledger
        from pgmpy_dp.privacy import PrivacyBudget

        if self.no_ledger and self.ledger is not None:
            raise click.UsageError("Give either --ledger or --no-ledger.")
        if self.ledger is not None:
            return open_ledger(self.ledger)
        if not self.no_ledger:
            raise click.ClickException(
                "Name the ledger that adds up what is released from these records: --ledger ledger.json, made by "
                "pgmpy-dp ledger create. --no-ledger does without, for records that are released once."
            )
        return PrivacyBudget(epsilon, delta)

    def affordable(self, epsilon: float, delta: float) -> tuple[dict[str, Any], list[str]]:
        """Say, in a dry run with a ledger, what it has left and whether that is enough, for JSON and as lines."""
        if self.ledger is None:
            return {}, []
        remaining = self.budget(epsilon, delta).remaining
        enough = remaining.epsilon >= epsilon and remaining.delta >= delta
        held = {"remaining": {"epsilon": remaining.epsilon, "delta": remaining.delta}, "enough": enough}
        said = "" if enough else ": not enough"
        return {"ledger": held}, ["", f"Ledger {self.ledger}: epsilon {remaining.epsilon:.6g} remains{said}."]

    def dataset(self, data: Path, schema: Schema, budget: PrivacyBudget, *, in_memory: bool = False) -> PrivateDataset:
        """Open the records behind the ledger. An engine reads a Parquet file, unless it must be in memory."""
        from pgmpy_dp.data import PrivateDataset

        parquet = data.suffix.lower() in (".parquet", ".pq") or data.is_dir()
        records: Any = _in_memory(data, schema) if parquet and in_memory and self.unit is None else data
        return PrivateDataset(
            records, schema, budget, neighbours=self.neighbours, unit=self.unit, max_rows=self.max_rows
        )

    def public(self, schema: Schema, delta: float) -> PublicTable:
        """Say what is public of the records, for a price that is asked before they are read."""
        return public_table(schema, delta, self.neighbours, self.unit, self.max_rows)

    def charged(self, budget: PrivacyBudget) -> tuple[dict[str, Any], str]:
        """Say what the ledger holds after a charge, for JSON and as a line."""
        from pgmpy_dp.cli.owner.ledgers import summary

        if self.ledger is None:
            return {}, "Charged to no ledger: nothing adds this up with other releases from these records."
        held = summary(budget)  # type: ignore[arg-type]
        return {"ledger": held}, f"Ledger {self.ledger}: epsilon {held['remaining']['epsilon']:.6g} remains."


def public_table(
    schema: Schema, delta: float, neighbours: str = "add_remove", unit: str | None = None, max_rows: int | None = None
) -> PublicTable:
    """Say what is public of records that are not read."""
    from pgmpy_dp.data.mechanisms.mechanism import PublicTable
    from pgmpy_dp.privacy.budget import PrivacyBudget
    from pgmpy_dp.privacy.noise import OPENDP_NOISE
    from pgmpy_dp.records.units import checked_unit

    budget = PrivacyBudget(1.0, delta)  # stands for the one that would pay: prices look at its delta alone
    return PublicTable(neighbours, checked_unit(unit, max_rows, OPENDP_NOISE), None, budget, True, schema=schema)


def deviations(quote: Quote) -> dict[Clique, float]:
    """Find the standard deviation of the noise in a cell of each table."""
    from pgmpy_dp.privacy.mechanisms import UNIT_WEIGHT, gaussian_variance, laplace_variance

    parts = UNIT_WEIGHT if quote.guarantee.max_rows is None else 1
    variance = laplace_variance if quote.guarantee.mechanism == "laplace" else gaussian_variance
    return {clique: variance(scale) ** 0.5 / parts for clique, scale in quote.terms.items()}


def foreseen(
    quote: Quote,
    schema: Schema,
    as_json: bool,
    held: Mapping[str, Any] = MappingProxyType({}),
    lines: Sequence[str] = (),
    noise: Mapping[Clique, float] | None = None,
) -> None:
    """Print the tables that would be measured at this price, with the noise of their cells, and what else there is.

    `noise` is its standard deviation in the cells of each table, where the price does not state scales of tables.
    """
    noise = deviations(quote) if noise is None else noise
    tables: list[dict[str, Any]] = [
        {"variables": list(clique), "cells": schema.cells(clique), "noise": deviation}
        for clique, deviation in noise.items()
    ]
    text = [
        quote.guarantee.sentence(),
        f"{len(tables)} tables of {sum(map(schema.cells, noise)):,} cells. Nothing was read or charged.",
        "",
        *listed_tables(tables, quote.guarantee.counted),
        *delta_cautions(quote.guarantee.delta),
        *lines,
    ]
    emit(as_json, {"guarantee": quote.guarantee.to_dict(), "tables": tables, **held}, text)


def gaussian_advice(asked: NoisyTables, quote: Quote, public: PublicTable) -> list[str]:
    """Say how much less Gaussian noise tables would have that are to have Laplace noise; `public` has its delta."""
    if asked.mechanism != "laplace" or asked.sampling_rate < 1:
        return []
    price = replace(asked, delta=GAUSSIAN_DELTA, mechanism="gaussian").quote(public)
    laplace, gaussian = (statistics.median(deviations(each).values()) for each in (quote, price))
    if gaussian > laplace / _WORTHWHILE:
        return []
    return [
        "",
        f"Gaussian noise, --mechanism gaussian --delta {GAUSSIAN_DELTA:g}, would be {laplace / gaussian:.2g} times "
        "less, and leaves room for more pairs that the network does not join. The ledger needs a delta as well.",
    ]


def listed_tables(tables: Sequence[Mapping[str, Any]], counted: str) -> list[str]:
    """List tables with the noise of their cells, before a release and after it."""
    return [
        f"{'cells':>10}  {'noise':>9}  table (noise: standard deviation in each cell, in {counted})",
        *(f"{table['cells']:>10,}  {table['noise']:>9.4g}  {', '.join(table['variables'])}" for table in tables),
    ]


def _in_memory(data: Path, schema: Schema) -> Any:
    if data.is_dir():
        raise click.ClickException(f"{data}: samples are drawn in memory, from a single .parquet or .csv file.")
    try:
        import pyarrow.parquet as parquet
    except ImportError as error:
        raise ImportError(f"{data}: samples are drawn in memory, by pip install pyarrow.") from error
    from pgmpy_dp.records.columns import read_columns
    from pgmpy_dp.records.refusals import sealed

    # This avoids pandas, which makes all integers of a column floats where one is missing.
    columns = read_columns(schema, schema.variables)
    return sealed(lambda: parquet.ParquetFile(data).read(columns=columns), str(data))


def _added(schema: Schema, declared: Mapping[str, Any], texts: tuple[str, ...], option: str) -> dict[str, Any]:
    """Add what an option says to what is declared. A text that writes a state means it; another is a new state."""
    added = dict(declared)
    for variable, text in assignments(schema, texts, option).items():
        state = {str(state): state for state in schema.states[variable]}.get(text, text)
        if added.setdefault(variable, state) != state:
            raise click.ClickException(
                f"{option} {variable}={state}: the schema says {declared[variable]!r}. Leave the option out, or change "
                "the schema."
            )
    return added
