"""Estimators: one file a method; they take releases, data sets or records and fit pgmpy networks."""

from pgmpy_dp.estimators.for_arrays.logistic_regression import PrivateLogisticRegression
from pgmpy_dp.estimators.for_arrays.private_lda import PrivateLDA
from pgmpy_dp.estimators.for_arrays.sigmoid_belief_network import PrivateSigmoidBeliefNetwork
from pgmpy_dp.estimators.for_networks.auto_mle import AutoMLE
from pgmpy_dp.estimators.for_networks.collective_em import CollectiveEM
from pgmpy_dp.estimators.for_networks.maximum_likelihood import MaximumLikelihood
from pgmpy_dp.estimators.for_networks.naive_mle import NaiveMLE
from pgmpy_dp.estimators.for_networks.posterior_mean import PosteriorMean
from pgmpy_dp.estimators.for_networks.posterior_sampling import ExponentialMAP, PosteriorSampler
from pgmpy_dp.estimators.for_networks.private_bayesian import PrivateBayesianEstimator
from pgmpy_dp.estimators.for_networks.private_mle import PrivateMLE
from pgmpy_dp.estimators.for_networks.private_sgd import PrivateSGD
from pgmpy_dp.estimators.for_networks.private_vb import PrivateVB
from pgmpy_dp.estimators.for_networks.regression_sampling import LinearPosteriorSampler
from pgmpy_dp.fitting.accuracy import AccuracyPlan, plan_accuracy
from pgmpy_dp.fitting.allocation import DataDependentAllocation, PlannedAllocation, SizeAllocation, UniformAllocation
from pgmpy_dp.fitting.laskey import laskey_sensitivities
from pgmpy_dp.fitting.merging import merge_rare_states
from pgmpy_dp.fitting.pairs import plan_households, plan_pairs
from pgmpy_dp.fitting.planning import plan_measurements

__all__ = [
    "AccuracyPlan",
    "AutoMLE",
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
    "merge_rare_states",
    "plan_accuracy",
    "plan_households",
    "plan_measurements",
    "plan_pairs",
]
