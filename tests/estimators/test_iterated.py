"""What estimators share that iterate over records: their bar, one charge for all steps, interruptions and refusals."""

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from noises import Interrupting, Scripted
from pgmpy.models import DiscreteBayesianNetwork
from scipy import sparse
from sklearn.base import clone

import pgmpy_dp as dp
from pgmpy_dp.estimators import iterated

PLAN = SimpleNamespace(steps=4, guarantee=SimpleNamespace(epsilon=0.75))
SCHEMA = dp.Schema({name: [0, 1] for name in "abcd"})


def steps(interrupted=None):
    for number in range(PLAN.steps):
        if number == interrupted:
            raise KeyboardInterrupt
        yield f"after step {number}"


def test_the_bar_says_what_is_spent(monkeypatch, capsys):
    bar = iterated.tqdm
    monkeypatch.setattr(iterated, "tqdm", lambda **options: bar(**{**options, "delay": 0, "mininterval": 0}))
    assert iterated.take_steps(PLAN, steps(), "PrivateLDA") == ("after step 3", 4)
    shown = capsys.readouterr().err
    assert "PrivateLDA, epsilon 0.75 charged for all steps" in shown
    assert "4/4" in shown


def test_an_interruption_keeps_the_finished_steps():
    with pytest.warns(UserWarning, match=r"stopped after 2 of 4 steps.*epsilon=0\.75 is charged"):
        assert iterated.take_steps(PLAN, steps(interrupted=2), "PrivateVB") == ("after step 1", 2)


def test_an_interruption_of_the_first_step_has_learned_nothing():
    with pytest.raises(KeyboardInterrupt):
        iterated.take_steps(PLAN, steps(interrupted=0), "PrivateSGD")


def bits(count, seed):
    return np.random.default_rng(seed).integers(0, 2, (count, 4))


def discrete(count, seed, *others):
    return dp.PrivateDataset(pd.DataFrame(bits(count, seed), columns=list("abcd")), SCHEMA, *others)


def documents(count, seed, *others):
    return dp.PrivateDocuments(sparse.csr_array(9 * bits(count, seed) + 1), list("abcd"), others[0], 40, *others[1:])


def features(count, seed, budget, *others):
    public = dict(zip(("neighbours", "noise"), others, strict=True))
    records = bits(count, seed)
    return dp.PrivateFeatures(records[:, 1:], records[:, 0], bounds=(0, 1), classes=[0, 1], budget=budget, **public)


@dataclass(frozen=True)
class Case:
    """An estimator, the data that it takes, attributes that it learns, and how many sums a step draws."""

    kind: type
    source: Any
    attributes: tuple
    options: dict
    draws: int = 1
    network: Any = None

    def data(self, count=300, seed=1, budget=(2.0, 1e-5), neighbours="add_remove", noise=None):
        noise = dp.SimulatedNoise(1) if noise is None else noise
        return self.source(count, seed, dp.PrivacyBudget(*budget), neighbours, noise)

    def fit(self, data, **plan):
        estimator = self.kind(**{"epsilon": 0.5, "delta": 1e-6, "sampling_rate": 0.3, **self.options, **plan})
        return estimator.fit(*([] if self.network is None else [self.network.copy()]), data)

    def learned(self, fitted):
        """All numbers that were learned, also those of tables."""
        found = [value for name in self.attributes for value in getattr(fitted, name)]
        return np.concatenate([np.ravel(getattr(value, "values", value)) for value in found])


LATENT = DiscreteBayesianNetwork([("class", name) for name in "abcd"], latents={"class"})
CHAIN = dp.PrivateMarkovNetwork([("a", "b"), ("b", "c"), ("c", "d")])
TABLES, TOPICS, LOGISTIC = ("parameters_",), ("components_",), ("coef_", "intercept_", "covariance_")
LAYERS, TWO = ("components_", "intercept_", "hidden_intercept_"), {"n_components": 2}
CASES = [
    Case(dp.PrivateVB, discrete, TABLES, {"state_names": {"class": ["one", "two"]}}, network=LATENT),
    Case(dp.papers.PrivateSGD, discrete, TABLES, {"total": 300}, network=CHAIN),
    Case(dp.PrivateLDA, documents, TOPICS, TWO),
    Case(dp.PrivateLogisticRegression, features, LOGISTIC, {}, draws=3),
    Case(dp.papers.PrivateSigmoidBeliefNetwork, discrete, LAYERS, TWO, draws=3),
]
EVERY = pytest.mark.parametrize("case", CASES, ids=lambda case: case.kind.__name__)


@EVERY
@pytest.mark.parametrize("size", [{}, {"batch_size": 50, "sampling_rate": None}], ids=["rate", "batch"])
def test_a_fit_is_one_block_of_the_ledger(case, size):
    neighbours = "replace_one" if size else "add_remove"
    data = case.data(neighbours=neighbours)
    fitted = case.fit(data, steps=4, **size)
    (charge,) = data.budget.history
    assert (float(charge.epsilon), float(charge.delta), fitted.n_steps_) == (0.5, 1e-6, 4)
    guarantee = fitted.guarantee_
    assert (guarantee.epsilon, guarantee.delta, guarantee.neighbours) == (0.5, 1e-6, neighbours)
    assert not hasattr(clone(fitted), "n_steps_")


