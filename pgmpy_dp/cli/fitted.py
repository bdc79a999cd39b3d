"""`pgmpy-dp fit`, `query` and `sample` do what anyone may do with a release."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pgmpy_dp.cli.common import (
    Command,
    assignments,
    close_to,
    emit,
    file_argument,
    file_option,
    json_option,
    one_line,
    quiet,
    sentence,
    stages,
)
from pgmpy_dp.cli.synthesis import write_records

if TYPE_CHECKING:
    from pgmpy_dp.schema import Schema

METHODS = {
    "auto": "AutoMLE",
    "collective-em": "CollectiveEM",
    "private-mle": "PrivateMLE",
    "private-bayesian": "PrivateBayesianEstimator",
    "naive-mle": "NaiveMLE",
}
_READINGS = {
    None: "",
    "inference": ": all tables inform every CPD",
    "family": ": each CPD is read from its own table",
    "both": ": each CPD is read partly from its own table, partly from all",
}
_MARKOV, _BAYESIAN = ("naive-mle",), ("private-mle", "private-bayesian")


@click.command(cls=Command)
@file_argument("release")
@file_option(
    "--model", required=True, help="Structure: .bif, .xmlbif, .uai, .json, or edges in .txt (a -> b or a -- b)."
)
@click.option(
    "--estimator",
    "--method",
    "method",
    type=click.Choice(list(METHODS)),
    default=next(iter(METHODS)),
    show_default=True,
    help="See above.",
)
@file_option("--out", exists=False, required=True, help="Network to write: .bif, .xmlbif, .uai or .json.")
@json_option
def fit(release: Path, model: Path, method: str, out: Path, as_json: bool) -> None:
    """Fit a network to RELEASE. This costs no privacy, however often it is done.

    \b
    Estimators
      auto              by inference as far as the release agrees with the network, else each family from its table;
                        Markov networks, and releases of coefficients, by collective-em
      collective-em     one distribution behind all tables: best where noise is strong or tables overlap
      private-mle       Bayesian networks; each family's CPD from its table: quick and plain
      private-bayesian  Bayesian networks; posterior means under a BDeu prior
      naive-mle         Markov networks; noisy tables taken for true: the usual baseline

    \b
      pgmpy-dp fit release.zip --model model.bif --out fitted.bif
      pgmpy-dp fit release.zip --model edges.txt --estimator naive-mle --out fitted.json
    """
    quiet()
    from pgmpy.models import DiscreteMarkovNetwork

    import pgmpy_dp as dp
    from pgmpy_dp.cli.structure import read_structure
    from pgmpy_dp.fitting.fit_checks import check_network
    from pgmpy_dp.networks import SUFFIXES, save_network
    from pgmpy_dp.release import Release

    with stages(4) as begin:
        begin("Reading the release")
        noisy, network = Release.load(release), read_structure(model)
        markov = isinstance(network, DiscreteMarkovNetwork)
        if method in _BAYESIAN and markov:
            raise click.ClickException(f"{method} fits Bayesian networks: give edges a -> b, or another --estimator.")
        if method in _MARKOV and not markov:
            raise click.ClickException(f"{method} fits Markov networks: give edges a -- b, or another --estimator.")
        formats = (".uai", ".json") if markov else SUFFIXES
        if out.suffix.lower() not in formats:
            kind = "Markov" if markov else "Bayesian"
            raise click.ClickException(f"{out}: {kind} networks are written to {', '.join(formats)} files.")
        noisy.schema.require([list(network.nodes())])
        if method == "auto" and (markov or not isinstance(noisy, dp.NoisyMarginals)):
            method = "collective-em"  # there are no tables of families to choose
        estimator: Any = getattr(dp, METHODS[method])()
        begin(f"Fitting ({method})")
        network.fit(noisy, estimator=estimator)
        begin("Holding the release against it")
        check, untested = None, ""
        try:
            check = check_network(network, [noisy])
        except ValueError as error:  # it is too large, or its parameters are tied
            untested = one_line(error)
        begin("Writing the network")
        save_network(network, out, noisy.guarantee)
    reading = getattr(estimator, "reading_", None)
    held = {
        "file": str(out),
        "kind": "Markov" if markov else "Bayesian",
        "method": method,
        "reading": reading,
        "variables": len(network.nodes()),
        "edges": len(network.edges()),
        "guarantee": noisy.guarantee.to_dict() | {"text": str(noisy.guarantee)},
        "check": None
        if check is None
        else {
            "fails": check.fails,
            "p_value": None if math.isnan(check.p_value) else check.p_value,
            "misfit": None if math.isnan(check.z2) else check.z2,
            "worst": check.worst(),
        },
    }
    size = f"{held['variables']} variables and {held['edges']} edges"
    lines = [
        f"{held['kind']} network of {size}, by {method}{_READINGS[reading]}.",
        f"{sentence(noisy.guarantee)}.",
        *([f"No test of fit: {untested}"] if check is None else repr(check).splitlines()),
        f"Written to {out}.",
    ]
    emit(as_json, held, lines)


@click.command(cls=Command)
@file_argument("network")
@click.option("--target", "targets", multiple=True, required=True, help="Variable to ask for; several: their joint.")
@click.option("--evidence", "evidence", multiple=True, metavar="VARIABLE=STATE", help="What is known; may be repeated.")
@json_option
def query(network: Path, targets: tuple[str, ...], evidence: tuple[str, ...], as_json: bool) -> None:
    """Ask a fitted NETWORK for a distribution. This costs no privacy.

    \b
      pgmpy-dp query fitted.bif --target lung --evidence smoke=yes
    """
    quiet()
    loaded = loaded_network(network)
    schema = _schema(loaded)
    schema.require([targets])
    given = _evidence(schema, evidence)
    rows = _answer(loaded, schema, targets, given)
    condition = f" | {', '.join(f'{name} = {state}' for name, state in given.items())}" if given else ""
    width = max(len(", ".join(map(str, states))) for states, _ in rows)
    lines = [f"{', '.join(map(str, states)):<{width}}  {probability:.6f}" for states, probability in rows]
    held = {
        "target": list(targets),
        "evidence": given,
        "answer": [
            {"states": dict(zip(targets, states, strict=True)), "probability": probability}
            for states, probability in rows
        ],
    }
    emit(as_json, held, [f"P({', '.join(targets)}{condition})", *lines])


def _evidence(schema: Schema, evidence: Sequence[str]) -> dict[str, Any]:
    given: dict[str, Any] = {}
    for variable, wanted in assignments(schema, evidence, "--evidence").items():
        known = {str(state): state for state in schema.states[variable]}
        if wanted not in known:
            close = close_to(wanted, known)
            raise click.ClickException(
                f"Variable {variable!r} has no state {wanted!r}; it has: {', '.join(known)}.{close}"
            )
        given[variable] = known[wanted]
    return given


def loaded_network(path: Path) -> Any:
    """Load the network of a file, or the mixture."""
    from pgmpy_dp.networks import load_network
    from pgmpy_dp.synthesis import PrivateMixtureNetwork

    return PrivateMixtureNetwork.load(path) if PrivateMixtureNetwork.wrote(path) else load_network(path)


def _schema(network: Any) -> Schema:
    from pgmpy_dp.schema import Schema
    from pgmpy_dp.synthesis import PrivateMixtureNetwork

    return network.schema_ if isinstance(network, PrivateMixtureNetwork) else Schema.from_model(network)


def _answer(network: Any, schema: Any, targets: Sequence[str], given: dict[str, Any]) -> list[tuple[Any, float]]:
    from itertools import product

    factor = network.query(list(targets), given)
    cells = list(product(*(schema.states[variable] for variable in targets)))
    return [(cell, float(factor.get_value(**dict(zip(targets, cell, strict=True))))) for cell in cells]


@click.command(cls=Command)
@file_argument("network")
@click.option("--rows", type=click.IntRange(1), required=True, help="How many records to draw.")
@click.option("--seed", type=click.IntRange(0), help="For the same records again; no privacy hangs on it.")
@file_option("--out", exists=False, help="File to write, .csv or .parquet; by default CSV is printed.")
@json_option
def sample(network: Path, rows: int, seed: int | None, out: Path | None, as_json: bool) -> None:
    """Draw synthetic records from a fitted NETWORK. This costs no privacy.

    \b
      pgmpy-dp sample fitted.bif --rows 10000 --out synthetic.csv
    """
    quiet()
    if out is not None and out.suffix.lower() not in (".csv", ".parquet"):
        raise click.ClickException(f"{out}: records are written to .csv and .parquet files.")
    with stages(2) as begin:
        begin("Reading the network")
        loaded = loaded_network(network)
        mixed = [v for v, states in _schema(loaded).states.items() if len(set(map(type, states))) > 1]
        if mixed and out is not None and out.suffix.lower() == ".parquet":
            raise click.ClickException(
                f"Variable {mixed[0]!r} has states of several types, which a column of Parquet cannot hold: write .csv."
            )
        begin("Drawing records")
        records = loaded.simulate(rows, seed=seed)
    if out is None:
        click.echo(records.to_json(orient="records") if as_json else records.to_csv(index=False), nl=as_json)
        return
    write_records(records, out)
    emit(as_json, {"file": str(out), "rows": rows}, [f"{rows} synthetic records written to {out}."])
