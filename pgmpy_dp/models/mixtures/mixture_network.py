"""A mixture of products answers like a network, gives records, and goes into a file."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import pandas as pd

from pgmpy_dp.errors import SchemaError
from pgmpy_dp.fitting.readings.mixture_fits import Tables, draws_of, rules_of, warn_of_unmeasured
from pgmpy_dp.inference.mixtures.fit.ensemble import MixtureFit
from pgmpy_dp.inference.mixtures.mixture import Mixture
from pgmpy_dp.inference.mixtures.refits import MixtureDraws
from pgmpy_dp.models.formats.saved import MIXTURE
from pgmpy_dp.models.mixtures.answers import MixtureAnswers
from pgmpy_dp.models.mixtures.mixture_files import (
    fit_of,
    mixture_of,
    reading_model,
    settings_content,
    total_of,
    write_model,
)
from pgmpy_dp.models.model import Model, renamed
from pgmpy_dp.models.numbers import Numbers
from pgmpy_dp.privacy.checks import whole_number
from pgmpy_dp.release import Guarantee
from pgmpy_dp.schema import Schema

if TYPE_CHECKING:
    from pgmpy_dp.fitting.checks.misfit import FitCheck
    from pgmpy_dp.networks.bayesian_network import PrivateBayesianNetwork


class PrivateMixtureNetwork(Model):
    """A mixture over all variables of a schema, fitted to a release; no graph is needed.

    Each record is taken to come from one of the mixture's components, within which small blocks of variables are
    independent. Answers are exact, by sums over the components. Everything is post-processing and costs no privacy.

    Parameters
    ----------
    schema : Schema
    mixture : Mixture
        Over the variables of the schema.
    total : float
        The number of records behind the fit, as the release tells it.
    guarantee : Guarantee
        It holds for the records behind the fit.

    Attributes
    ----------
    schema_, mixture_, total_, guarantee_
        As the parameters.
    release_ : NoisyMarginals or InformedMarginals
        What an estimator fitted it to, or `attach_release` attached: bounds need it.

    Examples
    --------
    >>> import pandas as pd, pgmpy_dp as dp
    >>> records = pd.DataFrame({"smoke": ["yes", "no"] * 500, "lung": ["yes", "no", "no", "no"] * 250})
    >>> schema = dp.Schema({"smoke": ["yes", "no"], "lung": ["yes", "no"]})
    >>> estimator = dp.PairwiseMixture(epsilon=2.0, delta=1e-6, state_names=schema, members=2).fit(records)
    >>> network = estimator.network_
    >>> answer = network.query(["lung"], evidence={"smoke": "no"})
    >>> bool(answer.get_value(lung="no") > 0.9)
    True
    >>> bounded = network.query(["lung"], evidence={"smoke": "no"}, interval=0.9)
    >>> bool(bounded["lower"]["no"] > 0.9), bool(bounded["value"].le(bounded["upper"]).all())
    (True, True)
    >>> bool(network.simulate(1000, seed=0)["smoke"].value_counts().min() > 450)
    True
    """

    def __init__(self, schema: Schema, mixture: Mixture, total: float, guarantee: Guarantee) -> None:
        if dict(mixture.cardinalities) != schema.cardinalities():
            raise SchemaError("The mixture is not over the variables and states of the schema.")
        self.schema_, self.mixture_, self.total_, self.guarantee_ = schema, mixture, float(total), guarantee
        self._fit: MixtureFit | None = None

    @classmethod
    def fitted(cls, schema: Schema, fit: MixtureFit, release: Tables) -> Self:
        """Keep what bounds are drawn from beside the mixture: how it was fitted, and the release."""
        network = cls(schema, fit.mixture, fit.total, release.guarantee)
        network._fit, network.release_ = fit, release
        return network

    def _fitted(self) -> Schema:
        return self.schema_

    def _answering(self, names: Collection[str] | None = None) -> MixtureAnswers:
        return MixtureAnswers(self.mixture_, rules_of(self.schema_), self._drawn)

    def _drawn(self, names: Sequence[str]) -> MixtureDraws:
        draws = self.draws_
        warn_of_unmeasured(self.release_, self.schema_.select(names))
        return draws

    def _total(self) -> float:
        return self.total_

    @property
    def draws_(self) -> MixtureDraws:
        """Return refits to simulated releases, on which bounds rest: 8, unless `sample_draws` was called.

        Records are drawn from the mixture, their tables get the noise of the release, and a mixture is fitted to them;
        how far its answers are from those of the drawn records is the error to expect. So the noise counts, what a fit
        blurs, and the chance in what three variables do together, of which pairs tell little. Where a question has more
        than two variables, evidence included, the release cannot show that the records are no mixture like this one:
        there half of the variance between fits from different starts is taken for the mixture's own error, and twice
        the variance of independent records is added, in what pairs leave open. These two numbers come from other data,
        not from the release: such bounds are no guarantee.
        """
        held: MixtureDraws | None = vars(self).get("_draws")
        return held or self.sample_draws()

    def sample_draws(self, draws: int = 8, seed: int = 0) -> MixtureDraws:
        """Draw `draws_` afresh, and keep them: each takes as long as the fit of a member.

        Parameters
        ----------
        draws : int
            Bounds of few draws are wider; 4 are the least.
        seed : int
            The same seed gives the same draws; privacy does not depend on them.
        """
        whole_number("draws", draws, 4)
        if self._fit is None:
            raise ValueError("The network was not fitted to a release, from which bounds are drawn.")
        (release,) = self._releases()
        self._draws = draws_of(self._fit, release, self.schema_, draws, seed)
        return self._draws

    @cached_property
    def _check(self) -> FitCheck:
        from pgmpy_dp.fitting.checks.fit_checks import check_mixture  # imports pgmpy

        (release,) = self._releases()
        return check_mixture(self.mixture_, self.schema_, release)

    def attach_release(self, release: Tables) -> None:
        """Keep the release that the network was fitted to, for bounds. Networks that were read from a file need it.

        Raises
        ------
        TypeError
            If it is no release of tables.
        SchemaError
            If its variables or states are not those of the network.
        ValueError
            If it does not promise what the network does.
        """
        if not isinstance(release, Tables):
            raise TypeError(f"A NoisyMarginals is needed, got {type(release).__name__}.")
        if release.schema.select(release.variables).states != self.schema_.states:
            raise SchemaError("The release has other variables or states than the network.")
        if release.guarantee != self.guarantee_:
            raise ValueError("The release makes another promise than the network, which was not fitted to it.")
        vars(self).pop("_draws", None)
        vars(self).pop("_check", None)
        self.release_ = release

    def simulate(
        self,
        n_samples: int | None = None,
        *,
        evidence: Mapping[str, Any] | None = None,
        seed: int | None = None,
        numbers: Numbers = "states",
        predicting: str | None = None,
        target: str | None = None,
    ) -> pd.DataFrame:
        """Draw synthetic records, evenly: their tables are as close to the mixture's as those of whole records can be.

        Parameters
        ----------
        n_samples, evidence, seed, numbers, predicting
            As for every model; see `Model.simulate`.
        target : str, optional
            What `predicting` was called in an earlier version.

        Returns
        -------
        pandas.DataFrame
            Columns in the order of the schema.

        Notes
        -----
        Records are no independent draws: a mean over them is closer to the mixture's own than that of as many
        independent draws. How far the mixture is from the records behind it, they do not show.
        """
        if target is not None:
            renamed("target", "predicting")
            predicting = target
        return super().simulate(n_samples, evidence=evidence, seed=seed, numbers=numbers, predicting=predicting)

    def to_bayesian_network(self) -> PrivateBayesianNetwork:
        """Write the mixture as a Bayesian network: a latent root, the component, with every block below it.

        A variable that follows from another is its child, and a finer variable that of its coarser one. pgmpy's
        variable elimination and files then work on it. It has the mixture's guarantee, reads numbers in the mixture's
        bins, and predicts with the component summed out; its bounds are those of the mixture, which has the release.

        Raises
        ------
        ValueError
            If a CPD would have more than 67 million cells.

        Examples
        --------
        >>> import numpy as np
        >>> from pgmpy_dp.release import Guarantee
        >>> sick = np.array([[1.0, 0.0], [0.5, 0.5]])
        >>> mixture = Mixture.of({"lung": 2, "bronc": 2}, [("lung",), ("bronc",)], [0.9, 0.1], [sick, sick])
        >>> schema = Schema({"lung": ["no", "yes"], "bronc": ["no", "yes"]})
        >>> guarantee = Guarantee(1.0, 0.0, None, "add_remove", "laplace", True)
        >>> network = PrivateMixtureNetwork(schema, mixture, 100, guarantee).to_bayesian_network()
        >>> sorted(network.edges()), network.latents
        ([('component', 'bronc'), ('component', 'lung')], {'component'})
        """
        from pgmpy_dp.networks.latent_root import latent_root_network  # pgmpy takes half a second and 40 MB

        return latent_root_network(self.mixture_, self.schema_, self.guarantee_)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the mixture, its schema and its guarantee as JSON; an existing file is replaced only when complete.

        A file whose name ends in ``.zip`` carries the release too, for bounds. In others it is not: `attach_release`
        brings it back.

        Raises
        ------
        ValueError
            If the name ends in ``.zip`` and the network has no release.
        """
        settings = None if self._fit is None else settings_content(self._fit)
        write_model(path, MIXTURE, self, {"fit": settings}, vars(self).get("release_"))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read what `save` wrote.

        Raises
        ------
        FileNotFoundError
            If there is no such file.
        ReleaseFormatError
            If the file is no mixture network, or is damaged.
        """
        with reading_model(path, MIXTURE, "mixture network") as (stored, releases):
            schema, guarantee = Schema.from_dict(stored["schema"]), Guarantee.from_dict(stored["guarantee"])
            mixture, total = mixture_of(schema, stored), total_of(stored)
            network = cls(schema, mixture, total, guarantee)
            if stored["fit"] is not None:
                network._fit = fit_of(mixture, rules_of(schema), total, stored["fit"])
            if releases:
                network.attach_release(*releases)  # type: ignore[arg-type]  # refused where it holds no tables
            return network

    def __repr__(self) -> str:
        return (
            f"PrivateMixtureNetwork({len(self.schema_.variables)} variables, {self.mixture_.weights.size} components)\n"
            f"  {self.guarantee_}"
        )
