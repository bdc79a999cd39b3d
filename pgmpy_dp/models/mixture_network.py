"""A mixture of products that answers queries like a network, generates records, and can be saved."""

from __future__ import annotations

import itertools
import json
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn, Self

import numpy as np
from numpy.typing import NDArray

from pgmpy_dp import _names
from pgmpy_dp._files import parse_json, path_of, replacing, require_known
from pgmpy_dp.errors import ReleaseFormatError, SchemaError
from pgmpy_dp.fitting.readings.mixture_fits import (
    MixtureRelease,
    draws_of,
    fitted_variables,
    rules_of,
    warn_of_unmeasured,
)
from pgmpy_dp.inference.distribution import Codes, GivenOthers, Positions
from pgmpy_dp.inference.mixtures.balanced_records import draw_with_components
from pgmpy_dp.inference.mixtures.boxes import Rules, conditioned
from pgmpy_dp.inference.mixtures.children import Child
from pgmpy_dp.inference.mixtures.fit.ensemble import MixtureFit
from pgmpy_dp.inference.mixtures.mixture import Mixture
from pgmpy_dp.inference.mixtures.refits import MixtureDraws, Prediction
from pgmpy_dp.inference.tables.table import Vector
from pgmpy_dp.models.fitted import FEW_STATES, Fitted, assumed_within_groups
from pgmpy_dp.models.formats.file_kinds import HOUSEHOLDS, MIXTURE, require_format
from pgmpy_dp.models.model import Model
from pgmpy_dp.models.questions import Question
from pgmpy_dp.observed.united_marginals import UnitedMarginals
from pgmpy_dp.privacy.checks import checked_number, whole_number
from pgmpy_dp.release import Guarantee, Release
from pgmpy_dp.release.carrying import SUFFIX, carries, read_carrying, write_carrying
from pgmpy_dp.schema import Schema

if TYPE_CHECKING:
    from pgmpy_dp.fitting.checks.misfit import FitCheck
    from pgmpy_dp.networks.bayesian_network import PrivateBayesianNetwork

# Number of draws of an answer's error, to estimate how often a state is the most probable one.
_ERRORS = 1000
_AT_ONCE = 20_000  # records that are answered together


@dataclass(frozen=True, eq=False)
class MixtureDistribution:
    """A `Distribution` by a mixture, which conditions the mixture only once it is asked."""

    mixture: Mixture
    rules: Rules
    evidence: Positions = field(default_factory=dict)

    def given(self, evidence: Positions) -> Self:
        return replace(self, evidence={**self.evidence, **evidence})

    def marginal(self, scope: Sequence[str]) -> Vector:
        return self.conditioned.marginal(scope)

    def singles(self, scope: Sequence[str]) -> list[Vector]:
        return [self.conditioned.marginal((variable,)) for variable in scope]

    def most_probable(self, scope: Sequence[str]) -> tuple[int, ...]:
        return self.conditioned.most_probable(scope)

    def singles_of(self, scope: Sequence[str], rows: Iterable[Positions]) -> Iterator[list[Vector]]:
        for row, tables in self._in_bulk([(variable,) for variable in scope], rows, lambda table: table):
            known = tables is not None and all(table.any() for table in tables)
            yield tables if tables is not None and known else self.given(row).singles(scope)

    def most_probable_of(self, scope: Sequence[str], rows: Iterable[Positions]) -> Iterator[tuple[int, ...]]:
        shape = [self.mixture.cardinalities[variable] for variable in scope]

        def best(table: Vector) -> NDArray[np.intp]:
            return np.where(table.any(axis=1), table.argmax(axis=1), -1)

        for row, cells in self._in_bulk([tuple(scope)], rows, best):
            if cells is None or cells[0] < 0:
                yield self.given(row).most_probable(scope)
            else:
                yield tuple(int(state) for state in np.unravel_index(int(cells[0]), shape))

    def _in_bulk(
        self, scopes: Sequence[tuple[str, ...]], rows: Iterable[Positions], kept: Callable[[Vector], NDArray[Any]]
    ) -> Iterator[tuple[Positions, list[Any] | None]]:
        """Yield groups of rows with the same known variables, with the kept answers; a single row has none."""
        rows = iter(rows)
        while some := list(itertools.islice(rows, _AT_ONCE)):
            if len(some) == 1 or not some[0]:
                yield from ((row, None) for row in some)
                continue
            known = {variable: np.array([row[variable] for row in some]) for variable in some[0]}
            result = self.mixture.in_records(scopes, known, kept)
            yield from ((row, [own[number] for own in result]) for number, row in enumerate(some))

    def sample(
        self, count: int, generator: np.random.Generator, predicting: str | None = None
    ) -> tuple[Codes, GivenOthers]:
        drawn, components = draw_with_components(self.conditioned, count, generator, predicting)
        codes = {variable: drawn[:, position] for position, variable in enumerate(self.mixture.variables)}

        def given_others(variable: str, records: NDArray[np.integer]) -> Vector:
            """Compute the distribution given the record's component, which is known here, and the variable's block."""
            others = {other: column[records] for other, column in codes.items()}
            return self.mixture.given_component(variable, components[records], others)

        return codes, given_others

    def log_probability(self, codes: Codes) -> Vector:
        records = len(next(iter(codes.values())))
        unknown = np.full(records, -1)
        columns = [codes.get(variable, unknown).astype(np.int64) for variable in self.mixture.variables]
        return self.mixture.log_probability(np.stack(columns, axis=1))

    @cached_property
    def conditioned(self) -> Mixture:
        return conditioned(self.mixture, self.rules, self.evidence)


