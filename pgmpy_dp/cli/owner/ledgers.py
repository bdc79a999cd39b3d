"""`pgmpy-dp ledger` makes and shows the privacy budget of a collection of records."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pgmpy_dp.cli.shared.common import Group, Result, delta_cautions
from pgmpy_dp.cli.shared.files import file_argument

if TYPE_CHECKING:
    from pgmpy_dp.privacy import PrivacyBudget


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
        raise click.ClickException(f"{path} exists already: show it with pgmpy-dp ledger show, or choose another name.")
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
