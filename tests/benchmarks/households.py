"""How close two synthetic tables, of households and of their persons, come to real ones.

    python tests/benchmarks/households.py FOLDER [--sets rand,census] [--epsilon 1] [--delta 1e-9] [--seeds 3]

Two sets of tables. In rand, the households are the persons of the RAND Health Insurance Experiment, and their persons
are years: real records of two levels. (The published table has no key: a person is a run of records that agree in what
was asked once, of at most five years.) In census, persons are the census records of FOLDER (see synthesis.py), put in
households by what they say of themselves: husbands with wives of about their age, children below parents, others alone
or together; four columns of households are drawn given the persons.

Prints for each kind of table the mean total variation, and the largest, of the synthetic tables and of others: of
persons who are dealt to the same synthetic households at random; of persons who are drawn given their household, but
independently of each other; of a mixture of persons with the columns of their household, where all persons are counted
with the noise that this takes; and of records drawn again with replacement, households with all their persons. Across
levels it says which pairs are not closer than with persons dealt at random.
"""

import itertools
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from common import options, private
from synthesis import EDGES, adult

import pgmpy_dp as dp
from pgmpy_dp.demo import SCHEMA as RAND
from pgmpy_dp.demo import load_records
from pgmpy_dp.records.frames import encode

KEY = "household"
Tables = tuple[pd.DataFrame, pd.DataFrame]
YEARS = 5


def rand() -> tuple[Tables, dp.HouseholdSchema]:
    """Persons, and their years."""
    records = load_records()
    asked = records[["limitation", "diseases", "health"]]
    new = (asked != asked.shift()).any(axis=1)
    year = records.groupby(new.cumsum()).cumcount()
    records[KEY] = (new | (year % YEARS == 0)).cumsum()
    once, yearly = ["limitation", "diseases", "health"], ["visits", "coinsurance", "deductible"]
    persons = records.groupby(KEY, as_index=False)[once].first()
    schema = dp.HouseholdSchema(RAND.select(once), RAND.select(yearly), KEY, YEARS, size="years")
    return (persons, records[[KEY, *yearly]]), schema


