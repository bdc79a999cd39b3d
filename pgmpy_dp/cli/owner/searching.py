"""`pgmpy-dp structure` finds a graph from records, and writes the network that was fitted on the way."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import click

from pgmpy_dp.cli.owner.records import RecordOptions, dry_run_option, record_options, written_option
from pgmpy_dp.cli.shared.common import (
    Command,
    charged_already,
    delta_cautions,
    emit,
    json_option,
    quiet,
    stages,
)
from pgmpy_dp.cli.shared.files import out_option, records_argument


@click.command(cls=Command)
@records_argument
@click.option("--epsilon", type=float, required=True, help="Privacy loss of the whole search.")
@click.option(
    "--delta",
    type=float,
    default=0.0,
    show_default=True,
    help="Above 0 for Gaussian noise, by which a search is far closer: far below one over the number of records, 1e-9.",
)
@click.option(
    "--max-indegree", type=click.IntRange(1), default=3, show_default=True, help="Most parents of a variable."
)
@click.option(
    "--forbid", multiple=True, metavar="A->B", help="An edge that there cannot be; may be repeated. It costs nothing."
)
@click.option("--require", multiple=True, metavar="A->B", help="An edge that there is; may be repeated.")
@click.option(
    "--repeat",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    help="Repeat the search so often on synthetic records, to say which edges are stable. It costs time only.",
)
@record_options
@written_option("--out", "a list of edges", help="Edges to write, .txt: for --model of other commands.")
@out_option("--model", kind="a network", help="Network to write as well: .bif, .xmlbif, .xdsl, .net, .uai or .json.")
@out_option(
    "--release", "release_path", kind="a release", endings=(".zip",), help="Release file to write as well, .zip."
)
@out_option("--picture", kind=None, help="Picture of the graph to write as well: .png, .svg or .pdf.")
@click.option("--force", is_flag=True, help="Overwrite existing files.")
@dry_run_option
@json_option
def structure(
    data: Path,
    epsilon: float,
    delta: float,
    max_indegree: int,
    forbid: tuple[str, ...],
    require: tuple[str, ...],
    repeat: int,
    out: Path | None,
    model: Path | None,
    release_path: Path | None,
    picture: Path | None,
    dry_run: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Find a graph for DATA, and the network behind it.

    Edges say which variables tell of each other, not which cause which. All that is written may be published.

    \b
      pgmpy-dp ledger create ledger.json --epsilon 2 --delta 1e-8
      pgmpy-dp structure records.csv --schema schema.json --epsilon 1 --delta 1e-9 --ledger ledger.json \\
          --out edges.txt --model network.bif --release release.zip --repeat 10 --picture graph.png
    """
    quiet()
    import pgmpy_dp as dp
    from pgmpy_dp.cli.shared.structures import edge_lines
    from pgmpy_dp.models.formats.formats import SUFFIXES

    if out is not None and out.suffix.lower() not in (".txt", ".edges"):
        raise click.ClickException(f"{out}: edges are written to .txt files.")
    if picture is not None and picture.suffix.lower() not in (".png", ".svg", ".pdf"):
        raise click.ClickException(f"{picture}: pictures are written to .png, .svg and .pdf files.")
    if model is not None and model.suffix.lower() not in SUFFIXES:
        raise click.ClickException(f"{model}: networks are written to {', '.join(SUFFIXES)} files.")
    chosen = RecordOptions(**options)
    if repeat and chosen.unit is not None and chosen.max_rows != 1:
        raise click.ClickException("--repeat is for single records, and units may have several rows: leave it out.")
    known = _knowledge(forbid, require)
    search = dp.PrivateStructureSearch(epsilon, delta, max_indegree=max_indegree, expert_knowledge=known)
    with stages(4) as begin:
        begin("Reading the schema")
        schema = chosen.schema()
        if dry_run:
            plan = search.plan()
            printed = plan.to_string(index=False, float_format="{:.3g}".format).splitlines()
            held, lines = chosen.affordable(epsilon, delta)
            emit(as_json, {"steps": plan.to_dict("records"), **held}, [*printed, *delta_cautions(delta), *lines])
            return
        assert out is not None
        budget = chosen.budget(epsilon, delta)
        begin("Reading the records")
        dataset = chosen.dataset(data, schema, budget)
        begin("Searching")
        search.fit(dataset)
        with charged_already():
            found = zip(search.edges_["parent"], search.edges_["child"], strict=True)
            out.write_text("\n".join([*edge_lines(found, search.network_.nodes()), ""]), encoding="utf-8")
            if model is not None:
                search.network_.save(model)
            if release_path is not None:
                search.release_.save(release_path)
            if repeat:
                begin("Repeating the search")
                search.bootstrap(repeat)
            if picture is not None:
                dp.plotting.plot_edges(search.edges_, list(schema.variables)).savefig(picture, dpi=150)
    edges = search.edges_
    ledger, line = chosen.charged(budget)
    fits = None
    with suppress(ValueError):  # a network may be too large to test
        check = search.network_.check_fit()
        fits = False if check.fails else True if check.passes else None
    held = {
        "guarantee": search.guarantee_.to_dict() | {"text": str(search.guarantee_)},
        "files": [str(path) for path in (out, model, release_path, picture) if path is not None],
        "edges": edges.astype(object).where(edges.notna(), None).to_dict("records"),
        "fits": fits,
    }
    stable = int((edges["verdict"] == "stable").sum())
    lines = [
        search.guarantee_.sentence(),
        f"{len(edges)} edges between {len(schema.variables)} variables written to {out}.",
        *([f"{stable} of them are stable: found again in most of {repeat} repetitions."] if repeat else []),
        *(f"Written to {path}." for path in (model, release_path, picture) if path is not None),
        *(
            ["The release contradicts the network: maybe no sparse graph fits. pgmpy-dp synthesize needs none."]
            if fits is False
            else []
        ),
        *delta_cautions(delta),
        line,
    ]
    emit(as_json, held | ledger, lines)


def _knowledge(forbid: tuple[str, ...], require: tuple[str, ...]) -> Any:
    """Read edges from options; None if there are none."""
    if not forbid and not require:
        return None
    from pgmpy.causal_discovery import ExpertKnowledge

    def edges(texts: tuple[str, ...], option: str) -> list[tuple[str, str]]:
        found = []
        for text in texts:
            first, arrow, second = (part.strip() for part in text.partition("->"))
            if not (first and arrow and second):
                raise click.BadParameter(f"{text!r}: write an edge as age->income.", param_hint=option)
            found.append((first, second))
        return found

    return ExpertKnowledge(forbidden_edges=edges(forbid, "--forbid"), required_edges=edges(require, "--require"))
