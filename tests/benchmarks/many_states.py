"""Time, memory and error where columns have many states: a hierarchy beside twenty columns, or networks of Adult.

    python tests/benchmarks/many_states.py STATES
    python tests/benchmarks/many_states.py FOLDER

With a number, prints seconds of the fit and of as many synthetic records, peak memory, and total variation distances to
the records. With a folder that has adult_train.csv.gz, as for synthesis.py, prints for a network with three nodes of
201 to 600 states, fitted to records and to a release of its tables over all states: seconds of the processor, the mean
distance of its nodes, and that of its edges over 15 runs of states of equal shares, beside that of independent columns.
"""

import sys
import time

import numpy as np
import pandas as pd
from common import peak_megabytes, private

import pgmpy_dp as dp

RECORDS, COLUMNS, REGIONS = 100_000, 20, 50
EDGES = [("sex", "job"), ("job", "income"), ("income", "capital_gain"), ("job", "fnlwgt")]
RUNS = 15


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


def adult(folder: str) -> tuple[pd.DataFrame, dp.Schema]:
    """Read records of Adult, with jobs (occupation and education), gains in steps of 500 and weights in 600 steps."""
    frame = pd.read_csv(f"{folder}/adult_train.csv.gz")
    levels = {v: sorted(frame[v].unique()) for v in ("occupation", "education", "sex", "income")}
    states = {
        "job": [f"{one}, {other}" for one in levels["occupation"] for other in levels["education"]],
        "capital_gain": list(range(201)),
        "fnlwgt": list(range(600)),
        "sex": levels["sex"],
        "income": levels["income"],
    }
    frame["job"] = frame["occupation"] + ", " + frame["education"]
    frame["capital_gain"] = frame["capital_gain"] // 500
    frame["fnlwgt"] = (frame["fnlwgt"] // 2500).clip(upper=599)
    return frame[list(states)], dp.Schema(states)


def distances(frame: pd.DataFrame, network: dp.PrivateBayesianNetwork) -> np.ndarray:
    """Compare nodes, and edges over runs of states, also of independent columns."""
    states = network.schema_.states
    shares = {v: frame[v].value_counts(normalize=True).reindex(states[v], fill_value=0.0).to_numpy() for v in frame}
    runs = {
        v: np.minimum((np.cumsum(own) - own / 2) * RUNS, RUNS - 1).astype(int)
        if own.size > RUNS
        else np.arange(own.size)
        for v, own in shares.items()
    }
    singles = np.mean([abs(network.marginal([v]) - own).sum() / 2 for v, own in shares.items()])
    pairs = []
    for one, other in EDGES:
        truth = np.zeros((RUNS, RUNS))
        places = [runs[v][pd.Index(states[v]).get_indexer(frame[v])] for v in (one, other)]
        np.add.at(truth, tuple(places), 1 / len(frame))
        joint = np.zeros((RUNS, RUNS))
        np.add.at(joint, (runs[one][:, None], runs[other]), network.marginal([one, other]))
        alone = np.outer(truth.sum(axis=1), truth.sum(axis=0))
        pairs.append([abs(table - truth).sum() / 2 for table in (joint, alone)])
    return np.array([singles, *np.mean(pairs, axis=0)])


def networks(folder: str) -> None:
    """Fit networks to records and to tables over all states, and compare."""
    whole, schema = adult(folder)
    structure = dp.PrivateBayesianNetwork(EDGES)
    for records, epsilon in ((3000, 1.0), (len(whole), 0.1)):
        for delta in (0.0, 1e-9):
            results: dict[str, list[np.ndarray]] = {"in groups": [], "over all states": []}
            for seed in range(3):
                frame = whole.sample(records, random_state=seed)
                data = private(frame, schema, 2 * epsilon, 1e-6, seed=seed)
                start = time.process_time()
                network = structure.copy().fit(data, dp.AutoMLE(epsilon, delta=delta))
                results["in groups"].append(np.append(distances(frame, network), time.process_time() - start))
                kind = "gaussian" if delta else "laplace"
                cliques, weights = dp.plan_measurements(structure, schema, mechanism=kind)
                start = time.process_time()
                release = data.measure(cliques, epsilon, delta=delta, weights=weights)
                network = structure.copy().fit(release)
                results["over all states"].append(np.append(distances(frame, network), time.process_time() - start))
            for name, each in results.items():
                nodes, edges, alone, seconds = np.mean(each, axis=0)
                print(f"{records} records, epsilon {epsilon}, delta {delta}, {name}: {seconds:.0f} CPU s, "
                      f"nodes {nodes:.3f}, edges {edges:.3f}, independent {alone:.3f}", flush=True)  # fmt: skip


def main() -> None:
    """Fit, draw and compare."""
    if not sys.argv[1].isdigit():
        networks(sys.argv[1])
        return
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
