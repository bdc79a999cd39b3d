"""The report: values in plain words and numbers for the template of the page."""

from __future__ import annotations

import itertools
import math
import os
import warnings
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any

import networkx as nx
import numpy as np
from pgmpy.models import DiscreteBayesianNetwork, DiscreteMarkovNetwork

from pgmpy_dp._files import path_of, replacing, require_page
from pgmpy_dp._names import printable
from pgmpy_dp.errors import SchemaError
from pgmpy_dp.fitting.checks.fit_checks import check_network
from pgmpy_dp.inference import TreeTooLargeError
from pgmpy_dp.inference.tables.table import Vector
from pgmpy_dp.models.mixture_network import PrivateMixtureNetwork
from pgmpy_dp.models.numbers import shape_of
from pgmpy_dp.networks import PrivateBayesianNetwork, PrivateMarkovNetwork
from pgmpy_dp.networks.network import PrivateNetwork
from pgmpy_dp.observed.factors import Network, log_linear
from pgmpy_dp.observed.reading import detail_of, first_containing, law_of
from pgmpy_dp.observed.united_marginals import UnitedMarginals
from pgmpy_dp.privacy.guarantee import Guarantee, learned
from pgmpy_dp.release import NoisyMarginals
from pgmpy_dp.report.network_drawing import MAX_NODES, Drawing, draw
from pgmpy_dp.report.tables import (
    MAX_MAPPED,
    MarginalNoise,
    PairMap,
    clique_noise,
    marginal_noise,
    pair_map,
    released_tables,
    table_fits,
    table_power,
)
from pgmpy_dp.schema import Clique, State

if TYPE_CHECKING:
    import jinja2

_MAX_SHARE = 10.0  # largest share shown as a number, since noise may exceed the records a thousandfold


def promise(guarantee: Guarantee) -> str:
    """Return a paragraph of HTML that says in plain words what a private guarantee promises."""
    return str(environment().get_template("promise.html.j2").module.promise(guarantee))  # type: ignore[attr-defined]


@cache
def environment() -> jinja2.Environment:
    import jinja2

    result = jinja2.Environment(
        loader=jinja2.PackageLoader("pgmpy_dp.report", "."),
        autoescape=True,  # names of variables and states are not trusted
        undefined=jinja2.StrictUndefined,
    )
    result.filters |= {"number": rounded, "percent": _percent, "moved": _moved, "text": _text, "factor": _factor}
    return result


def rounded(value: float, digits: int = 4) -> str:
    """Round to significant digits, with separators of thousands."""
    if value and (abs(value) < 1e-3 or abs(value) >= 1e15):
        return f"{value:.{digits - 1}g}"
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(value)))) if value else 0
    text = f"{value:,.{min(decimals, 6)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _percent(value: float, deviation: float | None = None) -> str:
    """Write a share with the digits that its noise leaves significant, or a bound if it is far above 1."""
    if abs(value) > _MAX_SHARE:
        return f"{'<' if value < 0 else '>'} {math.copysign(100 * _MAX_SHARE, value):,.0f} %"
    if deviation:
        digits = min(max(math.ceil(-math.log10(200 * deviation)), 0), 3)
        return f"{round(100 * value, digits) + 0.0:.{digits}f} %"  # no negative zero
    return f"{100 * value:.{1 if abs(value) >= 0.001 else 3}f} %"


def _moved(share: float) -> str:
    """Write the share of records that an error moves; noise may make it more than all of them."""
    return "over 100 %" if share > 1.0 else _percent(share)


def _text(value: State) -> str:
    """Write a state or name so that blanks and control characters are visible."""
    text = str(value)
    return printable(text) if text.strip() else f"(blank) {text!r}"


def _factor(epsilon: float) -> str:
    return rounded(math.exp(epsilon), 3) if epsilon < math.log(1e6) else "more than a million"


MAX_STATES = 30  # rows shown of a variable's table; the others unfold
MAX_TABLES = 10  # tables listed if there are more than twice this number; the others unfold
MAX_UNFOLDED = 1000  # maximum number of tables that unfold, those with most cells hidden first
MAX_EDGES = 3  # largest number of measured pairs per variable in a drawing; above it, a map shows them
FAR = 5.0  # standard deviations of noise and sampling; a correct network is hardly ever farther off