@EVERY
def test_nothing_of_the_records_crosses_steps_but_the_noisy_sums(case):
    """With the noisy sums fixed, what is learned is the same whatever the records are."""
    fits = []
    for seed, count in ((1, 300), (2, 500)):
        noise = Scripted(5)
        noise.keys = dp.SimulatedNoise(8).keys  # of draws that do not depend on their number
        noise.coins = lambda rate, size: np.arange(size) % 5 == 0
        fits.append(case.learned(case.fit(case.data(count, seed, noise=noise), steps=5)))
    assert (fits[0] == fits[1]).all()


@EVERY
def test_an_interrupted_fit_keeps_what_it_has_and_its_charge(case):
    noise = Interrupting(1)
    noise.at = 2 * case.draws + 1
    data = case.data(500, noise=noise)
    with pytest.warns(UserWarning, match=r"stopped after 2 of 8 steps.*all of epsilon=0\.5 is charged"):
        fitted = case.fit(data, steps=8)
    assert (fitted.n_steps_, data.budget.spent.epsilon, len(data.budget.history)) == (2, 0.5, 1)
    assert np.isfinite(case.learned(fitted)).all()


NO_PLANS = [  # of all
    ({"epsilon": 2.5}, dp.BudgetExceededError, r"epsilon=2\.5.*A noise multiplier of \d"),
    ({"epsilon": None}, ValueError, "needs an epsilon|costs privacy"),
    ({"noise_multiplier": 0.1}, ValueError, "noise_multiplier"),
    ({"delta": 0.0}, ValueError, "needs a delta"),
    ({"delta": 1e-13, "steps": 10**6}, ValueError, "larger delta"),
    ({"steps": 0}, ValueError, "steps"),
    ({"sampling_rate": 1.5}, ValueError, "sampling_rate"),
    ({"batch_size": 10}, ValueError, "private"),
    ({"clip_norm": float("nan")}, ValueError, "clip_norm"),
    ({"clip_norm": 1e-9}, ValueError, "clip_norm"),
    ({"neighbours": "replace_one"}, ValueError, "neighbours"),
]
TURNED = {"a": [1, 0], "b": [0, 1], "c": [0, 1], "d": [0, 1]}
OWN = {  # of one of them
    dp.PrivateVB: [
        ({"forgetting": 1.5}, ValueError, "forgetting"),
        ({"state_names": None}, dp.SchemaError, "Latent variable 'class' has no declared states"),
        ({"state_names": {"class": []}}, dp.SchemaError, "class"),
        ({"state_names": {"class": ["one", "two"], **TURNED}}, dp.SchemaError, "'a'"),
    ],
    dp.PrivateLDA: [
        (
            {"epsilon": None, "noise_multiplier": 2.0, "steps": 5, "sampling_rate": 1.0},
            dp.BudgetExceededError,
            r"multiplier is 2, for epsilon=\d.*A noise multiplier of \d.* fits",
        ),
        ({"epsilon": 0.5, "noise_multiplier": 0.1}, ValueError, "leave out one of the two"),
        ({"delta": 1.5}, ValueError, "delta"),
        ({"n_components": 2.0}, ValueError, "n_components"),
        ({"topic_word_prior": 1e-9}, ValueError, "topic_word_prior"),
        ({"learning_decay": 1.5}, ValueError, "learning_decay"),
        ({"learning_offset": 0.5}, ValueError, "learning_offset"),
        ({"document_length": 41}, ValueError, "document_length"),
    ],
    dp.PrivateLogisticRegression: [
        ({"forgetting": 1.5}, ValueError, "forgetting"),
        ({"bounds": (0, 2)}, ValueError, "its own bounds"),
        ({"classes": [1, 0]}, ValueError, "its own classes"),
    ],
    dp.papers.PrivateSigmoidBeliefNetwork: [
        ({"n_components": 2.0}, ValueError, "n_components"),
        ({"delta": 1e-11, "n_components": 300, "epsilon": 1.0, "sampling_rate": 0.05}, ValueError, "larger delta"),
        ({"delay": 0.5}, ValueError, "delay"),
    ],
    dp.papers.PrivateSGD: [
        ({"total": None}, ValueError, "number of records is private"),
        ({"total": -5}, ValueError, "total"),
        ({"state_names": TURNED}, dp.SchemaError, "'a'"),
    ],
}


@pytest.mark.parametrize(
    ("case", "change", "error", "match"),
    [
        pytest.param(case, *row, id=f"{case.kind.__name__} {row[0]}")
        for case in CASES
        for row in NO_PLANS + OWN[case.kind]
    ],
)
def test_bad_input_charges_nothing(case, change, error, match):
    data = case.data(100)
    with pytest.raises(error, match=match):
        case.fit(data, **change)
    assert data.budget.history == ()


@EVERY
def test_a_batch_of_more_records_than_there_are_is_refused(case):
    with pytest.raises(ValueError, match="all 100 records"):
        case.fit(case.data(100, neighbours="replace_one"), sampling_rate=None, batch_size=101)
