"""Time, memory and error where one column has thousands of states: a hierarchy, beside twenty other columns.

    python tests/benchmarks/many_states.py STATES

Prints seconds of the fit and of as many synthetic records, peak memory, and total variation distances to the records.
"""

import sys
import time

import numpy as np
import pandas as pd
from common import peak_megabytes

import pgmpy_dp as dp

RECORDS, COLUMNS, REGIONS = 100_000, 20, 50


def made_up(states: int) -> tuple[pd.DataFrame, dp.Schema]:
    """Places of very different sizes in regions, which twenty columns of four states depend on, some on each other."""
    generator = np.random.default_rng(0)
    region_of = generator.integers(REGIONS, size=states)
    region_of[:REGIONS] = np.arange(REGIONS)
    sizes = 1 / np.arange(10, states + 10)
    place = generator.choice(states, RECORDS, p=sizes / sizes.sum())
    columns: dict[str, np.ndarray] = {"place": place}
    shares = generator.dirichlet(np.ones(4), size=(COLUMNS, REGIONS, 4))
    before = np.zeros(RECORDS, dtype=int)
    for number in range(COLUMNS):
        sums = np.cumsum(shares[number, region_of[place], before], axis=1)
        before = (generator.random(RECORDS)[:, None] > sums).sum(axis=1).clip(0, 3)
        columns[f"v{number}"] = before
    names = [f"place {number}" for number in range(states)]
    declared = {"place": names, "region": [f"region {number}" for number in range(REGIONS)]}
    declared |= {f"v{number}": list(range(4)) for number in range(COLUMNS)}
    rule = dp.Hierarchy("place", "region", {name: f"region {r}" for name, r in zip(names, region_of, strict=True)})
    frame = pd.DataFrame(columns).assign(place=pd.Categorical.from_codes(place, names))
    return frame, dp.Schema(declared, rules=[rule])


def main() -> None:
    """Fit, draw and compare."""
    states = int(sys.argv[1])
    frame, schema = made_up(states)
    start = time.perf_counter()
    estimator = dp.PairwiseMixture(1.0, 1e-9, state_names=schema).fit(frame)
    fitted = time.perf_counter()
    synthetic = estimator.network_.simulate(RECORDS, seed=0)
    drawn = time.perf_counter()
    truth = frame["place"].value_counts(normalize=True).reindex(schema.states["place"]).to_numpy()
    own = synthetic["place"].value_counts(normalize=True).reindex(schema.states["place"]).to_numpy()
    measured = estimator.release_.tables["place",] / RECORDS
    region_of = dict(schema.rules[0].states)
    table, other = (
        pd.crosstab(data["place"].astype(str).map(region_of), data["v3"].astype(int), normalize=True)
        for data in (frame, synthetic)
    )
    print(f"{states:,} states: fit {fitted - start:.0f} s, {RECORDS:,} records {drawn - fitted:.1f} s, "
          f"peak {peak_megabytes() / 1024:.2f} GB")  # fmt: skip
    kept, noisy = (abs(truth - shares).sum() / 2 for shares in (own, measured))
    print(f"distance of places {kept:.3f}, of their noisy table {noisy:.3f}")
    print(f"distance of region and a column {abs(table - other).to_numpy().sum() / 2:.3f}")
    assert (synthetic["place"].astype(str).map(region_of) == synthetic["region"].astype(str)).all()


if __name__ == "__main__":
    main()
