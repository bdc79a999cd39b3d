"""14 constraints and 13 dependencies on 20 columns: what they cost a fit, and whether a million records obey them.

python tests/benchmarks/rules.py [--members 12]
"""

import time
import warnings

import numpy as np
import pandas as pd
from common import options, private

import pgmpy_dp as dp

RECORDS, SYNTHETIC = 50_000, 1_000_000
ROOTS = {f"r{number}": list(range(6 + 2 * number)) for number in range(7)}
DEPENDENT = {f"d{number}": f"r{number % 7}" for number in range(13)}


def rules_and_states():
    """Draw 13 dependencies on 7 roots, and 14 forbidden combinations of two or three of all variables."""
    draw = np.random.default_rng(0)
    states = ROOTS | {name: list(range(4)) for name in DEPENDENT}
    rules: list[dp.Dependency | dp.Forbidden] = [
        dp.Dependency(root, name, {state: state % 4 for state in ROOTS[root]}) for name, root in DEPENDENT.items()
    ]
    while len(rules) < 27:
        names = [str(name) for name in draw.choice(list(states), draw.integers(2, 4), replace=False)]
        if len({DEPENDENT.get(name, name) for name in names}) == len(names):
            rules.append(
                dp.Forbidden({v: draw.choice(states[v], len(states[v]) // 3, replace=False).tolist() for v in names})
            )
    return rules, states


def broken(frame: pd.DataFrame, rules) -> np.ndarray:
    """Say which records break a rule."""
    found = np.zeros(len(frame), dtype=bool)
    for rule in rules:
        if isinstance(rule, dp.Dependency):
            found |= frame[rule.finer].map(dict(rule.states)).to_numpy() != frame[rule.coarser].to_numpy()
        else:
            hits = [frame[name].isin(states).to_numpy() for name, states in rule.combination]
            found |= np.logical_and.reduce(hits)
    return found


def main() -> None:
    """Print the seconds of CPU of both fits, and the violations."""
    members = options(members=12).members
    warnings.simplefilter("ignore")
    rules, states = rules_and_states()
    draw = np.random.default_rng(1)
    columns = {v: draw.choice(own, 8 * RECORDS, p=draw.dirichlet(np.ones(len(own)))) for v, own in ROOTS.items()}
    columns |= {name: columns[root] % 4 for name, root in DEPENDENT.items()}
    frame = pd.DataFrame(columns)
    frame = frame[~broken(frame, rules)].iloc[:RECORDS].reset_index(drop=True)
    print(f"{len(frame):,} records, {len(states)} columns")
    for name, given in (("without rules", ()), ("with rules", rules)):
        schema = dp.Schema(states, rules=given)
        data = private(frame, schema, 1.0, 1e-9)
        cliques, weights = dp.plan_pairs(schema)
        release = data.measure(cliques, 1.0, delta=1e-9, mechanism="gaussian", weights=weights)
        cpu, begun = time.process_time(), time.perf_counter()
        network = dp.PairwiseMixture(members=members).fit(release).network_
        cpu, wall = time.process_time() - cpu, time.perf_counter() - begun
        drawn = network.simulate(SYNTHETIC, seed=0).astype("int64")
        violations = int(broken(drawn, rules).sum())
        print(
            f"{name}: {len(cliques)} tables, fit {cpu:.1f} s of CPU ({wall:.1f} s), {violations:,} violations",
            flush=True,
        )


if __name__ == "__main__":
    main()