@dataclass(frozen=True, eq=False)
class FittedMixture(Fitted):
    """A mixture's fit."""

    schema: Schema
    mixture: Mixture
    total: float
    guarantee: Guarantee
    releases: tuple[MixtureRelease, ...] = ()
    settings: MixtureFit | None = None  # with which it was fitted to the release
    draws: int = 8
    seed: int = 0

    @cached_property
    def distribution(self) -> MixtureDistribution:
        return MixtureDistribution(self.mixture, rules_of(self.schema))

    @property
    def declared(self) -> tuple[Schema, ...]:
        return (self.schema,)

    @cached_property
    def refits(self) -> MixtureDraws:
        """Refits to simulated releases, from which bounds are computed."""
        if self.settings is None:
            raise ValueError("The network was not fitted to a release, from which bounds are drawn.")
        self.required_releases()
        (release,) = self.releases
        return draws_of(self.settings, release, self.schema, self.draws, self.seed)

    @property
    def check(self) -> FitCheck | None:
        return vars(self).get("_check")

    def tested(self) -> FitCheck:
        return self._check

    def caveats(self, question: Question) -> list[str]:
        return assumed_within_groups(question, self.schema.structure.refined)

    @cached_property
    def _check(self) -> FitCheck:
        from pgmpy_dp.fitting.checks.fit_checks import check_mixture  # imports pgmpy

        self.required_releases()
        (release,) = self.releases
        return check_mixture(self.mixture, self.schema, release)

    def drawn_of(self, names: Sequence[str]) -> MixtureDraws:
        """Return the refits; warn if the release has no information about these variables together."""
        refits, refined = self.refits, self.schema.structure.refined
        of_pairs = list(dict.fromkeys(refined.get(name, (name,))[0] for name in names))
        warn_of_unmeasured(self.releases[0], self.schema.select(of_pairs))
        return refits

    def bounded(self, question: Question, target: str, numbers: Vector | None = None) -> Prediction:
        _ = self.distribution.given(question.places).conditioned  # raises if the evidence is impossible
        refits = self.drawn_of(question.names)
        return refits.predict(question.asked, question.places, of_records=target == "records", numbers=numbers)

    def most_probable_states(self, question: Question, target: str) -> tuple[tuple[int, ...], float]:
        """Find the most probable joint state, and how often it remains so if the answer's error is drawn."""
        shape = self.schema.shape(tuple(question.asked))
        if math.prod(shape) > FEW_STATES:
            states = self.distribution.given(question.places).most_probable(question.asked)
            refits = self.drawn_of(question.names).refits
            each = [conditioned(refit, self.distribution.rules, question.places) for refit in refits]
            return states, float(np.mean([states == refit.most_probable(question.asked) for refit in each]))
        answer = self.bounded(question, target)
        best = int(answer.values.argmax())
        noise = np.random.default_rng(0).standard_t(answer.draws, (_ERRORS, answer.values.size)) * answer.deviations
        shares = answer.deviations**2 / max(float((answer.deviations**2).sum()), 1e-300)
        centred = (noise - shares * noise.sum(axis=1, keepdims=True)) / np.sqrt(np.maximum(1.0 - shares, 1e-12))
        agreeing = float(np.mean((answer.values + centred).argmax(axis=1) == best))
        return tuple(int(position) for position in np.unravel_index(best, shape)), agreeing