def census(folder: Path) -> tuple[Tables, dp.HouseholdSchema]:
    """Real persons in households that could be theirs."""
    columns = ["age", "education_num", "marital_status", "relationship", "race", "sex", "hours_per_week", "income"]
    people = pd.concat(adult(folder)[:2], ignore_index=True)[columns]
    draw = np.random.default_rng(0)
    role, age = people["relationship"], people["age"].to_numpy()
    owner = np.arange(len(people))

    def nearest(whose: Any, heads: Any, wanted: Any, spread: float) -> None:
        """Put persons in the households of heads of about the wanted age, of their own race."""
        for race in people["race"].unique():
            own, theirs = (rows[people["race"].to_numpy()[rows] == race] for rows in (whose, heads))
            known = age[theirs] + draw.normal(0, spread, theirs.size)
            order = theirs[np.argsort(known)]
            at = np.searchsorted(np.sort(known), wanted[np.searchsorted(whose, own)] + draw.normal(0, 1, own.size))
            owner[own] = order[np.clip(at, 0, order.size - 1)]

    def of(*roles: str) -> Any:
        return np.flatnonzero(role.isin(roles))

    wives, husbands = of("Wife"), of("Husband")
    nearest(wives, husbands, age[wives] + 2.0, 3.0)
    _, first = np.unique(owner[wives], return_index=True)
    later = np.setdiff1d(np.arange(wives.size), first)
    owner[wives[later]] = wives[later]  # one wife a husband; these are with nobody
    children, parents = of("Own-child"), of("Husband", "Unmarried")
    nearest(children, parents, age[children] + 27.0, 6.0)
    others = of("Other-relative")
    nearest(others, of("Husband", "Unmarried", "Not-in-family"), age[others].astype(float), 10.0)
    alone = of("Not-in-family")
    sharing = alone[(draw.random(alone.size) < 0.4) & ~np.isin(alone, owner[others])]
    sharing = sharing[np.argsort(age[sharing] + draw.normal(0, 2, sharing.size))]
    owner[sharing[1::2]] = owner[sharing[: sharing.size // 2 * 2 : 2]]
    whose, people[KEY] = np.unique(owner, return_inverse=True)
    homes = pd.DataFrame({KEY: range(whose.size)})
    size = people.groupby(KEY).size().to_numpy()
    head_age, rich = age[whose], people.assign(rich=people["income"].str.startswith(">")).groupby(KEY)["rich"].sum()
    owned = 1 / (1 + np.exp(-(-2.5 + 0.05 * head_age + 0.9 * rich.to_numpy())))
    homes["tenure"] = np.where(draw.random(whose.size) < owned, "owned", "rented")
    homes["rooms"] = np.clip(np.rint(1.5 + 0.8 * size + rich + draw.normal(0, 1, whose.size)), 1, 7).astype(int)
    race, men = (
        people["race"].to_numpy()[whose],
        people.groupby(people[KEY])["sex"].agg(lambda own: (own == "Male").sum()),
    )
    homes["cars"] = np.minimum(draw.poisson(0.2 + 0.2 * size + 0.4 * rich + 0.4 * men * (race != "Black")), 3)
    south = np.where(race == "Black", 0.6, 0.2) + np.clip((head_age - 30) * 0.006, 0, 0.3)
    where = draw.random(whose.size)
    homes["region"] = np.select([where < south, where < south + (1 - south) * 0.6], ["south", "north"], "west")
    home = {"tenure": ["owned", "rented"], "rooms": range(1, 8), "cars": range(4), "region": ["north", "south", "west"]}
    own = {c: dp.Bins(EDGES[c]) if c in EDGES else sorted(people[c].unique()) for c in columns}
    return (homes, people), dp.HouseholdSchema(dp.Schema(home), dp.Schema(own), KEY, max_persons=6)


def positions(frame: pd.DataFrame, schema: dp.Schema) -> dict[str, Any]:
    """Positions of states, of real records or of synthetic ones, whose columns are categories."""
    if isinstance(frame[schema.variables[0]].dtype, pd.CategoricalDtype):
        return {variable: frame[variable].cat.codes.to_numpy() for variable in schema.variables}
    return encode(frame, schema, schema.variables)


def coded(tables: Tables, schema: dp.HouseholdSchema) -> tuple[dict[str, Any], dict[str, Any], Any, Any]:
    """Codes of households and of persons, the household of each person, and pairs of persons, in both orders."""
    homes, people = tables
    place = {key: number for number, key in enumerate(homes[KEY])}
    owners = people[KEY].map(place).to_numpy()
    order = np.argsort(owners, kind="stable")
    own, owners = positions(people.iloc[order], schema.persons), owners[order]
    level = positions(homes, schema.households)
    sizes = np.bincount(owners)
    level[schema.size] = np.minimum(sizes, schema.max_persons) - 1
    starts = np.cumsum(sizes) - sizes
    rows = [
        np.stack(np.nonzero(~np.eye(size, dtype=bool))) + starts[sizes == size][:, None, None]
        for size in np.unique(sizes)
        if size > 1
    ]
    return level, own, owners, np.concatenate([part.swapaxes(0, 1).reshape(2, -1) for part in rows], axis=1)


def found(tables: Tables, schema: dp.HouseholdSchema) -> dict[tuple[str, tuple[str, ...]], Any]:
    """All tables of one and two variables, as shares: of households, persons, and pairs of persons."""
    level, own, owners, (first, second) = coded(tables, schema)
    joined = schema.joined.cardinalities()

    def share(*columns: tuple[str, Any]) -> Any:
        shape = [joined[variable] for variable, _ in columns]
        cells = np.ravel_multi_index([codes for _, codes in columns], shape)
        return np.bincount(cells, minlength=int(np.prod(shape))) / len(cells)

    shares = {}
    for kind, codes in (("households", level), ("persons", own)):
        for number in (1, 2):
            for group in itertools.combinations(codes, number):
                shares[f"{number}-way, {kind}", group] = share(*((v, codes[v]) for v in group))
    for one, other in itertools.product(level, own):
        shares["across", (one, other)] = share((one, level[one][owners]), (other, own[other]))
    for one, other in itertools.combinations_with_replacement(own, 2):
        shares["two persons", (one, other)] = share((one, own[one][first]), (other, own[other][second]))
    return shares


def dealt(tables: Tables, seed: int) -> Tables:
    """The same households and persons, paired independently."""
    homes, people = tables
    order = np.random.default_rng(seed).permutation(len(people))
    return homes, people.assign(**{KEY: people[KEY].to_numpy()[order]})


def again(tables: Tables, seed: int) -> Tables:
    """Households drawn with replacement, each with all of its persons."""
    homes, _ = tables
    keys = np.random.default_rng(seed).choice(homes[KEY], len(homes))
    drawn = pd.DataFrame({KEY: keys, "new": range(len(keys))})
    own, theirs = (drawn.merge(table, on=KEY).drop(columns=KEY).rename(columns={"new": KEY}) for table in tables)
    return own, theirs


def counted(data: Tables, schema: dp.HouseholdSchema, epsilon: float, delta: float, seed: int) -> pd.Series:
    """Errors of a mixture of persons, all of whom are counted, up to the bound on a household."""
    homes, people = data
    people = people.merge(homes, on=KEY)
    people[schema.size] = people.groupby(KEY)[KEY].transform("size").clip(upper=schema.max_persons)
    bounds = {"unit": KEY, "max_rows": schema.max_persons}
    private_persons = private(people, schema.joined, epsilon, delta, seed=seed, **bounds)
    network = dp.PairwiseMixture(epsilon, delta).fit(private_persons).network_
    far = {}
    for (kind, group), share in found(data, schema).items():
        if kind == "across" or (kind.endswith("persons") and kind != "two persons"):
            far[kind, group] = 0.5 * abs(network.marginal(group).ravel() - share).sum()
    return pd.Series(far)


def main() -> None:
    """Print the errors of each set."""
    asked = options("folder", sets=("rand", "census"), epsilon=1.0, delta=1e-9, seeds=3)
    for name in asked.sets:
        tables, schema = rand() if name == "rand" else census(asked.folder)
        true = found(tables, schema)
        errors: dict[str, list[pd.Series]] = {}
        seconds = []
        for seed in range(asked.seeds):
            begin = time.process_time()
            budget = dp.PrivacyBudget(asked.epsilon, asked.delta)
            data = dp.PrivateHouseholds(*tables, schema, budget, noise=dp.SimulatedNoise(seed))
            network = dp.HouseholdMixture(asked.epsilon, asked.delta).fit(data).network_
            fitted = time.process_time()
            made = network.simulate(seed=seed)
            seconds.append((fitted - begin, time.process_time() - fitted))
            assert set(made[0][KEY]) == set(made[1][KEY])
            assert made[0][KEY].is_unique
            pairs, network.together_ = network.together_, {}
            alone, network.together_ = network.simulate(seed=seed), pairs
            for label, other in (
                ("synthetic", made),
                ("dealt at random", dealt(made, seed)),
                ("independent given the household", alone),
                ("real, drawn again", again(tables, seed)),
            ):
                theirs = found(other, schema)
                far = {table: 0.5 * abs(theirs[table] - share).sum() for table, share in true.items()}
                errors.setdefault(label, []).append(pd.Series(far))
            by_person = counted(tables, schema, asked.epsilon, asked.delta, seed)
            errors.setdefault("persons counted", []).append(by_person)
        mean = {label: pd.concat(parts, axis=1).mean(axis=1) for label, parts in errors.items()}
        print(f"\n{name}: {len(tables[0])} households, {len(tables[1])} persons, epsilon {asked.epsilon:g}; seconds of")
        print("the processor to fit and to draw:", " ".join(f"{one:.1f}+{two:.1f}" for one, two in seconds))
        shown = pd.DataFrame({label: own.groupby(level=0).mean() for label, own in mean.items()})
        most = pd.DataFrame({label: own.groupby(level=0).max() for label, own in mean.items()})
        print(shown.round(4).astype(str) + " (" + most.round(4).astype(str) + ")")
        own, other = mean["synthetic"]["across"], mean["dealt at random"]["across"]
        print(f"across levels below those dealt at random: {(own < other).sum()} of {len(own)} pairs")
        above = pd.DataFrame({"synthetic": own, "dealt at random": other})[own >= other]
        print("" if above.empty else f"the others:\n{above.round(4)}", flush=True)


if __name__ == "__main__":
    pd.set_option("display.width", 200, "display.max_columns", 9)
    main()
