"""What holders of records who may not pool them get from a union of their releases, and what pooling would give.

    python tests/benchmarks/holders.py FOLDER [--sets adult,born,alarm] [--sites 2,5,20] [--seeds 3] [--out holders.csv]
    python tests/benchmarks/holders.py --coverage holders_coverage.csv [--seeds 3]

FOLDER holds adult_train.csv.gz and adult_test.csv.gz, as for synthesis.py. Eight variables of Adult are split at random
(`adult`) or by place of birth (`born`) into sites, and records drawn from alarm at random; random sites have shares
like 1, 1/2, 1/3 and so on. Each site releases the tables of one network at epsilon = 1, with simulated noise, and all
fits are by AutoMLE:

    release   one release of all records: what a trusted curator would give, and a secure sum with noise drawn once
    optimum   the same with as many times the variance as there are sites: the best of independent noise
    pooled    a union, all records together
    apart     a union, the site a parent of all variables
    partial   the same, partially pooled
    alone     each site by itself; over all records the mixture of the sites' networks, weighted by their noisy sizes
    average   the mean of the sites' CPDs, weighted likewise

Writes for each set, number of sites, way and seed, over all records (`overall`) and for the mean of the sites
(`site`): the mean total variation of pairs, the mean absolute error of P(income | one state), for states of 50 records
or more, and for alarm the divergence KL from the true network, in nats.

The coverage of 90 % bounds is that of answers P(variable | one state) within sites, for states of 50 expected records
or more, for 10,000 records drawn from networks of five sites whose CPDs differ by factors exp(d z), with normal z,
before they are normalised.
"""

import itertools
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from common import bare, options, private
from synthesis import adult

import pgmpy_dp as dp
from pgmpy_dp.evaluation import bnlearn_network, kl_divergence
from pgmpy_dp.observed.factors import tabular_cpd

COLUMNS = ["age", "workclass", "education", "marital_status", "occupation", "sex", "hours_per_week", "income"]
EDGES = [
    *(("age", "marital_status"), ("sex", "marital_status"), ("age", "education"), ("education", "occupation")),
    *(("sex", "occupation"), ("occupation", "workclass"), ("education", "income"), ("marital_status", "income")),
    *(("sex", "hours_per_week"), ("income", "hours_per_week")),
]
EPSILON, FEW, ESTIMATOR = 1.0, 50, dp.AutoMLE
FIRST_SEED = 20  # of coverage: the prior of partial pooling was chosen on earlier ones
WAYS = ("release", "optimum", "pooled", "apart", "partial", "alone", "average")

Measured = Mapping[str, float]


def split(name: str, sites: int, seed: int, folder: Path) -> tuple[list[pd.DataFrame], dp.Schema, Any]:
    """Records of each site, their schema, and the network to fit; for alarm with its parameters."""
    if name == "alarm":
        network = bnlearn_network("alarm")
        frame, schema = network.simulate(20_000, seed=seed, show_progress=False), dp.Schema.from_model(network)
    else:
        frame, _, schema = adult(folder)
        network = dp.PrivateBayesianNetwork(EDGES)
    if name == "born":
        places = frame["native_country"].value_counts().index[: sites - 1]
        site = frame["native_country"].where(frame["native_country"].isin(places), "elsewhere").to_numpy()
    else:
        shares = 1.0 / np.arange(1, sites + 1)
        site = np.random.default_rng(seed).choice(sites, len(frame), p=shares / shares.sum())
    columns = list(frame) if name == "alarm" else COLUMNS
    return [frame.loc[site == own, columns] for own in pd.unique(site)], schema.select(columns), network


def measured(frame: pd.DataFrame, schema: dp.Schema, network: Any, epsilon: float, seed: int) -> dp.NoisyMarginals:
    """A release of the network's tables with simulated noise."""
    cliques, weights = dp.plan_measurements(network, schema)
    return private(frame, schema, epsilon, seed=seed).measure(cliques, epsilon, weights=weights)


def fitted(network: Any, release: Any) -> Any:
    """A network of this structure, fitted to a release."""
    return bare(network.edges(), network.nodes()).fit(release, estimator=ESTIMATOR())


