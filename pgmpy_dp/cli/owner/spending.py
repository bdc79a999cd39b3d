"""Ledgers, which `pgmpy-dp ledger` makes and shows, and commands that charge them for answers about records."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pgmpy_dp.cli.shared.common import Group, Result, assignments, delta_cautions, stage
from pgmpy_dp.cli.shared.files import file_argument
from pgmpy_dp.cli.shared.options import Decorator, record_options
from pgmpy_dp.models.formats.file_kinds import kind_of

if TYPE_CHECKING:
    from pgmpy_dp.data import PrivateDataset
    from pgmpy_dp.data.mechanisms.mechanism import PublicRecords
    from pgmpy_dp.privacy import PrivacyBudget
    from pgmpy_dp.schema import Schema


@dataclass(frozen=True)
class Spending:
    """Values of the options of commands that spend a budget."""

    schema_path: Path
    missing: tuple[str, ...]
    other: tuple[str, ...]
    neighbours: str
    delimiter: str | None
    encoding: str | None
    strip: bool | None
    decimal: str | None
    dates: str | None
    ledger: Path | None
    no_ledger: bool
    epsilon: float
    delta: float = 0.0
    unit: str | None = None
    max_rows: int | None = None
    weights: str | None = None
    largest_weight: float | None = None
    dry_run: bool = False
    records: float | None = None
    error: float | None = None

    def __post_init__(self) -> None:
        given = [f"--{name}" for name in ("records", "error") if getattr(self, name) is not None]
        if given and not self.dry_run:
            raise click.UsageError(
                f"For --dry-run alone: {', '.join(given)}. Add --dry-run; a release estimates the number of records."
            )

    def schema(self) -> Schema:
        """Read the schema file, and add what the options declare."""
        from pgmpy_dp.records.units import warn_of_unit
        from pgmpy_dp.schema import Schema

        schema = Schema.load(self.schema_path)
        warn_of_unit(schema, self.unit)
        missing = _added(schema, schema.missing, self.missing, "--missing")
        schema = schema.replace(missing=missing, other=_added(schema, schema.other, self.other, "--other"))
        return with_format(schema, **{name: getattr(self, name) for name in CSV})

    @cached_property
    def budget(self) -> PrivacyBudget:
        """The ledger, or with ``--no-ledger`` a budget for this call alone."""
        from pgmpy_dp.privacy import PrivacyBudget

        if self.no_ledger and self.ledger is not None:
            raise click.UsageError("Give either --ledger or --no-ledger.")
        if self.ledger is not None:
            return open_ledger(self.ledger)
        if not self.no_ledger:
            raise click.ClickException(
                "Name the ledger that adds up the releases from these records: --ledger ledger.json, made by "
                "pgmpy-dp ledger create. Records that are released once need none: --no-ledger."
            )
        return PrivacyBudget(self.epsilon, self.delta)

    def dataset(self, data: Any, schema: Schema) -> PrivateDataset:
        """Open the records behind the ledger."""
        from pgmpy_dp.data import PrivateDataset

        budget = self.budget
        stage("Reading the records")
        own = {name: getattr(self, name) for name in ("neighbours", "unit", "max_rows", "weights", "largest_weight")}
        return PrivateDataset(data, schema, budget, **own)

    def public(self, schema: Schema, delta: float | None = None) -> PublicRecords:
        """Return the public facts about the records, to price a mechanism before they are read."""
        from pgmpy_dp.data.mechanisms.mechanism import PublicRecords
        from pgmpy_dp.records.weights import checked_weights

        delta = self.delta if delta is None else delta
        weights = checked_weights(self.weights, self.largest_weight)
        return PublicRecords.of(schema, delta, self.neighbours, self.unit, self.max_rows, weights)

    def planned(self, found: Mapping[str, Any], lines: Sequence[str]) -> Result:
        """Return the plan of a dry run, and whether the ledger can pay for it."""
        lines = [*lines, *delta_cautions(self.delta)]
        if self.ledger is None:
            return dict(found), lines
        left = summary(self.budget)["remaining"]
        enough = left["epsilon"] >= self.epsilon and left["delta"] >= self.delta
        line = f"Ledger {self.ledger}: epsilon {left['epsilon']:.6g} remains{'' if enough else ': not enough'}."
        return {**found, "ledger": {"remaining": left, "enough": enough}}, [*lines, "", line]

    def paid(self, found: Mapping[str, Any], lines: Sequence[str]) -> Result:
        """Return what was paid for, and what remains in the ledger."""
        lines = [*lines, *delta_cautions(self.delta)]
        if self.ledger is None:
            line = "No ledger was charged: nothing adds this to other releases from these records."
            return dict(found), [*lines, line]
        left = summary(self.budget)
        line = f"Ledger {self.ledger}: epsilon {left['remaining']['epsilon']:.6g} remains."
        return {**found, "ledger": left}, [*lines, line]


def spends(unit: bool = True, own: tuple[str, ...] = ()) -> Decorator:
    """Add the options of a command that reads records, and pass it a `Spending` in their place."""

    def wrap(function: Callable[..., Any]) -> Any:
        @wraps(function)
        def run(**options: Any) -> Any:
            names = {field.name for field in fields(Spending)} & options.keys() - {*own}
            return function(Spending(**{name: options.pop(name) for name in names}), **options)

        return record_options(unit)(run)

    return wrap


CSV = ("delimiter", "encoding", "strip", "decimal", "dates")
"""Names of the options of a .csv file's format."""


