"""Estimators: one file a method; they take releases, data sets or records and fit pgmpy networks."""

from pgmpy_dp.estimators.collective_em import CollectiveEM
from pgmpy_dp.estimators.maximum_likelihood import MaximumLikelihood
from pgmpy_dp.estimators.naive import NaiveMLE
from pgmpy_dp.estimators.planning import plan_measurements
from pgmpy_dp.estimators.private_bayesian import PrivateBayesianEstimator
from pgmpy_dp.estimators.private_mle import PrivateMLE
from pgmpy_dp.estimators.private_sgd import PrivateSGD
from pgmpy_dp.estimators.private_vb import PrivateVB

__all__ = [
    "CollectiveEM",
    "MaximumLikelihood",
    "NaiveMLE",
    "PrivateBayesianEstimator",
    "PrivateMLE",
    "PrivateSGD",
    "PrivateVB",
    "plan_measurements",
]
