"""`pgmpy-dp bins`, `states`, `structure` and `probe` learn bins, states or edges from records, for a price."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import click

from pgmpy_dp.cli.analyst.fitted import carried, loaded_network, tested
from pgmpy_dp.cli.owner.planning import described, require_guess
from pgmpy_dp.cli.owner.spending import Spending, spends
from pgmpy_dp.cli.shared.common import Command, Result, charged_already, hidden_by_noise, promised, stage
from pgmpy_dp.cli.shared.files import file_option, out_option, records_argument
from pgmpy_dp.cli.shared.options import (
    delta_option,
    dry_run_option,
    epsilon_option,
    outlook_options,
    release_out_option,
    written_option,
)

_schema_out = out_option(
    "--out", kind="a schema", endings=(".json",), required=True, help="Schema file to write, with the bins or states."
)


@click.command(cls=Command, stages=2)
@records_argument
@click.option("--variable", required=True, help="Variable with fine bins in the schema.")
@click.option("--parts", type=click.IntRange(2), required=True, help="Number of bins, with similar numbers of records.")
@epsilon_option
@spends()
@_schema_out
def bins(spending: Spending, data: Path, variable: str, parts: int, out: Path) -> Result:
    """Choose bins of a number at private quantiles of the records.

    The schema declares the variable with fine public bins (edges 0|1|2|...|120 in the dictionary). Some of these edges
    are kept, so that the bins hold similar numbers of records of DATA (.csv, .parquet), and the schema is written with
    them. This costs privacy, and is charged to the ledger.

    \b
      pgmpy-dp bins records.csv --schema fine.json --variable age --parts 4 --epsilon 0.1 \\
          --ledger ledger.json --out schema.json
    """
    schema = spending.schema()
    schema.require([(variable,)])
    dataset = spending.dataset(data, schema.select([variable]))
    stage("Choosing bins")
    results = dataset.quantile_bins(variable, parts, spending.epsilon)
    rules = [rule for rule in schema.rules if variable not in rule.variables]  # they are about its former states
    with charged_already():
        schema.replace(variables={**schema.declared, variable: results}, rules=rules).save(out)
    edges, labels = results.listed_edges(), list(results.labels)
    result = {"file": str(out), "variable": variable, "edges": edges, "labels": labels, "epsilon": spending.epsilon}
    return spending.paid(result, [f"{variable}: {' | '.join(labels)}", f"Written to {out}."])


@click.command(cls=Command, stages=2)
@records_argument
@click.option("--variable", required=True, help="Variable without declared states in the schema.")
@epsilon_option
@click.option(
    "--delta",
    type=float,
    required=True,
    help="Probability that a value of a single record is found, such as 1e-9.",
)
@spends()
@_schema_out
@release_out_option
def states(spending: Spending, data: Path, variable: str, out: Path, release_path: Path | None) -> Result:
    """Discover states that are not public: the values that many records of DATA have.

    The schema declares the variable with no states and with one for all other values (a row of the data dictionary with
    neither states nor edges, but with other), and is written with the states that were found. This costs privacy, and
    is charged to the ledger.

    \b
      pgmpy-dp states records.csv --schema open.json --variable town --epsilon 0.5 --delta 1e-7 \\
          --ledger ledger.json --out schema.json
    """
    dataset = spending.dataset(data, spending.schema())
    stage("Choosing states")
    results = dataset.discover_states(variable, spending.epsilon, delta=spending.delta)
    with charged_already():
        results.schema.save(out)
        if release_path is not None:
            results.save(release_path)
    result = {"variable": variable, "states": list(results.states), "threshold": results.threshold, "file": str(out)}
    some = ", ".join(map(str, results.states[:10])) + (", ..." if len(results.states) > 10 else "")
    lines = [
        results.guarantee.sentence(),
        f"{len(results.states)} states of {variable}{': ' if some else ''}{some}",
        f"Written to {out}.",
    ]
    return spending.paid(result | {"guarantee": results.guarantee.to_dict()}, lines)


@click.command(cls=Command, stages=4)
@records_argument
@epsilon_option
@delta_option(default=0.0)
@click.option("--max-indegree", type=click.IntRange(1), default=3, show_default=True, help="Largest number of parents.")
@click.option("--forbid", multiple=True, metavar="A->B", help="An edge that cannot exist; may be repeated.")
@click.option("--require", multiple=True, metavar="A->B", help="An edge that exists; may be repeated.")
@click.option(
    "--repeat",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    help="Number of searches on synthetic records, to find stable edges. They cost time but no privacy.",
)
@spends()
@written_option("--out", "a list of edges", help="Edges to write, .txt: for --model of other commands.")
@out_option("--model", kind="a network", help="Network to write as well: .bif, .xmlbif, .uai or .json.")
@release_out_option
@out_option("--picture", kind=None, help="Picture of the graph to write as well: .png, .svg or .pdf.")
@dry_run_option
@outlook_options
def structure(
    spending: Spending,
    data: Path,
    max_indegree: int,
    forbid: tuple[str, ...],
    require: tuple[str, ...],
    repeat: int,
    out: Path,
    model: Path | None,
    release_path: Path | None,
    picture: Path | None,
) -> Result:
    """Find a graph for DATA, and the network behind it.

    Edges say which variables depend on each other, not which causes which. All files written may be published.

    \b
      pgmpy-dp ledger create ledger.json --epsilon 2 --delta 1e-8
      pgmpy-dp structure records.csv --schema schema.json --epsilon 1 --delta 1e-9 --ledger ledger.json \\
          --out edges.txt --model network.bif --release release.zip --repeat 10 --picture graph.png
    """
    import pgmpy_dp as dp
    from pgmpy_dp.cli.shared.structures import LISTS, edge_lines
    from pgmpy_dp.models.formats.formats import SUFFIXES

    for path, endings, named in (
        (out, LISTS, "edges are written to .txt files"),
        (picture, (".png", ".svg", ".pdf"), "pictures are written to .png, .svg and .pdf files"),
        (model, SUFFIXES, f"networks are written to {', '.join(SUFFIXES)} files"),
    ):
        if path is not None and path.suffix.lower() not in endings:
            raise click.ClickException(f"{path}: {named}.")
    if repeat and spending.unit is not None and spending.max_rows != 1:
        raise click.ClickException("--repeat is for single records, and units may have several rows: leave it out.")
    known = _knowledge(forbid, require)
    search = dp.PrivateStructureSearch(
        spending.epsilon, spending.delta, max_indegree=max_indegree, expert_knowledge=known
    )
    stage("Reading the schema")
    schema = spending.schema()
    if spending.dry_run:
        plan = search.plan()
        printed = plan.to_string(index=False, float_format="{:.3g}".format).splitlines()
        result: dict[str, Any] = {"steps": plan.to_dict("records")}
        require_guess(spending.records, spending.error)
        if spending.records is not None:
            outlook = search.outlook(spending.public(schema), spending.records)
            (typical,) = outlook.tables
            result["outlook"], remarks = described(outlook, spending.error)
            printed += [
                "",
                *remarks,
                f"A pair of the forest, such as {', '.join(typical.variables)}, would hold {typical.mean:.3g} "
                f"{outlook.guarantee.counted} in a cell, with noise of {typical.deviation:.3g}.",
            ]
        return spending.planned(result, printed)
    dataset = spending.dataset(data, schema)
    stage("Searching")
    search.fit(dataset)
    with charged_already():
        results = zip(search.edges_["parent"], search.edges_["child"], strict=True)
        out.write_text(
            "\n".join([*edge_lines(results, search.network_.nodes(), search.guarantee_), ""]), encoding="utf-8"
        )
        if model is not None:
            search.network_.save(model)
        if release_path is not None:
            search.release_.save(release_path)
        if repeat:
            stage("Repeating the search")
            search.bootstrap(repeat)
        if picture is not None:
            dp.plotting.plot_edges(search.edges_, list(schema.variables)).savefig(picture, dpi=150)
    edges, fits = search.edges_, None
    with suppress(ValueError):  # a network may be too large to test
        check = search.network_.check_fit()
        fits = False if check.fails else True if check.passes else None
    files = [path for path in (out, model, release_path, picture) if path is not None]
    result = {
        **promised(search.guarantee_),
        "files": list(map(str, files)),
        "edges": edges.astype(object).where(edges.notna(), None).to_dict("records"),
        "fits": fits,
        "cautions": hidden_by_noise(search.release_),
    }
    lines = [
        search.guarantee_.sentence(),
        f"{len(edges)} edges between {len(schema.variables)} variables written to {out}.",
    ]
    if repeat:
        stable = int((edges["verdict"] == "stable").sum())
        lines.append(f"{stable} of them are stable: found again in most of {repeat} repetitions.")
    lines += [f"Written to {path}." for path in files[1:]]
    lines += hidden_by_noise(search.release_)
    if fits is False:
        lines.append("The release contradicts the network: no sparse graph may fit. pgmpy-dp synthesize needs none.")
    return spending.paid(result, lines)


def _knowledge(forbid: tuple[str, ...], require: tuple[str, ...]) -> Any:
    """Read edges from options; None if none is given."""
    if not forbid and not require:
        return None
    from pgmpy.causal_discovery import ExpertKnowledge

    edges: dict[str, list[tuple[str, str]]] = {"--forbid": [], "--require": []}
    for option, text in [*(("--forbid", text) for text in forbid), *(("--require", text) for text in require)]:
        first, arrow, second = (part.strip() for part in text.partition("->"))
        if not (first and arrow and second):
            raise click.BadParameter(f"{text!r}: write an edge as age->income.", param_hint=option)
        edges[option].append((first, second))
    return ExpertKnowledge(forbidden_edges=edges["--forbid"], required_edges=edges["--require"])


@click.command(cls=Command, stages=3)
@records_argument
@file_option("--model", kinds=("a network",), required=True, help="Fitted network, a .zip that carries its release.")
@epsilon_option
@delta_option(default=0.0)
@click.option("--pairs", type=click.IntRange(1), default=3, show_default=True, help="Largest number of measured pairs.")
@spends()
@written_option("--out", "a network", endings=(".zip",), help="Network to write, .zip, which carries both releases.")
@dry_run_option
def probe(spending: Spending, data: Path, model: Path, pairs: int, out: Path) -> Result:
    """Measure where DATA is farthest from a fitted network: are edges missing?

    Among the pairs of variables that the network does not join, those whose counts are farthest from the network's are
    chosen privately; half of epsilon is spent on the choice, half on their tables. This shows missing edges that tables
    of families do not, and bounds of answers then allow for them.

    \b
      pgmpy-dp fit release.zip --model edges.txt --out fitted.zip
      pgmpy-dp probe records.csv --model fitted.zip --schema schema.json --epsilon 0.2 --ledger ledger.json \\
          --out probed.zip
      pgmpy-dp query probed.zip --target lung --evidence smoke=yes --interval 0.9
    """
    from pgmpy_dp.models.mixture_network import PrivateMixtureNetwork
    from pgmpy_dp.networks.network import require_same_change

    stage("Reading the network")
    schema, network = spending.schema(), loaded_network(model)
    if isinstance(network, PrivateMixtureNetwork):
        raise click.ClickException(f"{model} is a mixture, whose release measures all pairs: pgmpy-dp check {model}.")
    if not carried(network):
        raise click.ClickException(f"{model} carries no release: write it by pgmpy-dp fit --out fitted.zip.")
    if spending.dry_run:
        require_same_change(spending.public(schema).protects, carried(network))
        plan = f"Half of epsilon chooses at most {pairs} pairs that the network does not join, half measures them."
        return spending.planned({"pairs": pairs}, [plan])
    dataset = spending.dataset(data, schema)
    stage("Choosing and measuring")
    measured = network.measure_misfit(dataset, spending.epsilon, delta=spending.delta, pairs=pairs)
    with charged_already():
        network.save(out)
    results, remarks = tested(network.check_fit)
    result = {
        **promised(network.guarantee_),
        "measured": [list(pair) for pair in measured.cliques],
        "file": str(out),
        "check": results,
    }
    among = next(iter(measured.chosen_among.values()))
    chosen = "; ".join(", ".join(pair) for pair in measured.cliques)
    lines = [
        f"Measured the pairs farthest off, of {among}: {chosen}.",
        *remarks,
        *hidden_by_noise(*carried(network)),
        f"Written to {out}. Its guarantee is {network.guarantee_}.",
    ]
    return spending.paid(result, lines)