class PrivateMixtureNetwork(Model):
    """A mixture over all variables of a schema, fitted to a release; no graph is needed.

    Each record is assumed to come from one component of the mixture, within which small blocks of variables are
    independent. Queries are exact sums over the components. They are post-processing and cost no privacy.

    Parameters
    ----------
    schema : Schema
    mixture : Mixture
        Over the variables of the schema.
    total : float
        The number of records behind the fit, as the release reports it.
    guarantee : Guarantee
        The guarantee for the records behind the fit.

    Notes
    -----
    Tables of simulated records are as close to the mixture's as integer counts allow. The records are not independent
    draws: their mean is closer to the mixture's than the mean of as many independent draws. They do not show how far
    the mixture is from the original records.

    Examples
    --------
    >>> import pandas as pd, pgmpy_dp as dp
    >>> records = pd.DataFrame({"smoke": ["yes", "no"] * 500, "lung": ["yes", "no", "no", "no"] * 250})
    >>> schema = dp.Schema({"smoke": ["yes", "no"], "lung": ["yes", "no"]})
    >>> network = dp.PairwiseMixture(epsilon=2.0, delta=1e-6, state_names=schema, members=2).fit(records).network_
    >>> bounded = network.query(["lung"], evidence={"smoke": "no"}, interval=0.9)
    >>> bool(bounded["lower"]["no"] > 0.9), bool(bounded["value"].le(bounded["upper"]).all())
    (True, True)
    >>> bool(network.simulate(1000, seed=0)["smoke"].value_counts().min() > 450)
    True
    """

    def __init__(self, schema: Schema, mixture: Mixture, total: float, guarantee: Guarantee) -> None:
        if dict(mixture.cardinalities) != schema.cardinalities():
            raise SchemaError("The mixture is not over the variables and states of the schema.")
        self._fit = FittedMixture(schema, mixture, float(total), guarantee.after(schema.guarantee))

    def _of_graphs(self) -> NoReturn:
        raise AttributeError("A mixture has no graph and no CPDs: to_bayesian_network() makes a network that has them.")

    nodes = edges = get_cpds = get_factors = check_model = property(_of_graphs)

    @classmethod
    def fitted(cls, schema: Schema, fit: MixtureFit, release: MixtureRelease) -> Self:
        """Build a network that keeps the fit's settings and the release, which bounds require, and its total."""
        fit = replace(fit, total=release.total)
        network = cls(schema, fit.mixture, fit.total, release.guarantee)
        network._fit = replace(network._fit, settings=fit, releases=(release,))
        return network

    @property
    def schema_(self) -> Schema:
        """Return the variables and their states."""
        return self._fit.schema

    @property
    def mixture_(self) -> Mixture:
        """Return the mixture."""
        return self._fit.mixture

    @property
    def total_(self) -> float:
        """Return the number of records behind the fit, as the release reports it."""
        return self._fit.total

    @property
    def guarantee_(self) -> Guarantee:
        """Return the guarantee for the records behind the fit."""
        return self._fit.guarantee

    @property
    def release_(self) -> MixtureRelease:
        """Return the release that the mixture was fitted to, or that was attached; bounds require it."""
        if not self._fit.releases:
            raise AttributeError("The network has no release: attach_release attaches the one that it was fitted to.")
        return self._fit.releases[0]

    @property
    def groups_(self) -> dict[str, int]:
        """Return the number of groups of each variable that groups of its states represent in pairs.

        A `Hierarchy` declares them, or the fit has made them; see `PairwiseMixture`.
        """
        return {
            finer: self.schema_.cardinality(coarser) for finer, (coarser, _) in self.schema_.structure.refined.items()
        }

    @property
    def _fitted(self) -> FittedMixture:
        return self._fit

    def _shown(self) -> list[str]:
        return [variable for variable in self.schema_.variables if variable not in self.schema_.structure.hidden]

    @property
    def draws_(self) -> MixtureDraws:
        """Return refits to simulated releases, from which bounds are computed: 8, unless `sample_draws` was called.

        For each refit, records are drawn from the mixture, the noise of the release is added to their tables, and a
        mixture is fitted to these. The differences between its answers and those of the drawn records estimate the
        error. For queries on more than two variables, evidence included, the release cannot show that the model is
        wrong. There half of the variance between fits from different starts is taken as the mixture's own error, and
        twice the variance of independent records is added. These two factors come from other data, not from the
        release, so such bounds are not guaranteed.
        """
        return self._fit.refits

    def sample_draws(self, draws: int = 8, seed: int = 0) -> MixtureDraws:
        """Draw and keep new `draws_`; each takes as long as the fit of a member.

        Parameters
        ----------
        draws, seed : int
            See `Model.sample_draws`. Fewer draws give wider bounds; at least 4.
        """
        whole_number("draws", draws, 4)
        self._fit = replace(self._fit, draws=draws, seed=seed)
        return self._fit.refits

    def attach_release(self, release: MixtureRelease) -> None:
        """Attach the release that the network was fitted to; bounds require it if a loaded file lacks it."""
        if not isinstance(release, MixtureRelease):
            raise TypeError(f"A NoisyMarginals is needed, got {type(release).__name__}.")
        pooled = isinstance(release, UnitedMarginals) and release.variable not in self.schema_.states
        if release.schema.select(fitted_variables(release, pooled)).states != self.schema_.states:
            raise SchemaError("The release has other variables or states than the network.")
        if not release.guarantee.states(self.guarantee_):
            raise ValueError("The release makes another promise than the network, which was not fitted to it.")
        self._fit = replace(self._fit, guarantee=release.guarantee, releases=(release,))

    def to_bayesian_network(self) -> PrivateBayesianNetwork:
        """Convert the mixture to a Bayesian network: the component is a latent root with every block below it.

        A variable that is a function of another is its child, and a finer variable is the child of its coarser one.
        pgmpy's variable elimination and files support the network. It has the mixture's guarantee, reads numbers in the
        mixture's bins, and predicts with the component summed out. Bounds are available from the mixture only, which
        has the release.

        Raises
        ------
        ValueError
            If a CPD would have more than 67 million cells.

        Examples
        --------
        >>> import numpy as np
        >>> from pgmpy_dp.observed.united_marginals import UnitedMarginals
        >>> from pgmpy_dp.release import Guarantee
        >>> sick = np.array([[1.0, 0.0], [0.5, 0.5]])
        >>> mixture = Mixture.of({"lung": 2, "bronc": 2}, [("lung",), ("bronc",)], [0.9, 0.1], [sick, sick])
        >>> schema = Schema({"lung": ["no", "yes"], "bronc": ["no", "yes"]})
        >>> guarantee = Guarantee.of(1.0)
        >>> network = PrivateMixtureNetwork(schema, mixture, 100, guarantee).to_bayesian_network()
        >>> sorted(network.edges()), network.latents
        ([('component', 'bronc'), ('component', 'lung')], {'component'})
        """
        network: PrivateBayesianNetwork = _names.public("networks").latent_root_network(self)
        return network

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the mixture, its schema and its guarantee as JSON; an existing file is replaced only when complete.

        A file whose name ends in ``.zip`` also carries the release, for bounds. With other files, attach it by
        `attach_release`.

        Raises
        ------
        ValueError
            If the name ends in neither ``.json`` nor ``.zip``, or in ``.zip`` and the network has no release. Other
            formats hold networks: save that of `to_bayesian_network`.
        """
        fit, releases = self._fit.settings, self._fit.releases
        settings = None if fit is None else {name: getattr(fit, name) for name in _SETTINGS}
        write_model(path, MIXTURE, self, {"fit": settings}, releases[0] if releases else None)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read what `save` wrote; see `pgmpy_dp.load` for errors."""
        with reading_model(path, MIXTURE, "mixture network") as (stored, releases):
            schema, guarantee = Schema.from_dict(stored["schema"]), Guarantee.from_dict(stored["guarantee"])
            mixture, total = mixture_of(schema, stored), total_of(stored)
            network = cls(schema, mixture, total, guarantee)
            if stored["fit"] is not None:
                fit = fit_of(mixture, rules_of(schema), total, stored["fit"])
                network._fit = replace(network._fit, settings=fit)
            if releases:
                network.attach_release(*releases)  # type: ignore[arg-type]  # refused where it holds no tables
            return network

    def __repr__(self) -> str:
        return (
            f"PrivateMixtureNetwork({len(self.schema_.variables)} variables, {self.mixture_.weights.size} components)\n"
            f"  {self.guarantee_}"
        )


