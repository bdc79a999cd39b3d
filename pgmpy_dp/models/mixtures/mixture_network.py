"""A mixture of products that answers queries like a network, generates records, and can be saved."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import pandas as pd

from pgmpy_dp import _late
from pgmpy_dp.errors import SchemaError
from pgmpy_dp.fitting.readings.mixture_fits import (
    MixtureRelease,
    draws_of,
    fitted_variables,
    rules_of,
    warn_of_unmeasured,
)
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
from pgmpy_dp.observed.united_marginals import UnitedMarginals
from pgmpy_dp.privacy.checks import whole_number
from pgmpy_dp.release import Guarantee
from pgmpy_dp.schema import Schema

if TYPE_CHECKING:
    from pgmpy_dp.fitting.checks.misfit import FitCheck
    from pgmpy_dp.networks.bayesian_network import PrivateBayesianNetwork


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

    Attributes
    ----------
    schema_, mixture_, total_, guarantee_
        As the parameters.
    release_ : NoisyMarginals, NoisyResiduals or InformedMarginals
        The release that the mixture was fitted to, or that `attach_release` attached; bounds require it.

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
        self.schema_, self.mixture_, self.total_ = schema, mixture, float(total)
        self.guarantee_ = guarantee.after(schema.guarantee)
        self._fit: MixtureFit | None = None

    @classmethod
    def fitted(cls, schema: Schema, fit: MixtureFit, release: MixtureRelease) -> Self:
        """Build a network that keeps the fit's settings and the release, which bounds require."""
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
        """Return refits to simulated releases, from which bounds are computed: 8, unless `sample_draws` was called.

        For each refit, records are drawn from the mixture, the noise of the release is added to their tables, and a
        mixture is fitted to these. The differences between its answers and those of the drawn records estimate the
        error: noise, bias of the fit, and chance variation in the dependence of three variables, about which pairs say
        little. For queries on more than two variables, evidence included, the release cannot show that the model is
        wrong. There half of the variance between fits from different starts is taken as the mixture's own error, and
        twice the variance of independent records is added for what pairs do not determine. These two factors come from
        other data, not from the release, so such bounds are not guaranteed.
        """
        held: MixtureDraws | None = vars(self).get("_draws")
        return held or self.sample_draws()

    def sample_draws(self, draws: int = 8, seed: int = 0) -> MixtureDraws:
        """Draw and keep new `draws_`; each takes as long as the fit of a member.

        Parameters
        ----------
        draws : int
            Fewer draws give wider bounds; at least 4.
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

    def attach_release(self, release: MixtureRelease) -> None:
        """Attach the release that the network was fitted to; bounds require it if a loaded file lacks it.

        Raises
        ------
        TypeError
            If a mixture cannot be fitted to it.
        SchemaError
            If its variables or states differ from the network's.
        ValueError
            If its guarantee differs from the network's.
        """
        if not isinstance(release, MixtureRelease):
            raise TypeError(f"A NoisyMarginals is needed, got {type(release).__name__}.")
        pooled = isinstance(release, UnitedMarginals) and release.variable not in self.schema_.states
        if release.schema.select(fitted_variables(release, pooled)).states != self.schema_.states:
            raise SchemaError("The release has other variables or states than the network.")
        if not release.guarantee.states(self.guarantee_):
            raise ValueError("The release makes another promise than the network, which was not fitted to it.")
        self.guarantee_ = release.guarantee
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
        """Draw synthetic records whose tables are as close to the mixture's as integer counts allow.

        Parameters
        ----------
        n_samples, evidence, seed, numbers, predicting
            See `Model.simulate`.
        target : str, optional
            Deprecated name of `predicting`.

        Returns
        -------
        pandas.DataFrame
            Columns in the order of the schema.

        Notes
        -----
        The records are not independent draws: their mean is closer to the mixture's than the mean of as many
        independent draws. They do not show how far the mixture is from the original records.
        """
        if target is not None:
            renamed("target", "predicting")
            predicting = target
        return super().simulate(n_samples, evidence=evidence, seed=seed, numbers=numbers, predicting=predicting)

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
        network: PrivateBayesianNetwork = _late.public("networks").latent_root_network(self)
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
        settings = None if self._fit is None else settings_content(self._fit)
        write_model(path, MIXTURE, self, {"fit": settings}, vars(self).get("release_"))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read what `save` wrote; see `pgmpy_dp.load` for errors."""
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
