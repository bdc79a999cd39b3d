"""Options that several commands have are declared once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from pgmpy_dp.cli.shared.files import file_option, out_option

Decorator = Callable[[Any], Any]

dry_run_option = click.option(
    "--dry-run",
    is_flag=True,
    is_eager=True,
    help="Print what would be measured. Nothing is read, charged or written.",
)
_RECORDS = click.option(
    "--records",
    type=click.FloatRange(0, min_open=True),
    help="Public guess of the number of records or units, never a count of them, for a prediction of the accuracy. "
    "With --weights: of the sum of weights divided by the largest.",
)
_ERROR = click.option(
    "--error",
    type=click.FloatRange(0, 0.5, min_open=True),
    help="With --records: also print the least epsilon for this mean error of pairs of synthetic records.",
)
epsilon_option = click.option("--epsilon", type=float, required=True, help="Privacy loss.")
schema_option = file_option(
    "--schema", "schema_path", kinds=("a schema",), required=True, help="Schema file: the states of each variable."
)
check_option = click.option(
    "--check",
    type=click.FloatRange(0, 0.9),
    show_default="0.15",
    help="With --model: share of the budget for pairs that the network does not join. They test the network, and "
    "bounds allow for what they find. With 0, bounds hold only if the network is right.",
)
numbers_option = click.option(
    "--numbers",
    type=click.Choice(["drawn", "midpoint", "states"]),
    help="Values of binned variables: numbers drawn within bins, midpoints, or bin names. By default numbers, as in a "
    "file of records (simulate in Python returns states, as pgmpy does), or states if the model has no release.",
)
seed_option = click.option(
    "--seed", type=click.IntRange(0), help="The same seed draws the same records; privacy does not depend on it."
)
release_out_option = out_option(
    "--release", "release_path", kind="a release", endings=(".zip",), help="Release file to write as well, .zip."
)
spreadsheet_option = click.option(
    "--spreadsheet",
    is_flag=True,
    help="Put an apostrophe before texts in CSV that a spreadsheet would run, such as =1+1, and before texts that "
    "begin with one. Removing the first apostrophe of each text restores them.",
)


def combined(*options: Decorator) -> Decorator:
    """Add several options, listed in this order."""

    def add(command: Any) -> Any:
        for option in reversed(options):
            command = option(command)
        return command

    return add


outlook_options = combined(_RECORDS, _ERROR)


def delta_option(**settings: Any) -> Decorator:
    """Add the delta of Gaussian noise, which is required unless it has a default."""
    needed = "Above 0 for Gaussian noise; far" if "default" in settings else "Delta of Gaussian noise: far"
    none = "" if "default" in settings else "; or 0, for Laplace noise. Required"
    return click.option(
        "--delta",
        type=float,
        callback=_require_delta,
        show_default=True,
        help=f"{needed} below one over the number of records, such as 1e-9{none}.",
        **settings,
    )


def _require_delta(context: click.Context, option: click.Parameter, delta: float | None) -> float:
    if delta is None:
        raise click.UsageError(
            "Missing option '--delta': the probability of an outcome that epsilon does not bound, far below one over "
            "the number of records, such as 1e-9. With --delta 0 there is none, and the noise is that of the Laplace "
            "distribution, which is larger.",
            context,
        )
    return delta


def noise_options(epsilon: bool = True) -> Decorator:
    """Add the privacy loss and the noise of tables; without `epsilon`, a plan may state the loss."""
    return combined(
        click.option("--epsilon", type=float, required=epsilon, help="Privacy loss."),
        delta_option(default=0.0),
        click.option(
            "--mechanism",
            type=click.Choice(["auto", "laplace", "gaussian", "gaussian_block"]),
            default="auto",
            show_default=True,
            help="Laplace noise has no delta. Gaussian noise needs one, and is less where many tables share a budget. "
            "auto is Gaussian exactly where there is a delta, in one block where units have one row.",
        ),
    )


def rows_option(records: str = "records") -> Decorator:
    """Add the number of records to draw."""
    return click.option(
        "--rows", type=click.IntRange(1), help=f"Number of {records} to draw; by default the estimated number."
    )


def written_option(name: str, kind: str, help: str, endings: tuple[str, ...] = ()) -> Decorator:
    """Add a file to write, which is required unless the command is a dry run."""

    def given(context: click.Context, option: click.Parameter, path: Path | None) -> Path | None:
        if path is None and not context.params["dry_run"]:
            raise click.MissingParameter(ctx=context, param=option)
        return path

    help = f"{help} Required unless --dry-run."
    return out_option(name, kind=kind, endings=endings, callback=given, help=help)


_CSV = (
    click.option("--delimiter", metavar="SIGN", help="Separates the fields of the records' .csv file."),
    click.option("--encoding", help="Encoding of the records' .csv file."),
    click.option("--decimal", metavar="MARK", help="Decimal mark in the records' .csv file, '.' or ','."),
    click.option(
        "--dates", metavar="FORMAT", help="How dates are written in the records' .csv file, such as %d/%m/%Y."
    ),
    click.option("--strip/--no-strip", default=None, help="Remove blanks around the fields of the records' .csv file."),
)
csv_options = combined(*_CSV)


def record_options(unit: bool = True) -> Decorator:
    """Add the options of a command that reads records, for `Spending`; without `unit`, without how rows count."""
    one = (
        click.option(
            "--unit",
            metavar="COLUMN",
            help="Protect all rows of a person together: the column that identifies persons, such as person_id.",
        ),
        click.option(
            "--max-rows",
            type=click.IntRange(1),
            help="With --unit: count at most this number of rows of each person, drawn at random. By default all rows "
            "count, with a total weight of 1.",
        ),
        click.option(
            "--weights",
            metavar="COLUMN",
            help="Survey weights: tables add up this column, in units of the largest weight. Negative numbers, and "
            "what is not a number, count as 0.",
        ),
        click.option(
            "--largest-weight",
            type=float,
            metavar="NUMBER",
            help="With --weights: the public largest weight. Noise is proportional to it; larger ones count as it.",
        ),
    )
    return combined(
        schema_option,
        click.option(
            "--missing",
            multiple=True,
            metavar="VARIABLE=STATE",
            help="State for missing values of a variable; may be repeated. Without one they are refused.",
        ),
        click.option(
            "--other",
            multiple=True,
            metavar="VARIABLE=STATE",
            help="State for undeclared values of a variable; may be repeated. Without one they are refused.",
        ),
        click.option(
            "--neighbours",
            type=click.Choice(["add_remove", "replace_one"]),
            default="add_remove",
            show_default=True,
            help="Neighbouring data sets differ by one record (or unit) added or removed, with a private number of "
            "records, or replaced, with a public one.",
        ),
        *(one if unit else ()),
        *_CSV,
        file_option("--ledger", kinds=("a ledger",), exists=False, help="Ledger to charge; see `ledger create`."),
        click.option("--no-ledger", is_flag=True, help="Charge no ledger: nothing adds this to other releases."),
    )