_VERSION = 1
# Settings with which a mixture was fitted.
_SETTINGS = ("size", "penalty", "width", "steps", "covering", "alike")


def write_model(
    path: str | os.PathLike[str], form: str, network: Any, own: Mapping[str, Any], release: MixtureRelease | None = None
) -> None:
    """Write a network's schema, guarantee, total, mixture and `own` entries; a .zip file carries the release."""
    suffix = path_of(path).suffix.lower()
    if form == HOUSEHOLDS and suffix != ".json":
        raise ValueError(
            f"{path}: households are saved as .json, since they have no release for a {SUFFIX} file to carry: "
            "persons.to_bayesian_network().save(...) writes persons as a network in other formats."
        )
    if suffix not in (".json", SUFFIX):
        raise ValueError(
            f"{path}: a mixture is saved as .json or {SUFFIX}: "
            "to_bayesian_network().save(...) writes it as a network in other formats."
        )
    content = {
        "format": form,
        "version": _VERSION,
        "schema": network.schema_.to_dict(),
        "guarantee": network.guarantee_.to_dict(),
        "total": network.total_,
        **own,
        **mixture_content(network.mixture_),
    }
    text = json.dumps(content, ensure_ascii=False, allow_nan=False).encode() + b"\n"
    if suffix == SUFFIX:
        write_carrying(path, text, release)
        return
    with replacing(path_of(path)) as handle:
        handle.write(text)