def with_format(schema: Schema, **given: Any) -> Schema:
    """Replace the CSV format of the schema by the options that are given."""
    named = {name: value for name, value in given.items() if value is not None}
    return schema.replace(csv=replace(schema.csv, **named)) if named else schema


def _added(schema: Schema, declared: Mapping[str, Any], texts: tuple[str, ...], option: str) -> dict[str, Any]:
    """Add what an option declares. A text that writes a state means that state; any other is a new state."""
    added = dict(declared)
    for variable, text in assignments(schema, texts, option).items():
        state = {str(state): state for state in schema.states[variable]}.get(text, text)
        if added.setdefault(variable, state) != state:
            raise click.ClickException(
                f"{option} {variable}={state}: the schema says {declared[variable]!r}. Leave the option out, or change "
                "the schema."
            )
    return added


@click.group(cls=Group)
def ledger() -> None:
    """Make or show a ledger: the privacy budget of a set of records.

    Keep one ledger for all releases from a collection of persons. It adds up the privacy loss of one record, or of one
    person: always charge it with the same --neighbours and --unit. Keep it beside the records, and never restore an old
    copy: it would forget later releases.
    """


@ledger.command()
@click.argument("path", type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "--epsilon", type=float, required=True, help="Total of all releases; it cannot be changed. 1 is strong, 10 is weak."
)
@click.option("--delta", type=float, default=0.0, show_default=True, help="Above 0 for Gaussian noise, such as 1e-6.")
def create(path: Path, epsilon: float, delta: float) -> Result:
    """Make the ledger file PATH, with a total that cannot be changed later."""
    from pgmpy_dp.privacy import PrivacyBudget

    if path.exists():
        ledger = kind_of(path) == "a ledger"
        way = f"pgmpy-dp ledger show {path} shows what remains of it, and it keeps its total: or " if ledger else ""
        raise click.ClickException(f"{path} exists already: {way}choose another name.")
    hint = f"Keep it beside the records. Charge it: pgmpy-dp release DATA --ledger {path} ..."
    return _shown(PrivacyBudget.open(path, epsilon, delta), *delta_cautions(delta), hint)


@ledger.command()
@file_argument("path", "a ledger")
def show(path: Path) -> Result:
    """Show the ledger PATH: totals, charges, and what remains."""
    return _shown(open_ledger(path))


def open_ledger(path: Path) -> PrivacyBudget:
    """Open the budget of an existing ledger."""
    from pgmpy_dp.privacy import PrivacyBudget

    if not path.exists():
        raise click.ClickException(f"{path}: no such ledger. Make one: pgmpy-dp ledger create {path} --epsilon TOTAL")
    return PrivacyBudget.open(path)


def summary(budget: PrivacyBudget) -> dict[str, Any]:
    """Describe a ledger, for JSON."""
    spent, remaining = budget.spent, budget.remaining
    return {
        "ledger": str(budget.path),
        "epsilon": budget.epsilon,
        "delta": budget.delta,
        "spent": {"epsilon": spent.epsilon, "delta": spent.delta},
        "remaining": {"epsilon": remaining.epsilon, "delta": remaining.delta},
        "charges": [charge.to_dict() for charge in budget.history],
        "head": budget.head,
    }


def _shown(budget: PrivacyBudget, *hints: str) -> Result:
    result = summary(budget)

    def formatted(loss: Mapping[str, float]) -> str:
        return f"epsilon {loss['epsilon']:.6g}" + (f", delta {loss['delta']:g}" if budget.delta else "")

    lines = [
        f"{budget.path}",
        f"  total      {formatted(result)}",
        f"  spent      {formatted(result['spent'])}",
        f"  remaining  {formatted(result['remaining'])}",
    ]
    for number, charge in enumerate(budget.history, 1):
        loss = {"epsilon": charge.epsilon, "delta": charge.delta, "rho": charge.rho}
        price = ", ".join(f"{name} {float(value):.6g}" for name, value in loss.items() if value is not None)
        lines.append(f"  {number:>3}. {charge.label}: {charge.mechanism}, {price}")
    if any(charge.rho is not None for charge in budget.history):
        lines.append("  Rhos add up whatever their delta: the loss spent is stated at the ledger's own delta.")
    lines.append(f"  head       {result['head']}")
    return result, [*lines, *hints]
