"""`pgmpy-dp fit`, `check`, `query`, `sample` and `explore` work from a release, without the records."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from functools import reduce
from itertools import product
from operator import attrgetter
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

import click

from pgmpy_dp._files import require_page
from pgmpy_dp.cli.shared.common import (
    Command,
    Result,
    assignments,
    hidden_by_noise,
    marked,
    note,
    noted,
    one_line,
    promised,
    stage,
)
from pgmpy_dp.cli.shared.files import STRUCTURES, file_argument, file_option, out_option
from pgmpy_dp.cli.shared.options import numbers_option, seed_option, spreadsheet_option
from pgmpy_dp.cli.shared.wording import METHODS
from pgmpy_dp.cli.shared.written import RECORDS, columns_of_files, to_csv, write_records
from pgmpy_dp.models.formats.file_kinds import kind_of

if TYPE_CHECKING:
    from pgmpy_dp.fitting.checks.misfit import FitCheck
    from pgmpy_dp.schema import Schema

_READINGS = {
    None: "",
    "inference": ": all tables inform every CPD",
    "family": ": each CPD is read from its own table",
    "both": ": each CPD is read partly from its own table, partly from all",
}
_MARKOV, _BAYESIAN = ("naive-mle",), ("private-mle", "private-bayesian")


@click.command(cls=Command, stages=4)
@file_argument("release", "a release")
@file_option(
    "--model",
    kinds=STRUCTURES,
    help="Structure: .bif, .xmlbif, .xdsl, .net, .uai, .json, or edges in .txt (a -> b or a -- b); not for a mixture.",
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
@click.option(
    "--pooled",
    is_flag=True,
    help="Of a union, describe all records together; by default the network distinguishes its releases.",
)
@click.option("--partial", is_flag=True, help="Of a union, let each release borrow strength from the others.")
@out_option(
    "--out",
    kind="a network",
    required=True,
    help="Network to write: .zip, which carries its release, .bif, .xmlbif, .xdsl, .net, .uai or .json.",
)
def fit(release: Path, model: Path | None, method: str, pooled: bool, partial: bool, out: Path) -> Result:
    """Fit a network to RELEASE. This costs no privacy.

    \b
    Estimators
      auto              by inference as far as the release agrees with the network, else each family from its table;
                        Markov networks, and releases of coefficients, by collective-em
      collective-em     one distribution behind all tables: best where noise is strong or tables overlap
      private-mle       Bayesian networks; each family's CPD from its table: fastest
      private-bayesian  Bayesian networks; posterior means under a BDeu prior
      posterior-mean    the mean of networks drawn from their posterior: closest, takes up to minutes
      naive-mle         Markov networks; noisy tables taken as true: the usual baseline
      mixture           no network: the model of synthesize, from a release of pairs (pgmpy-dp plan --pairs)

    \b
      pgmpy-dp fit release.zip --model model.bif --out fitted.bif
      pgmpy-dp fit pairs.zip --estimator mixture --out mixture.json
      pgmpy-dp fit release.zip --model edges.txt --estimator naive-mle --out fitted.json
      pgmpy-dp fit all.zip --model edges.txt --out fitted.zip    # of pgmpy-dp union: the site is a parent of all
    """
    if method == "mixture":
        return _fit_mixture(release, model, pooled, partial, out)
    if model is None:
        raise click.UsageError(f"{method} fits a network: give its --model, or --estimator mixture, which needs none.")
    from pgmpy.models import DiscreteMarkovNetwork

    import pgmpy_dp as dp
    from pgmpy_dp.cli.shared.structures import left_out, read_structure
    from pgmpy_dp.models.formats.formats import SUFFIXES, save_network
    from pgmpy_dp.observed.informed_marginals import ReleasedTables
    from pgmpy_dp.observed.united_marginals import UnitedMarginals

    stage("Reading the release")
    noisy = _read(release, pooled, partial)
    network = read_structure(model, noisy.schema.variables)
    united = isinstance(noisy, UnitedMarginals)
    if pooled and noisy.variable in network.nodes():
        raise click.ClickException(f"The model names {noisy.variable!r}: leave out --pooled.")
    network = network if pooled or not united else noisy.apart(network)
    markov = isinstance(network, DiscreteMarkovNetwork)
    if method in _BAYESIAN and markov:
        raise click.ClickException(f"{method} fits Bayesian networks: give edges a -> b, or another --estimator.")
    if method in _MARKOV and not markov:
        raise click.ClickException(f"{method} fits Markov networks: give edges a -- b, or another --estimator.")
    formats = (".uai", ".json", ".zip") if markov else SUFFIXES
    if out.suffix.lower() not in formats:
        kind = "Markov" if markov else "Bayesian"
        raise click.ClickException(f"{out}: {kind} networks are written to {', '.join(formats)} files.")
    noisy.schema.require([list(network.nodes())])
    known = noisy.schema.select([v for v in noisy.schema.variables if not (pooled and v == noisy.variable)])
    if method == "auto" and (markov or not isinstance(noisy, ReleasedTables)):
        method = "collective-em"  # there are no tables of families to choose
    estimator: Any = attrgetter(METHODS[method])(dp)()
    stage(f"Fitting ({method})")
    network.fit(noisy, estimator=estimator)
    stage("Testing the fit")
    results, remarks = tested(network.check_fit)
    stage("Writing the network")
    save_network(network, out, noisy.guarantee)
    reading = getattr(estimator, "reading_", None)
    notes = [*noted(), *left_out(known, network.nodes()), *hidden_by_noise(noisy)]
    result = {
        "file": str(out),
        "kind": "Markov" if markov else "Bayesian",
        "method": method,
        "reading": reading,
        "variables": len(network.nodes()),
        "edges": len(network.edges()),
        "groups": network.groups_,
        **promised(noisy.guarantee),
        "check": results,
        "notes": notes,
    }
    size = f"{result['variables']} variables and {result['edges']} edges"
    lines = [
        f"{result['kind']} network of {size}, by {method}{_READINGS[reading]}.",
        noisy.guarantee.sentence(),
        *(f"Tables with {name!r} are of {number} groups of its states." for name, number in network.groups_.items()),
        *remarks,
        *map(marked, notes),
        f"Written to {out}.",
    ]
    return result, lines


def _read(path: Path, pooled: bool, partial: bool) -> Any:
    """Read a release, and let the parts of a union borrow strength from each other if `partial`."""
    from pgmpy_dp.observed.partially_pooled_marginals import PartiallyPooledMarginals
    from pgmpy_dp.observed.united_marginals import UnitedMarginals
    from pgmpy_dp.release import Release

    noisy = Release.load(path)
    if (pooled or partial) and not isinstance(noisy, UnitedMarginals):
        raise click.ClickException("--pooled and --partial are for a union, as pgmpy-dp union makes it.")
    if pooled and partial:
        raise click.UsageError("Give --pooled or --partial, not both.")
    return PartiallyPooledMarginals.of(noisy) if isinstance(noisy, UnitedMarginals) and partial else noisy


def tested(test: Callable[[], FitCheck]) -> tuple[dict[str, Any] | None, list[str]]:
    """Make a test of fit; return its findings for JSON and as lines, or why it is impossible."""
    try:
        check = test()
    except ValueError as error:  # the network is too large, or its parameters are tied
        return None, [f"Not tested, because {one_line(error)}"]
    return findings(check), repr(check).splitlines()


def findings(check: FitCheck) -> dict[str, Any]:
    """Describe a test of fit, for JSON."""
    return {
        "fails": check.fails,
        "p_value": None if math.isnan(check.p_value) else check.p_value,
        "misfit": None if math.isnan(check.z2) else check.z2,
        "worst": check.worst(),
        "detectable": check.detectable if check.detectable < math.inf else None,
        "left_out": check.left_out,
        "measured": check.measured or None,
        **({"unlike": [list(names) for names in check.unlike]} if check.unlike else {}),
    }


def _fit_mixture(release: Path, model: Path | None, pooled: bool, partial: bool, out: Path) -> Result:
    """Fit a mixture, and write it as synthesize does."""
    from pgmpy_dp.estimators.mixtures import PairwiseMixture

    if model is not None:
        raise click.UsageError("A mixture needs no network: leave --model out, or choose another --estimator.")
    if out.suffix.lower() not in (".json", ".zip"):
        raise click.ClickException(f"{out}: mixtures are written to .json and .zip files.")
    stage("Reading the release")
    noisy = _read(release, pooled, partial)
    stage("Fitting a mixture")
    network = PairwiseMixture(pooled=pooled).fit(noisy).network_
    network.save(out)
    notes = [*noted(), *hidden_by_noise(noisy)]
    count = len(network.schema_.variables)
    result = {"file": str(out), "kind": "mixture", "method": "mixture", "variables": count, "notes": notes}
    remarks = [f"Mixture of {count} variables.", noisy.guarantee.sentence(), *map(marked, notes)]
    return result | promised(noisy.guarantee), [*remarks, f"Written to {out}."]


@click.command(cls=Command, stages=1)
@file_argument("network", "a network")
@click.option("--target", "targets", multiple=True, help="Variable asked for; repeat it for a joint distribution.")
@click.option("--mean", "means", multiple=True, metavar="VARIABLE", help="Binned number or date: its mean is printed.")
@click.option(
    "--evidence",
    "evidence",
    multiple=True,
    metavar="VARIABLE=STATE",
    help="Evidence: a state, or a number in a bin; may be repeated.",
)
@click.option(
    "--interval",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    help="Probability of bounds, such as 0.9, from the release in a .zip or --release.",
)
@file_option(
    "--release",
    "releases",
    kinds=("a release",),
    multiple=True,
    help="Release that the network was fitted to, for --interval; may be repeated.",
)
@click.option(
    "--of",
    "about",
    type=click.Choice(["population", "records"]),
    help="Bounds for the population behind the records, the default, or narrower ones for the records themselves.",
)
@click.option(
    "--draws",
    type=click.IntRange(4),
    help="Posterior draws for bounds: by default 200 of a network, or 8 of a mixture, each of which takes a fit.",
)
def query(
    network: Path,
    targets: tuple[str, ...],
    means: tuple[str, ...],
    evidence: tuple[str, ...],
    interval: float | None,
    releases: tuple[Path, ...],
    about: str | None,
    draws: int | None,
) -> Result:
    """Ask a fitted NETWORK for a distribution, or for means of numbers. This costs no privacy.

    \b
      pgmpy-dp query fitted.bif --target lung --evidence smoke=yes
      pgmpy-dp query fitted.zip --mean income --evidence smoke=yes --interval 0.9
      pgmpy-dp query fitted.zip --target lung --interval 0.9
      pgmpy-dp query fitted.bif --target lung --interval 0.9 --release release.zip
    """
    from pgmpy_dp.models.questions import checked_evidence

    if interval is None and (releases or about is not None or draws is not None):
        given_alone = "--release" if releases else "--of" if about is not None else "--draws"
        raise click.UsageError(f"{given_alone} is for bounds: add --interval 0.9.")
    loaded = loaded_network(network, *releases)
    if interval is not None and not carried(loaded):
        raise click.UsageError(
            f"{network} carries no release, from which bounds are drawn: name the one it was fitted to by --release."
        )
    schema = loaded.schema_
    if bool(targets) == bool(means):
        raise click.UsageError("Name variables by --target for a distribution, or numbers by --mean for their means.")
    for target in targets or means:
        parts = [part.strip() for part in target.split(",")]
        if target not in schema.states and len(parts) > 1 and all(part in schema.states for part in parts):
            options = " ".join(f"--target {quote(part)}" for part in parts)
            raise click.ClickException(f"Unknown variable {target!r}: name each by an option of its own: {options}.")
    schema.require([targets or means])
    declared = [release.schema for release in carried(loaded)]
    given = checked_evidence(schema, assignments(schema, evidence, "--evidence"), declared)
    condition = f" | {', '.join(f'{name} = {state}' for name, state in given.items())}" if given else ""
    heading = f"P({', '.join(targets)}{condition})" if targets else f"Means of {', '.join(means)}{condition}"
    result: dict[str, Any] = {"target": list(targets or means), "evidence": given}
    stage("Answering" if interval is None else "Drawing bounds from the release")
    if draws is not None:
        loaded.sample_draws(draws)
    if interval is None and targets:
        cells = product(*(schema.states[variable] for variable in targets))
        chances = loaded.query(list(targets), given).values.ravel().tolist()
        rows: list[tuple[Any, ...]] = list(zip(cells, chances, strict=True))
    else:
        asked = loaded.query if targets else loaded.expectation
        frame = asked(list(targets or means), given, interval=interval, target=about or "population")
        keys = [key if isinstance(key, tuple) else (key,) for key in frame.index]
        bins = {v: own for known in (*declared, schema) for v, own in known.bins.items()}
        rows = [
            (key, *(_written(value, bins.get(key[0])) for value in row))
            for key, row in zip(keys, frame.to_numpy(object), strict=True)
        ]
        if "note" in frame.attrs:
            note(one_line(UserWarning(frame.attrs["note"])))
    result["notes"] = notes = [*noted(), *_unchecked(loaded, network), *hidden_by_noise(*carried(loaded))]
    if interval is not None:
        result["interval"] = interval
        heading += f", with bounds that contain it in {100 * interval:g} % of cases"
    width = max(len(", ".join(map(str, states))) for states, *_ in rows)
    shown = "{:.6f}" if targets else "{:.6g}"
    lines = [
        f"{', '.join(map(str, states)):<{width}}  "
        + "  ".join(number if isinstance(number, str) else shown.format(number) for number in numbers)
        for states, *numbers in rows
    ]
    result["answer"] = [
        (
            {"states": dict(zip(targets, states, strict=True)), "probability": value}
            if targets
            else {"variable": states[0], "mean": value}
        )
        | dict(zip(("lower", "upper"), bounds, strict=False))
        for states, value, *bounds in rows
    ]
    return result, [heading, *lines, *map(marked, notes)]


def _written(value: Any, bins: Any) -> float | str:
    """Write the date or time of a mean."""
    return float(value) if isinstance(value, float) else str(bins.written(bins.number_of(value)))


@click.command(cls=Command)
@file_argument("release", "a release", "a network")
@file_option("--model", kinds=("a network",), help="Network that was fitted to it.")
def check(release: Path, model: Path | None) -> Result:
    """Test a network against the RELEASE that it was fitted to. This costs no privacy.

    A model that carries its release can be given alone.

    The release states its noise, so a misfit beyond the noise shows that the network is wrong, and where. Tables of
    families say little about missing edges: pgmpy-dp probe looks for them in the records. For a model written by
    synthesize, it lists cells of the release that are improbable under the model.

    \b
      pgmpy-dp check release.zip --model fitted.bif
      pgmpy-dp check fitted.zip
    """
    from pgmpy_dp.inference import TreeTooLargeError

    releases, network = released_and_fitted("check", release, model)
    if network is None:
        raise click.UsageError("Name the network that was fitted to it: --model fitted.bif, say.")
    if not carried(network):
        network.attach_release(*releases)
    try:
        result = network.check_fit()
    except TreeTooLargeError as error:
        raise click.ClickException(f"Not tested, because {one_line(error)}.") from error
    noise = hidden_by_noise(*carried(network))
    return {**findings(result), "cautions": noise}, [*repr(result).splitlines(), *noise]


def loaded_network(path: Path, *releases: Path | None) -> Any:
    """Load the network of a file, or the mixture, and attach releases."""
    from pgmpy_dp.networks import load
    from pgmpy_dp.release import Release

    network: Any = load(path)
    if parts := [Release.load(part) for part in releases if part is not None]:
        network.attach_release(*parts)
    return network


def released_and_fitted(command: str, release: Path, model: Path | None) -> tuple[tuple[Any, ...], Any]:
    """Load a release and its network, if given, or both from a model that carries its releases."""
    from pgmpy_dp.release import Release

    if kind_of(release) != "a network":
        return (Release.load(release),), None if model is None else loaded_network(model)
    network = loaded_network(release)
    result = carried(network)
    if not result:
        raise click.ClickException(f"{release} carries no release: pgmpy-dp {command} RELEASE --model {release}.")
    if model is not None:
        raise click.ClickException(f"{release} is a model with its release: leave out --model {model}.")
    return result, network


def carried(network: Any) -> tuple[Any, ...]:
    """List the releases that a model carries."""
    from pgmpy_dp.release.kinds import several

    return several(getattr(network, "release_", None))


def _unchecked(loaded: Any, network: Path) -> list[str]:
    """Note that a network was not tested against its release, which takes long if both are large."""
    if not carried(loaded) or getattr(loaded, "fit_checked_", True):
        return []
    return [
        "Whether the release contradicts the network was not tested, since it takes long: use "
        f"pgmpy-dp check {network}, if it fits in memory."
    ]


@click.command(cls=Command, stages=2)
@file_argument("network", "a network")
@click.option(
    "--rows", type=click.IntRange(1), help="Number of records to draw; by default the number that the release reports."
)
@seed_option
@numbers_option
@click.option(
    "--predicting",
    "--target",
    help="A variable to be predicted from the others: a mixture then also preserves its tables with two others.",
)
@file_option("--release", kinds=("a release",), help="Release of a network that does not carry it, for --numbers.")
@out_option("--out", kind="records", help="File to write, .csv or .parquet; by default CSV is printed.")
@spreadsheet_option
def sample(
    network: Path,
    rows: int | None,
    seed: int | None,
    numbers: Any,
    predicting: str | None,
    release: Path | None,
    out: Path | None,
    spreadsheet: bool,
) -> Result:
    """Draw synthetic records from a fitted NETWORK. This costs no privacy.

    \b
      pgmpy-dp sample fitted.zip --rows 10000 --out synthetic.csv
      pgmpy-dp sample fitted.bif --release release.zip --rows 10000 --out synthetic.csv
    """
    if out is not None and out.suffix.lower() not in RECORDS:
        raise click.ClickException(f"{out}: records are written to .csv and .parquet files.")
    stage("Reading the network")
    loaded = loaded_network(network, release)
    if numbers is None:
        numbers = "drawn" if carried(loaded) or loaded.schema_.bins else "states"
    stage("Drawing records")
    # A model that carries its releases has what was declared of the records from them.
    schemas: list[Schema] = [release.schema for release in carried(loaded)] or [loaded.schema_]
    declared = reduce(lambda schema, other: schema.join(other), schemas)
    records = columns_of_files(loaded.simulate(rows, seed=seed, numbers=numbers, predicting=predicting), declared)
    notes = [*noted(), *_unchecked(loaded, network), *hidden_by_noise(*carried(loaded))]
    records = records[[variable for variable in declared.variables if variable in records]]
    states = {v: declared.states[v] for v, column in records.items() if hasattr(column, "cat")}
    mixed = [v for v, own in states.items() if len(set(map(type, own))) > 1]
    if mixed and out is not None and out.suffix.lower() == ".parquet":
        raise click.ClickException(
            f"Variable {mixed[0]!r} has states of several types, which a column of Parquet cannot hold: write .csv."
        )
    if out is None:
        for each in notes:
            note(each)
        return json.loads(records.to_json(orient="records")), to_csv(records, None, declared, spreadsheet) or ""
    cautions = write_records(records, out, declared, spreadsheet)
    result = {"file": str(out), "rows": len(records), "cautions": cautions, "notes": notes}
    lines = [f"{len(records)} synthetic records written to {out}.", *cautions, *map(marked, notes)]
    return result, lines


@click.command(cls=Command, stages=2)
@file_argument("network", "a network")
@file_option("--release", kinds=("a release",), help="Release of a network that does not carry it, for bounds.")
@out_option("--out", kind=None, required=True, help="Page to write, .html.")
@click.option("--title", help="Heading of the page.")
def explore(network: Path, release: Path | None, out: Path, title: str | None) -> Result:
    """Write an HTML page that answers queries about NETWORK in a browser. This costs no privacy.

    The page works offline and fetches nothing. A click on a state shows all other variables given it, with bounds
    if the network carries its release. It depends only on the release and may be published with it.

    \b
      pgmpy-dp explore fitted.zip --out explore.html
      pgmpy-dp explore fitted.bif --release release.zip --out explore.html
    """
    require_page(out)
    stage("Reading the network")
    loaded = loaded_network(network, release)
    stage("Drawing bounds, writing the page")
    loaded.explore(out, title=title)
    if not carried(loaded):
        note("The network carries no release, from which bounds are drawn: the page has none.")
    notes = noted()
    result = {"file": str(out), "bytes": out.stat().st_size, "bounds": bool(carried(loaded)), "notes": notes}
    lines = [f"Written to {out} ({out.stat().st_size / 1e6:.1f} MB).", *map(marked, notes)]
    return result, lines