@contextmanager
def reading_model(path: str | os.PathLike[str], form: str, what: str) -> Iterator[tuple[Any, tuple[Release, ...]]]:
    """Yield what `write_model` wrote; errors in it are raised as a ReleaseFormatError that names the file."""
    require_format(path, form)
    content, releases = read_carrying(path) if carries(path) else (path_of(path).read_bytes(), ())
    try:
        stored = parse_json(content)
        if stored["format"] != form:
            raise ValueError(f"it is not a {what}")
        require_known(stored["version"], _VERSION)
        yield stored, releases
    except ReleaseFormatError as error:
        raise ReleaseFormatError(f"{path}: {error}") from None
    except (ValueError, TypeError, LookupError, AttributeError, OverflowError) as error:
        reason = str(error).rstrip(".") or type(error).__name__
        raise ReleaseFormatError(f"{path}: not a sound {what} ({reason}). Save it anew.") from error


def mixture_content(mixture: Mixture) -> dict[str, Any]:
    """Return the JSON content of a mixture."""
    content: dict[str, Any] = {
        "weights": mixture.weights.tolist(),
        "blocks": [
            {"variables": list(block), "probabilities": table.ravel().tolist()}
            for block, table in zip(mixture.blocks, mixture.tables, strict=True)
        ],
    }
    refined = {v: child.shares.tocsc().data.tolist() for v, child in mixture.children.items() if not child.certain}
    return content | ({"refined": refined} if refined else {})


def mixture_of(schema: Schema, stored: Any) -> Mixture:
    """Build a mixture from its `mixture_content`."""
    blocks = [schema.require([block["variables"]])[0] for block in stored["blocks"]]
    tables = [
        numbers_of(block["probabilities"]).reshape(-1, *schema.shape(names))
        for names, block in zip(blocks, stored["blocks"], strict=True)
    ]
    sizes, rules, children = schema.cardinalities(), rules_of(schema), dict[str, Child]()
    for variable, (root, states) in rules.dependent.items():
        children[variable] = Child.function(root, states, sizes[variable])
    for finer, (coarser, groups) in rules.refined.items():
        certain = len(np.unique(groups)) == len(groups)  # and not written
        shares = np.ones(len(groups)) if certain else numbers_of(stored["refined"][finer])
        children[finer] = Child.within(coarser, groups, shares, sizes[coarser])
    return Mixture.of(sizes, blocks, numbers_of(stored["weights"]), tables, children)


def total_of(stored: Any) -> float:
    """Read the number of records."""
    total = checked_number("total", stored["total"])
    if not 0.0 < total < 2.0**63:
        raise ValueError("its number of records is not positive, or too large")
    return total


def fit_of(mixture: Mixture, rules: Rules, total: float, stored: Any) -> MixtureFit:
    """Build a fit from its stored settings."""
    stored = {"covering": 1, "alike": False} | stored  # files of earlier versions lack these settings
    size, steps, covering = (whole_number(name, stored[name], 1) for name in ("size", "steps", "covering"))
    penalty, width = (checked_number(name, stored[name]) for name in ("penalty", "width"))
    sound = min(penalty, width) >= 0 and isinstance(stored["alike"], bool)
    if not sound or (mixture.weights.size - covering) % size or covering >= mixture.weights.size:
        raise ValueError("its settings of the fit are invalid")
    return MixtureFit(mixture, total, size, penalty, width, steps, covering, rules, stored["alike"])


def numbers_of(values: Any) -> Vector:
    """Convert a list of numbers from a file; texts and booleans are refused."""
    result = np.array(values)
    if result.dtype.kind not in "iuf":
        raise ValueError("it has other values where numbers are expected")
    return result.astype(np.float64)
