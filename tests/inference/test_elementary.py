"""Exponentials and logarithms on vector registers are the library's, to the last digits."""

import numpy as np

from pgmpy_dp.inference.posterior.trajectories import MIN, exponentials, log1p


def test_exponentials_are_the_librarys():
    generator = np.random.default_rng(0)
    exponents = np.concatenate([MIN * generator.random(10_000), -generator.random(10_000), -1e-9 * np.arange(9), [MIN]])
    found = np.empty_like(exponents)
    exponentials(exponents.copy(), found)
    np.testing.assert_allclose(found, np.exp(exponents), rtol=1e-15)


def test_logarithms_are_the_librarys():
    generator = np.random.default_rng(0)
    numbers = np.concatenate([generator.random(10_000), 10.0 ** (-300 * generator.random(10_000)), [0.0, 1.0]])
    np.testing.assert_allclose([log1p(number) for number in numbers], np.log1p(numbers), rtol=5e-16)
