"""One Markov network behind all noisy tables: the fit of `CollectiveEM` for undirected models."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.polynomial.hermite_e import hermegauss
from numpy.typing import NDArray
from scipy.optimize import minimize

from pgmpy_dp.estimators.networks import table_places
from pgmpy_dp.inference import JunctionTree, Layout
from pgmpy_dp.inference.layout import Vector
from pgmpy_dp.release import NoisyMarginals
from pgmpy_dp.schema import Clique

import os
LAST=int(os.environ.get("LAST","45")); S20=float(os.environ.get("S20","1"))
NODES=int(os.environ.get('NODES','7')); TAU=float(os.environ.get('TAU','.3')); NU=float(os.environ.get('NU','3')); KAPPA=float(os.environ.get('KAPPA','30')); RHO=float(os.environ.get('RHO','.75'))
ROUNDS=int(os.environ.get('ROUNDS','8')); ITERS=int(os.environ.get('ITERS','15')); FTOL=float(os.environ.get('FTOL','1e-7')); WARM=int(os.environ.get('WARM','30')); COR=int(os.environ.get('COR','20'))

_POINTS, _WEIGHTS = hermegauss(NODES)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()


@dataclass(frozen=True)
class UndirectedFit:
    potentials: Vector
    prior_scale: float
    objective: float
    calibrations: int


class _Problem:
    def __init__(self, tree: JunctionTree, scopes: Sequence[Clique], measured: Sequence[Clique], release: NoisyMarginals, prior_scale) -> None:
        layout = tree.layout
        self.tree, self.total = tree, release.total
        self.free = table_places(layout, scopes)
        self.seen = table_places(layout, measured)
        tables = Layout.of(layout.cardinalities, measured)
        self.observed = tables.flatten(release.tables[clique] for clique in measured)
        self.scale = tables.per_cell([math.sqrt(release.variances[clique] / 2) for clique in measured])
        self.gaussian = release.guarantee.mechanism == "gaussian"
        own = np.full(layout.size, -1)
        own[self.free] = np.arange(self.free.size)
        self.own = own[self.seen]  # the free potential of an observed cell, or -1
        self.blurred = self.own >= 0
        self.identified = RHO * _interactions(layout, scopes) / self.free.size
        self.learn = prior_scale is None
        self.s2 = S20 if prior_scale is None else prior_scale**2
        self.precision = np.full(self.free.size, 1.0 / self.s2)
        self.calibrations = 0

    def calibrate(self, a):
        potentials = np.zeros(self.tree.layout.size)
        potentials[self.free] = a
        self.calibrations += 1
        return self.tree.calibrate(potentials)

    def __call__(self, point: Vector) -> tuple[float, Vector]:
        size = self.free.size
        a, v = point[:size], np.exp(point[size:])
        calibration = self.calibrate(a)
        counts = self.total * calibration.marginals[self.seen]
        spread = np.where(self.blurred, v[self.own], 0.0)
        value, by_count, by_spread = self.sites(counts, spread)
        direction = np.zeros(self.tree.layout.size)
        np.add.at(direction, self.seen, self.total * by_count)
        mean = a - v / 2
        slope_a = self.tree.covariance_product(calibration, direction)[self.free] + self.precision * mean
        slope_v = np.bincount(self.own[self.blurred], by_spread[self.blurred], size) + self.precision * (1 - mean) / 2 - 0.5 / v
        objective = value + 0.5 * float(self.precision @ (mean**2 + v) - point[size:].sum())
        return objective, np.concatenate([slope_a, slope_v * v])

    def sites(self, counts, spread):
        root = np.sqrt(spread)
        factor = np.exp(_POINTS[:, None] * root - spread / 2)
        blurred = counts * factor
        residual = self.observed - blurred
        smooth = np.sqrt(residual**2 + (TAU * self.scale) ** 2)
        value = float(((_WEIGHTS @ smooth) / self.scale).sum())
        score = residual / (smooth * self.scale)
        by_count = -_WEIGHTS @ (score * factor)
        by_spread = -(_WEIGHTS @ (score * blurred * (_POINTS[:, None] / (2 * np.maximum(root, 1e-12)) - 0.5)))
        return value, by_count, by_spread

    def curvature(self, marginals):
        information = np.zeros(self.free.size)
        counts = self.total * marginals[self.seen] * (1 - marginals[self.seen])
        fisher = 1.0 / (self.scale**2 * (1 + TAU**2 + 0.8 * TAU))
        np.add.at(information, self.own[self.blurred], (counts**2 * fisher)[self.blurred])
        return information + self.precision

    def learn_prior(self, a, v):
        mean = a - v / 2
        for _ in range(5):
            second = mean**2 + self.identified * v + (1 - self.identified) / self.precision
            weight = (NU + 1) / (NU + second / self.s2)
            if self.learn:
                known = self.identified * np.maximum(1 - self.precision * v, 0).sum()
                fresh = ((weight * mean**2).sum() + KAPPA) / (known + KAPPA)
                self.s2 = min(max(fresh, self.s2 / 3), self.s2 * 3)
        self.precision = weight / self.s2


def fit_undirected(tree, scopes, measured, release, max_iter, prior_scale):
    p = _Problem(tree, scopes, measured, release, prior_scale)
    size = p.free.size
    a = np.zeros(size)
    if WARM:
        from pgmpy_dp.estimators.measuring import measured_table
        from pgmpy_dp.release import project_to_simplex
        lay = Layout.of(tree.layout.cardinalities, scopes)
        mt = lay.flatten(project_to_simplex(measured_table(release, s)[0] / p.total) for s in scopes)
        lam = p.scale.mean() / (3 * p.total)
        S = 1 / np.sqrt(mt * (1 - mt) + 2 * lam)
        def f(x):
            t = x * S
            c = p.calibrate(t)
            return c.log_partition - t @ mt + lam * t @ t, (c.marginals[p.free] - mt + 2 * lam * t) * S
        fw = minimize(f, a, jac=True, method="L-BFGS-B", options={"maxiter": WARM, "maxcor": COR, "ftol": float(os.environ.get('WFTOL','1e-3'))*lam, "gtol": 0})
        a = fw.x * S
        if os.environ.get('TRACE'): print('warm', fw.nit, fw.nfev)
    marg = p.calibrate(a).marginals
    v = 1.0 / p.curvature(marg)
    point = np.concatenate([a, np.log(v)])
    last = np.inf
    hist=[]
    for r in range(ROUNDS):
        marg = p.calibrate(point[:size]).marginals
        s = 1 / np.sqrt(np.concatenate([p.curvature(marg), np.full(size, 0.5)]))
        def scaled(x, s=s):
            val, g = p(x * s)
            return val, g * s
        found = minimize(scaled, point / s, jac=True, method="L-BFGS-B", options={"maxiter": ITERS if r<ROUNDS-1 else LAST, "maxfun": 2*LAST, "maxcor": COR, "ftol": FTOL, "gtol": 1e-6})
        point = found.x * s
        hist.append((found.nit,found.nfev,round(float(found.fun),2),round(p.s2,3)))
        if os.environ.get('TRACE'): print(r, hist[-1])
        old = p.s2
        p.learn_prior(point[:size], np.exp(point[size:]))
        if abs(math.log(p.s2 / old)) < 0.02 and found.nit<ITERS and r>1:
            break
    full = np.zeros(tree.layout.size)
    full[p.free] = point[:size]
    return UndirectedFit(full, math.sqrt(p.s2), float(found.fun), p.calibrations)


def _interactions(layout, scopes):
    closure = {frozenset(part) for scope in scopes for size in range(1, len(scope) + 1) for part in combinations(scope, size)}
    return sum(math.prod(layout.cardinalities[v] - 1 for v in part) for part in closure)
