"""Other files that a user opens (ledgers, schemas, networks, records): whatever they hold, they are read or refused by
name, in bounded time and memory, and nothing is written."""

import json
import tracemalloc

import click
import numpy as np
import pandas as pd
import pytest
from pgmpy.factors.discrete import TabularCPD
from pgmpy.models import DiscreteBayesianNetwork

import pgmpy_dp as dp
from pgmpy_dp.cli.shared.structures import read_cliques, read_structure
from pgmpy_dp.errors import LedgerError
from pgmpy_dp.exports import load_network, save_network
from pgmpy_dp.privacy import Cost, PrivacyBudget, Pure, Zcdp

SCHEMA = dp.Schema({"a": dp.Bins([0, 1.5, 9]), "b": ["x,y", "ж"]}, missing={"a": "unknown"})


def ledger(path):
    budget = PrivacyBudget.open(path, 1.0, 1e-6)
    budget.charge(Cost("table", "laplace", Pure(0.1), "one record added or removed"))
    budget.charge(Cost("table", "gaussian", Zcdp(0.001)))


def bayesian(path):
    network = DiscreteBayesianNetwork([("a", "b")])
    states = {"a": ["x", "y"], "b": ["p", "q"]}
    a = TabularCPD("a", 2, [[0.25], [0.75]], state_names={"a": states["a"]})
    network.add_cpds(a, TabularCPD("b", 2, [[0.1, 0.3], [0.9, 0.7]], ["a"], [2], state_names=states))
    save_network(network, path)


def markov(path):
    frame = pd.DataFrame({"a": ["x", "y"], "b": ["p", "q"]}).astype("str")
    states = {"a": ["x", "y"], "b": ["p", "q"]}
    estimator = dp.papers.NaiveMLE(epsilon=1.0, state_names=states, max_iter=5)
    dp.PrivateMarkovNetwork([("a", "b")]).fit(frame, estimator=estimator).save(path)


def households(path):
    home, person = dp.Schema({"h": ["x", "y"]}), dp.Schema({"a": dp.Bins([0, 1, 9]), "b": ["p", "q"]})
    rng = np.random.default_rng(0)
    people = pd.DataFrame({"id": [*range(20)] * 2, "a": rng.uniform(0, 9, 40), "b": rng.choice(["p", "q"], 40)})
    homes = pd.DataFrame({"id": range(20), "h": rng.choice(["x", "y"], 20)})
    schema = dp.HouseholdSchema(home, person, "id", 2)
    data = dp.PrivateHouseholds(homes, people, schema, PrivacyBudget(9.0, 0.1), noise=dp.SimulatedNoise(0))
    dp.HouseholdMixture(9.0, 0.1, components=2, members=1).fit(data).network_.save(path)


def read_households(path):
    dp.PrivateHouseholdNetwork.load(path).simulate(3, seed=0)


def edges(path):
    path.write_text("# a network\na -> b\nlong name -> b\nalone\n")


def cliques(path):
    path.write_text('{"cliques": [["a", "b"], ["b"]], "weights": [1, 2.5]}')


def read_cliques_and_charge(path):
    chosen, weights = read_cliques(path)
    dp.PrivateDataset(RECORDS, SCHEMA, dp.PrivacyBudget(1.0)).measure(chosen, 0.5, weights=weights)


def records(path):
    RECORDS.to_csv(path, index=False)


def read_records(path):
    dp.PrivateDataset(path, SCHEMA, dp.PrivacyBudget(1.0)).measure([("a", "b")], 0.5)


RECORDS = pd.DataFrame({"a": [0.5, 3.0, None, 8.0] * 5, "b": ["x,y", "ж"] * 10})
FILES = {  # name, how it is made, how it is read, and how it is refused
    "ledger": ("ledger.json", ledger, PrivacyBudget.open, LedgerError),
    "schema": ("schema.json", SCHEMA.save, dp.Schema.load, dp.SchemaError),
    "Markov network": ("markov.json", markov, dp.PrivateMarkovNetwork.load, dp.ReleaseFormatError),
    "Bayesian network": ("network.json", bayesian, load_network, dp.ReleaseFormatError),
    "BIF": ("network.bif", bayesian, load_network, dp.ReleaseFormatError),
    "XMLBIF": ("network.xmlbif", bayesian, load_network, dp.ReleaseFormatError),
    "XDSL": ("network.xdsl", bayesian, load_network, dp.ReleaseFormatError),
    "NET": ("network.net", bayesian, load_network, dp.ReleaseFormatError),
    "UAI": ("network.uai", bayesian, load_network, dp.ReleaseFormatError),
    "households": ("households.json", households, read_households, dp.ReleaseFormatError),
    "edges": ("edges.txt", edges, read_structure, (click.ClickException, ValueError)),
    "cliques": ("cliques.json", cliques, read_cliques_and_charge, (click.ClickException, ValueError)),
    "records": ("records.csv", records, read_records, dp.SchemaError),
}
VALUES = [None, True, -1, 0, 2**70, 10**400, 1e308, -0.0, "", "\ud800", "1e999999999", "../x", "a" * 5000, [], {}, [[]]]


def changed_bytes(content, generator):
    changed = bytearray(content)
    for _ in range(generator.integers(1, 5)):
        place = int(generator.integers(0, len(changed)))
        kind = generator.integers(0, 4)
        if kind == 0:
            changed[place] = int(generator.integers(0, 256))
        elif kind == 1:
            del changed[place : place + int(generator.integers(1, 30))]
        elif kind == 2:
            changed[place:place] = generator.bytes(4)
        else:
            changed[place:place] = changed[place // 2 : place]
        if not changed:
            break
    return bytes(changed)


def changed_json(content, generator):
    stored = json.loads(content)
    for _ in range(generator.integers(1, 4)):
        node = stored
        while True:
            keys = list(node) if isinstance(node, dict) else list(range(len(node)))
            if not keys:
                break
            key = keys[int(generator.integers(0, len(keys)))]
            if isinstance(node[key], (dict, list)) and generator.random() < 0.8:
                node = node[key]
                continue
            if generator.random() < 0.2:
                del node[key]
            else:
                node[key] = VALUES[int(generator.integers(0, len(VALUES)))]
            break
    return json.dumps(stored).encode("utf-8", "surrogatepass")


def attack(path, read, error, count):
    """How many changed files are refused; memory counts after the first read, which compiles kernels slowly."""
    file = path.name
    genuine, around = path.read_bytes(), {entry.name for entry in path.parent.iterdir()}
    read(path)
    generator = np.random.default_rng(0)
    tracemalloc.start()
    changes = [changed_bytes, changed_json] if file.endswith(".json") else [changed_bytes]
    refused = 0
    for number in range(count):
        path.write_bytes(changes[number % len(changes)](genuine, generator))
        try:
            read(path)
        except error:
            refused += 1
        assert {entry.name for entry in path.parent.iterdir()} <= around | {f"{file}.lock"}
    return refused


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("count", [30, pytest.param(5000, marks=pytest.mark.slow)])
def test_hostile_files_are_refused_by_name_in_little_memory(name, count, tmp_path):
    file, make, read, error = FILES[name]
    make(tmp_path / file)
    try:
        assert attack(tmp_path / file, read, error, count) > 8
        assert tracemalloc.get_traced_memory()[1] < 200e6
    finally:
        tracemalloc.stop()