def write_report(
    release: NoisyMarginals,
    path: str | os.PathLike[str],
    network: Network | PrivateMixtureNetwork | None = None,
    *,
    title: str = "Privacy report",
    date: str = "",
) -> tuple[Clique, ...]:
    """Write a page about a release: its tables, guarantee and cost, and where its noise hides most.

    Everything on the page follows from the release, so the page may be published with it. It is one file of HTML,
    without scripts or external resources.

    Parameters
    ----------
    release : NoisyMarginals, NoisyResiduals, NoisyCoefficients, UnitedMarginals or InformedMarginals
    path : path
        A name that ends in .html or .htm.
    network : DiscreteBayesianNetwork, DiscreteMarkovNetwork or PrivateMixtureNetwork, optional
        A network is drawn instead of the measured cliques, and its marginals are shown beside the measured ones, with
        the test of fit. A mixture is compared with every table of the release, relative to its noise.
    title, date : str
        Heading of the page; without a date the same release always gives the same page.

    Returns
    -------
    tuple of tuples of str
        The measured cliques of which noise hides most: at least half of the cells are below two of its standard
        deviations.

    Raises
    ------
    SchemaError
        If the network has a variable that the release does not have, or other states of one.
    ValueError
        If the path has another ending, or the mixture was fitted to another release.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from pgmpy_dp.release import Guarantee
    >>> from pgmpy_dp.schema import Schema
    >>> guarantee = Guarantee.of(1.0)
    >>> schema = Schema({"smoke": ["yes", "no"]})
    >>> noisy = NoisyMarginals(schema, {("smoke",): np.array([31, 68])}, {("smoke",): 1.0}, guarantee)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_report(noisy, f"{folder}/report.html")
    ()
    """
    require_page(path)
    page = render_report(release, network, title=title, date=date).encode()
    with replacing(path_of(path)) as handle:
        handle.write(page)
    return tuple(table.variables for table in released_tables(release) if table.level == "drowned")


def render_report(
    release: NoisyMarginals,
    network: Network | PrivateMixtureNetwork | None = None,
    *,
    title: str = "Privacy report",
    date: str = "",
) -> str:
    """Return the page of `write_report` as text."""
    tables = released_tables(release)
    mixture = network if isinstance(network, PrivateMixtureNetwork) else None
    if network is not None and not isinstance(network, (PrivateMixtureNetwork, nx.Graph)):
        raise TypeError(f"A report compares a network or a mixture, got {type(network).__name__}.")
    if network is not None and mixture is None:
        release.schema.require([tuple(network.nodes())])
    if mixture is not None and mixture.guarantee_ != release.guarantee:
        raise ValueError("The mixture was fitted to another release, of another guarantee: report on that one.")
    guarantee = release.guarantee.after(learned(network))
    fits = [] if mixture is None or guarantee.mechanism == "none" else table_fits(release, mixture)
    limit = len(tables) if len(tables) <= 2 * MAX_TABLES else MAX_TABLES
    drawing = _drawing(release, network) if mixture is None else None
    fitted = {} if network is None else _fitted_marginals(release, network)
    check, untested = None, ""
    if network is not None and mixture is None:
        try:
            check = check_network(network, [release])
        except ValueError as error:  # it is too large
            untested = " ".join(str(error).split()).rstrip(".")
    return (
        environment()
        .get_template("page.html.j2")
        .render(
            title=title,
            date=date,
            release=release,
            guarantee=guarantee,
            parts=release.parts if isinstance(release, UnitedMarginals) else {},
            certainty=1.0 / (1.0 + math.exp(-min(guarantee.epsilon, 700.0))),
            tables=tables,
            drowned=[table for table in tables if table.level == "drowned"],
            drawing=drawing,
            measured=_measured_map(release) if drawing is None and len(release.variables) > 1 else None,
            fits=fits,
            power=table_power(fits),
            fit_map=pair_map(release.variables, fits) if fits else None,
            network=network is not None and mixture is None,
            fitted=network is not None,
            check=check,
            untested=untested,
            failed=[] if check is None else check.worst(12),
            marginals=[_rows(release, marginal, fitted.get(marginal.variable)) for marginal in marginal_noise(release)],
            deviation=math.sqrt(release.total_variance),
            limit=limit,
            unfolded=MAX_UNFOLDED,
        )
    )