def networks(parts: list[pd.DataFrame], schema: dp.Schema, network: Any, seed: int) -> dict[str, tuple[Any, list[Any]]]:
    """For each way the network of all records, or None for the mixture of the sites' ones, and that of each site."""
    count, everyone = len(parts), pd.concat(parts)
    whole = fitted(network, measured(everyone, schema, network, EPSILON, 1000 * seed))
    best = fitted(network, measured(everyone, schema, network, EPSILON / count**0.5, 1000 * seed + 1))
    releases = [measured(part, schema, network, EPSILON, 1000 * seed + 2 + n) for n, part in enumerate(parts)]
    union = dp.union({f"site {n}": release for n, release in enumerate(releases)})
    pooled = fitted(network, union)
    alone = [fitted(network, release) for release in releases]
    weights = np.array([release.total for release in releases])
    mean = averaged(alone, weights / weights.sum(), schema)
    found = {
        "release": (whole, [whole] * count),
        "optimum": (best, [best] * count),
        "pooled": (pooled, [pooled] * count),
    }
    found |= {"alone": (None, alone), "average": (mean, [mean] * count)}
    for way, read in (("apart", union), ("partial", dp.PartiallyPooledMarginals.of(union))):
        own = fitted(union.apart(network), read)
        found[way] = (None, [of_site(own, number, schema) for number in range(count)])
    return found


def averaged(fits: list[Any], weights: Any, schema: dp.Schema) -> Any:
    """What people do: the weighted mean of each CPD."""
    mean = bare(fits[0].edges(), fits[0].nodes())
    for cpd in fits[0].get_cpds():
        values = sum(w * fit.get_cpds(cpd.variable).values for w, fit in zip(weights, fits, strict=True))
        mean.add_cpds(tabular_cpd(tuple(cpd.variables), values, schema.states))
    return mean


def of_site(network: Any, site: int, schema: dp.Schema) -> Any:
    """The network of one site, out of one in which the site is a parent of all."""
    edges = [edge for edge in network.edges() if "site" not in edge]
    own = bare(edges, [node for node in network.nodes() if node != "site"])
    for cpd in network.get_cpds():
        if cpd.variable != "site":
            values = cpd.values.take(site, cpd.variables.index("site"))
            own.add_cpds(tabular_cpd(tuple(v for v in cpd.variables if v != "site"), values, schema.states))
    return own


def errors(frames: list[pd.DataFrame], schema: dp.Schema, tables: Any, outputs: Any) -> Measured:
    """Mean total variation of pairs, and error of P(income | one state), of tables of shares."""
    states, income = [], schema.states["income"].index(schema.states["income"][-1])
    apart = []
    counts = dict(dp.exact_marginals(pd.concat(frames), schema, list(outputs)).tables)
    for pair, table in counts.items():
        apart.append(np.abs(table / table.sum() - tables[pair]).sum() / 2)
        if "income" in pair:
            axis = 1 - pair.index("income")
            true, own = (t if axis == 0 else t.T for t in (table, tables[pair]))
            kept = true.sum(axis=1) >= FEW
            answers = [(t[kept] / t[kept].sum(axis=1, keepdims=True))[:, income] for t in (true, own)]
            states.append(np.abs(answers[0] - answers[1]))
    asked = np.concatenate(states) if states else np.zeros(0)
    return {"pairs": float(np.mean(apart)), "queries": float(asked.mean()) if asked.size else np.nan}


def shares(network: Any, pairs: Any) -> dict[Any, Any]:
    """The network's tables of pairs."""
    return {pair: network.marginal(list(pair)) for pair in pairs}


