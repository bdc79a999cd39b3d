"""Estimators: one file a method; they take releases, data sets or records and fit pgmpy networks."""

from pgmpy_dp.estimators.allocation import (
    DataDependentAllocation,
    PlannedAllocation,
    SizeAllocation,
    UniformAllocation,
)
from pgmpy_dp.estimators.collective_em import CollectiveEM
from pgmpy_dp.estimators.logistic_regression import PrivateLogisticRegression
from pgmpy_dp.estimators.maximum_likelihood import MaximumLikelihood
from pgmpy_dp.estimators.naive import NaiveMLE
from pgmpy_dp.estimators.planning import plan_measurements
from pgmpy_dp.estimators.posterior_mean import PosteriorMean
from pgmpy_dp.estimators.posterior_sampling import ExponentialMAP, PosteriorSampler
from pgmpy_dp.estimators.private_bayesian import PrivateBayesianEstimator
from pgmpy_dp.estimators.private_lda import PrivateLDA
from pgmpy_dp.estimators.private_mle import PrivateMLE
from pgmpy_dp.estimators.private_sgd import PrivateSGD
from pgmpy_dp.estimators.private_vb import PrivateVB
from pgmpy_dp.estimators.regression_sampling import LinearPosteriorSampler
from pgmpy_dp.estimators.sensitivity import laskey_sensitivities
from pgmpy_dp.estimators.sigmoid_belief_network import PrivateSigmoidBeliefNetwork

__all__ = [
    "CollectiveEM",
    "DataDependentAllocation",
    "ExponentialMAP",
    "LinearPosteriorSampler",
    "MaximumLikelihood",
    "NaiveMLE",
    "PlannedAllocation",
    "PosteriorMean",
    "PosteriorSampler",
    "PrivateBayesianEstimator",
    "PrivateLDA",
    "PrivateLogisticRegression",
    "PrivateMLE",
    "PrivateSGD",
    "PrivateSigmoidBeliefNetwork",
    "PrivateVB",
    "SizeAllocation",
    "UniformAllocation",
    "laskey_sensitivities",
    "plan_measurements",
]