def _rows(release: NoisyMarginals, marginal: MarginalNoise, fitted: Vector | None) -> dict[str, Any]:
    states = release.schema.states[marginal.variable]
    level, rows = marginal.level, []
    if fitted is not None:
        apart = np.abs(fitted - marginal.shares)
        sampled = np.sqrt(marginal.deviation**2 + np.maximum(fitted * (1.0 - fitted), 0.0) / release.total)
        if (apart > FAR * sampled).any():
            level = "contradicted"
    for number, state in enumerate(states):
        share, spread = float(marginal.shares[number]), 2.0 * marginal.deviation
        low, high = (min(max(end, 0.0), 1.0) for end in (share - spread, share + spread))
        model = None if fitted is None else float(fitted[number])
        own = marginal.level_of(number)
        rows.append({"state": state, "share": share, "low": low, "high": high, "model": model, "level": own})
    points = rounded(100.0 * marginal.deviation, 2)
    return {
        "variable": marginal.variable,
        "level": level,
        "points": f"± {points} point{'' if points == '1' else 's'}, one standard deviation of the noise",
        "deviation": marginal.deviation,
        "numbers": _numbers(release, marginal, fitted),
        "rows": rows[:MAX_STATES],
        "further": rows[MAX_STATES:],
    }


def _numbers(release: NoisyMarginals, marginal: MarginalNoise, fitted: Vector | None) -> str:
    """State the mean and quantiles of a binned number, by the density fitted to all bins."""
    bins = release.schema.bins.get(marginal.variable)
    if bins is None or np.isfinite(bins.edges).sum() < 2:
        return ""
    shares = (marginal.shares if fitted is None else fitted)[: len(bins.labels)].clip(0.0)
    deviation = marginal.deviation * release.total
    detail = detail_of([release], marginal.variable)
    own = tuple(shares.tolist())
    shape = shape_of(bins, own, deviation, release.total, detail, law_of(release))  # type: ignore[arg-type]  # hashable
    mean, low, middle, high = map(bins.written, [shape.mean, *shape.quantiles([0.1, 0.5, 0.9]).tolist()])
    text = f"Mean about {mean}, median {middle}, 10 to 90 %: {low} to {high}."
    why = shape.unidentified
    return text if why is None else f"{text} The release hardly identifies the mean: {why}."


def _measured_map(release: NoisyMarginals) -> PairMap | None:
    """Map the noise of every measured pair."""
    if len(release.variables) > MAX_MAPPED:
        return None
    pairs = {
        tuple(v for v in release.variables if v in pair)
        for clique in release.cliques
        for pair in itertools.combinations(clique, 2)
    }
    return pair_map(release.variables, [*(clique_noise(release, pair) for pair in pairs), *marginal_noise(release)])


def _drawing(release: NoisyMarginals, network: Network | None) -> Drawing | None:
    if network is None and len(release.variables) > MAX_NODES:
        return None
    if network is None:
        graph = nx.Graph()
        for clique in release.cliques:
            graph.add_nodes_from(clique)
            graph.add_edges_from((a, b) for i, a in enumerate(clique) for b in clique[i + 1 :])
    else:
        graph = nx.DiGraph() if isinstance(network, DiscreteBayesianNetwork) else nx.Graph()
        graph.add_nodes_from(network.nodes())
        graph.add_edges_from(network.edges())
    crowded = network is None and graph.number_of_edges() > MAX_EDGES * len(graph)
    if crowded or len(graph) > MAX_NODES:
        return None

    levels = {marginal.variable: marginal.level for marginal in marginal_noise(release)}

    def level(clique: Clique) -> str | None:
        return clique_noise(release, clique).level if first_containing([release], clique) else None

    return draw(graph, {node: levels.get(node) for node in graph}, {edge: level(edge) for edge in graph.edges()})


def _fitted_marginals(release: NoisyMarginals, network: Network | PrivateMixtureNetwork) -> Mapping[str, Vector]:
    """Compute marginals of the network's variables, with states in the release's order."""
    if isinstance(network, PrivateMixtureNetwork):
        return {variable: network.marginal([variable]) for variable in release.variables}
    _, _, states = log_linear(network)
    for variable in states:
        own = release.schema.states.get(variable)
        if own is not None and set(map(str, own)) != set(map(str, states[variable])):
            raise SchemaError(
                f"Variable {variable!r} has other states in the network than in the release: report on the release "
                "that the network was fitted to."
            )
    kind = PrivateMarkovNetwork if isinstance(network, DiscreteMarkovNetwork) else PrivateBayesianNetwork
    model: PrivateNetwork = network if isinstance(network, PrivateNetwork) else kind.of(network)
    if getattr(model, "release_", None) is None and release.guarantee.mechanism != "none":  # not exact counts
        model = kind.of(network)
        model.attach_release(release)
    results = {}
    with warnings.catch_warnings(), suppress(TreeTooLargeError):  # the page says itself whether the test of fit fails
        warnings.simplefilter("ignore")
        for variable in states:
            if variable in release.schema.states:
                texts = list(map(str, states[variable]))
                positions = [texts.index(str(state)) for state in release.schema.states[variable]]
                results[variable] = model.marginal([variable])[positions]
    return results