def rows(name: str, sites: int, seed: int, folder: Path) -> Iterator[dict[str, Any]]:
    """Results of one split."""
    parts, schema, network = split(name, sites, seed, folder)
    pairs = list(itertools.combinations(schema.variables, 2))
    weights = np.array([len(part) for part in parts]) / sum(map(len, parts))
    for way, (whole, own) in networks(parts, schema, network, seed).items():
        held = {"set": name, "sites": sites, "seed": seed, "way": way}
        if name == "alarm":
            each = [kl_divergence(network, one) for one in own]
            yield held | {"site_kl": np.mean(each), "overall_kl": each[0] if whole is not None else np.nan}
            continue
        tables = [shares(one, pairs) for one in ({id(o): o for o in own}.values())]
        tables = tables * (len(own) // len(tables))
        mixed = {pair: sum(w * t[pair] for w, t in zip(weights, tables, strict=True)) for pair in pairs}
        overall = errors(parts, schema, mixed, pairs)
        site = [errors([part], schema, table, pairs) for part, table in zip(parts, tables, strict=True)]
        yield (
            held
            | {f"overall_{k}": v for k, v in overall.items()}
            | {f"site_{k}": np.nanmean([one[k] for one in site]) for k in overall}
        )


def coverage(name: str, difference: float, seed: int) -> Iterator[dict[str, Any]]:
    """The share of answers that 90 % bounds contain, with their mean width and the mean error of the answers."""
    network, generator, laws = bnlearn_network(name), np.random.default_rng(seed), []
    schema = dp.Schema.from_model(network)
    for _ in range(5):
        laws.append(bare(network.edges(), network.nodes()))
        for cpd in network.get_cpds():
            values = np.maximum(cpd.values, 1e-12) * np.exp(difference * generator.normal(size=cpd.values.shape))
            laws[-1].add_cpds(tabular_cpd(tuple(cpd.variables), values / values.sum(axis=0), schema.states))
    shares = 1.0 / np.arange(1, 6)
    sizes = np.round(10_000 * shares / shares.sum()).astype(int).tolist()
    releases = []
    for number, (law, size) in enumerate(zip(laws, sizes, strict=True)):
        drawn = law.simulate(size, seed=100 * seed + number, show_progress=False)
        releases.append(measured(drawn, schema, network, EPSILON, 1000 * seed + 2 + number))
    union = dp.union({f"site {n}": release for n, release in enumerate(releases)})
    for way, read in (("apart", union), ("partial", dp.PartiallyPooledMarginals.of(union))):
        own, found = fitted(union.apart(network), read), []
        for number, (law, size) in enumerate(zip(laws, sizes, strict=True)):
            for asked, given in itertools.permutations(schema.variables, 2):
                for state, share in zip(schema.states[given], law.marginal([given]), strict=True):
                    if share * size >= FEW:
                        true = law.query([asked], {given: state}).values
                        outputs = own.query([asked], {given: state, "site": f"site {number}"}, interval=0.9)
                        inside = (outputs["lower"] <= true) & (true <= outputs["upper"])
                        found.append(
                            [
                                inside.mean(),
                                (outputs["upper"] - outputs["lower"]).mean(),
                                abs(outputs["value"] - true).mean(),
                            ]
                        )
        covered, width, error = np.mean(found, axis=0)
        yield {"set": name, "difference": difference, "seed": seed, "way": way, "answers": len(found)} | {
            "covered": round(covered, 3),
            "width": round(width, 4),
            "error": round(error, 4),
        }


def figure(table: Path, out: Path) -> None:
    """Draw the error of pairs by the number of sites, over all records and within sites."""
    from matplotlib.figure import Figure

    frame = pd.read_csv(table)
    panels = (
        ("adult", "overall_pairs", "all records"),
        ("adult", "site_pairs", "within random sites"),
        ("born", "site_pairs", "within places of birth"),
    )
    page = Figure(figsize=(10, 3.4), layout="constrained")
    for axes, (name, column, title) in zip(page.subplots(1, 3, sharey=True), panels, strict=True):
        for way in WAYS:
            own = frame[(frame["set"] == name) & (frame["way"] == way)].groupby("sites")[column].mean()
            axes.plot(range(len(own)), own, marker=".", label=way)
            axes.set_xticks(range(len(own)), own.index)
        axes.set(title=title, xlabel="sites", yscale="log")
    page.axes[0].set_ylabel("mean total variation of pairs")
    page.legend(*page.axes[0].get_legend_handles_labels(), loc="outside right center", frameon=False)
    page.savefig(out, metadata={"Date": None})


def main() -> None:
    """Write one row a way, split and seed."""
    asked = options(
        "folder?", sets=("adult", "born", "alarm"), sites=(2, 5, 20), seeds=3, out=Path("holders.csv"), coverage=Path
    )
    warnings.simplefilter("ignore")
    found: list[dict[str, Any]] = []
    if asked.coverage:
        seeds = range(FIRST_SEED, FIRST_SEED + asked.seeds)
        for seed, name, difference in itertools.product(seeds, ("cancer", "asia"), (0.0, 0.3, 1.0)):
            found += coverage(name, difference, seed)
            pd.DataFrame(found).to_csv(asked.coverage, index=False)
        return
    for seed, name, sites in itertools.product(range(asked.seeds), asked.sets, asked.sites):
        found += rows(name, sites, seed, asked.folder)
        pd.DataFrame(found).to_csv(asked.out, index=False, float_format="%.5g")
    frame = pd.DataFrame(found).drop(columns="seed")
    print(frame.groupby(["set", "sites", "way"]).mean().to_string(float_format="%.4f"))


if __name__ == "__main__":
    main()
