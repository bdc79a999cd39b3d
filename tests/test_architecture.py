"""The examples of ARCHITECTURE.md run as they stand, and what they add passes what the package's own parts pass."""

import ast
import itertools
import json
import re
import sys
from dataclasses import replace
from fractions import Fraction
from functools import cache
from pathlib import Path
from types import ModuleType

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from noises import Noted
from trials import Bottomless

import pgmpy_dp
import pgmpy_dp as dp
from pgmpy_dp.observed.factors import families
from pgmpy_dp.privacy import PrivacyBudget, Pure
from pgmpy_dp.privacy.noise import laplace_scale
from pgmpy_dp.records import gate

TEXT = (Path(__file__).parents[1] / "ARCHITECTURE.md").read_text()
EXAMPLES = dict(re.findall(r"(?ms)^### ([^\n]+)\n(?:(?!^### ).)*?^```python\n(.*?)^```", TEXT))
BOTH = ("add_remove", "replace_one")
SCHEMA = dp.Schema({"v": ["x", "y"], "w": [0, 1]})
ROWS = list(itertools.product(*SCHEMA.states.values()))


@cache
def example(title):
    """An example as a module, which data classes look up by its name."""
    module = ModuleType(f"example_{title.split()[1]}")
    sys.modules[module.__name__] = module
    exec(compile(EXAMPLES[title], title, "exec", dont_inherit=True), vars(module))
    return module


def records(rows, columns=("v", "w")):
    """Rows of states; typed, so that none of them decide on types."""
    return pd.DataFrame(list(rows), columns=list(columns)).astype({"v": "str"} | ({"w": int} if "w" in columns else {}))


def test_each_example_is_complete_and_short():
    assert list(EXAMPLES) == ["A mechanism", "An estimator", "A question", "A source of records"]
    assert TEXT.count("```python") == len(EXAMPLES)
    for title, code in EXAMPLES.items():
        assert code.count("\n") < 60, title
        assert max(map(len, code.splitlines())) <= 120, title
        assert example(title).__doc__, title


# A mechanism.


def count(epsilon=0.5):
    return example("A mechanism").StateCount("v", "x", epsilon)


@pytest.mark.parametrize("relation", BOTH)
def test_the_mechanism_is_charged_before_it_draws(relation):
    budget = PrivacyBudget(1.0)

    class Watching(Noted):
        def discrete_laplace(self, counts, scale):
            assert len(budget.history) == 1
            return super().discrete_laplace(counts, scale)

    noise = Watching(private=True)
    data = dp.PrivateDataset(records(ROWS), SCHEMA, budget, relation, noise)
    answer = data.release(count())
    (charge,) = budget.history
    assert len(noise.seen) == 1
    assert answer.count == 2
    assert (charge.loss, charge.protects.neighbours) == (Pure(Fraction("0.5")), relation)
    assert answer.guarantee.every == {charge}
    assert budget.remaining.epsilon == 0.5


@pytest.mark.parametrize("epsilon", [1.5, 0.0, -1.0, float("nan"), float("inf"), True, "1", None])
def test_what_the_mechanism_refuses_is_neither_drawn_nor_charged(epsilon):
    budget, noise = PrivacyBudget(1.0), Noted(private=True)
    data = dp.PrivateDataset(records(ROWS), SCHEMA, budget, noise=noise)
    with pytest.raises((dp.BudgetExceededError, ValueError)):
        data.release(count(epsilon))
    for wrong in ({"variable": "u"}, {"state": "z"}):
        with pytest.raises(dp.SchemaError):
            data.release(replace(count(), **wrong))
    assert (budget.history, noise.seen) == ((), [])


def counted(frame, relation, **unit):
    """The exact count in parts, and the scale of its noise."""
    noise = Noted(private=True)
    dp.PrivateDataset(frame, SCHEMA, Bottomless(1.0), relation, noise, **unit).release(count())
    ((_, exact, scale),) = noise.seen
    return float(exact[0]), scale


def largest_change(exact, neighbours):
    return max(abs(exact[one] - exact[other]) for one, other in neighbours)


def bags(maximum):
    """All tables of at most so many rows, whatever their order."""
    return [bag for size in range(maximum + 1) for bag in itertools.combinations_with_replacement(ROWS, size)]


@pytest.mark.parametrize("relation", BOTH)
def test_the_mechanism_pays_for_the_largest_change_among_all_neighbours(relation):
    found = {bag: counted(records(bag), relation) for bag in bags(3)}
    exact, scales = {bag: value for bag, (value, _) in found.items()}, {scale for _, scale in found.values()}
    without = {bag: {bag[:place] + bag[place + 1 :] for place in range(len(bag))} for bag in found}
    if relation == "add_remove":
        pairs = [(bag, other) for bag in found for other in without[bag]]
    else:
        pairs = [(a, b) for a, b in itertools.product(found, repeat=2) if len(a) == len(b) and without[a] & without[b]]
    assert largest_change(exact, pairs) == 1
    assert scales == {laplace_scale(Fraction("0.5"), 1)}


@pytest.mark.parametrize("relation", BOTH)
@pytest.mark.parametrize("max_rows", [None, 1, 2])
def test_the_mechanism_pays_for_what_a_person_can_change(relation, max_rows):
    """One person has up to three rows; another, whose rows are all kept whatever is drawn, has one."""
    kept = ("p", "x", 0)
    found = {
        bag: counted(
            records([kept, *(("q", *row) for row in bag)], ("person", "v", "w")),
            relation,
            unit="person",
            max_rows=max_rows,
        )
        for bag in bags(3)
    }
    exact, (scale,) = {bag: value for bag, (value, _) in found.items()}, {scale for _, scale in found.values()}
    there = [bag for bag in found if bag]
    pairs = [(bag, ()) for bag in there] if relation == "add_remove" else list(itertools.product(there, repeat=2))
    largest = largest_change(exact, pairs)
    assert largest == (max_rows or exact[()])  # of parts, all of a person's rows are as many as those of one row
    assert scale == laplace_scale(Fraction("0.5"), int(largest))


# An estimator.


@pytest.fixture
def asia(bnlearn, simulate):
    """The network, and records of it."""
    return dp.PrivateBayesianNetwork.of(bnlearn("asia")), simulate("asia", 4000, 0)


@pytest.mark.parametrize("source", ["release", "frame", "data set"])
def test_the_estimator_fits_asia(asia, source):
    truth, frame = asia
    schema, kind = dp.Schema.from_model(truth), example("An estimator").ClippedMLE
    network, data = dp.PrivateBayesianNetwork(list(truth.edges())), frame
    estimator = kind(epsilon=4.0, state_names=schema if source == "frame" else None)
    if source != "frame":
        data = dp.PrivateDataset(frame, schema, PrivacyBudget(4.0))
    if source == "release":
        data, estimator = data.release(kind(epsilon=4.0).plan(network, schema).mechanism), kind()
    network.fit(data, estimator=estimator)
    assert network.check_model()
    assert (estimator.guarantee_.epsilon, network.guarantee_.epsilon) == (4.0, 4.0)
    for family in families(truth):
        assert np.abs(network.marginal(family) - truth.marginal(family)).max() < 0.05, family


def test_the_estimator_reads_a_table_as_it_says():
    schema = dp.Schema({"v": ["x", "y"], "w": [0, 1]})
    frame = pd.DataFrame({"v": ["x"] * 30 + ["y"] * 10, "w": [0] * 30 + [0] * 4 + [1] * 6})
    data = dp.PrivateDataset(frame, schema, PrivacyBudget(1.0), noise=Lowering())
    estimator = example("An estimator").ClippedMLE(epsilon=1.0, pseudo_count=2.0)
    network = dp.PrivateBayesianNetwork([("v", "w")]).fit(data, estimator=estimator)
    # The counts (30, 0) and (4, 6) are lowered by 1 each, no further than to 0, and raised by 2.
    cpd = network.get_cpds("w")
    assert [cpd.get_value(w=0, v=v) for v in "xy"] == pytest.approx([31 / 33, 5 / 12])


class Lowering(Noted):
    """Noise of -1."""

    def discrete_laplace(self, counts, scale):
        return counts - 1


@pytest.mark.parametrize("wrong", [0.0, -1.0, float("nan"), "1", None])
def test_the_estimator_refuses_parameters_before_a_charge(wrong):
    data = dp.PrivateDataset(records(ROWS), SCHEMA, PrivacyBudget(1.0))
    estimator = example("An estimator").ClippedMLE(epsilon=1.0, pseudo_count=wrong)
    with pytest.raises((ValueError, TypeError), match="pseudo_count"):
        dp.PrivateBayesianNetwork([("v", "w")]).fit(data, estimator=estimator)
    assert data.budget.history == ()


# A question.


def test_the_question_is_asked_of_a_network_and_of_a_mixture(asia):
    network, frame = asia
    asked, schema = example("A question").mutual_information, dp.Schema.from_model(network)
    joint = network.query(["lung", "smoke"], {"asia": "no"}).values
    expected = sum(p * np.log(p / (joint[i].sum() * joint[:, j].sum())) for (i, j), p in np.ndenumerate(joint))
    assert asked(network, "lung", "smoke", {"asia": "no"}) == pytest.approx(expected, rel=1e-9)
    assert asked(network, "asia", "smoke") == pytest.approx(0.0, abs=1e-12)
    with pytest.raises(dp.SchemaError):
        asked(network, "lung", "nothing")
    with pytest.raises(ValueError, match="probability zero"):
        asked(network, "asia", "smoke", {"either": "no", "lung": "yes"})
    variables = ["smoke", "lung"]
    mixture = dp.PairwiseMixture(epsilon=8.0, state_names=schema.select(variables)).fit(frame[variables]).network_
    assert asked(mixture, "smoke", "lung") == pytest.approx(asked(network, "smoke", "lung"), abs=0.01)


# A source of records.

LINES = [{"v": "x", "w": 1}, {"w": 0, "v": "y"}, {"v": "x", "w": 0, "more": [1]}]


@pytest.fixture
def open_lines(monkeypatch, tmp_path):
    """Add the source to the package, and write lines to a file for it."""
    module, known = example("A source of records"), gate.lazy_source

    def lazy_source(given, unit):
        return (module.lazy_source if isinstance(given, module.JsonLines) else known)(given, unit)

    monkeypatch.setattr(gate, "lazy_source", lazy_source)

    def written(lines, columns=("w", "more", "v")):
        path = tmp_path / "records.jsonl"
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        return module.JsonLines(path, columns)

    return written


def test_the_source_is_counted_behind_the_wall(open_lines):
    data = dp.PrivateDataset(open_lines(LINES * 3), SCHEMA, PrivacyBudget(1.0), noise=Noted(private=True))
    release = data.measure([("v", "w")], epsilon=1.0)
    assert release.tables["v", "w"].tolist() == [[3, 3], [3, 0]]
    assert data.budget.remaining.epsilon == 0
    with pytest.raises(dp.SchemaError):
        dp.PrivateDataset(open_lines(LINES, ("v",)), SCHEMA, PrivacyBudget(1.0))
    with pytest.raises(ValueError, match="unit"):
        dp.PrivateDataset(open_lines(LINES), SCHEMA, PrivacyBudget(1.0), unit="more")


LARGE = 2**53 + 1  # no float
CELLS = ["x", "1", 1, 0, 1.0, 1.5, True, None, [1], {"a": 1}, LARGE, 2**70, float("nan"), "\n", "", "ü"]


@pytest.mark.parametrize("cells", [CELLS, [LARGE, None], [True, None]], ids=["all", "large", "booleans"])
def test_the_source_reads_a_record_alike_whatever_others_hold(open_lines, monkeypatch, cells):
    """All records together add up to each alone, in batches of any size."""
    stand_ins = {"missing": {"v": "none", "w": "none"}, "other": {"v": "?", "w": "?"}}
    schema = dp.Schema({"v": ["x", "1", ""], "w": [0, 1, LARGE - 1, LARGE]}, **stand_ins)
    lines = [{"v": a, "w": b} for a, b in itertools.product(cells, repeat=2)]

    def table(part):
        opened = gate.open_records(open_lines(part), schema, ["v", "w"])
        return opened.counts([("v", "w")])["v", "w"]

    alone = sum(table([line]) for line in lines)
    assert alone.sum() == len(lines)
    for size in (1, 7, 2**17):
        monkeypatch.setattr(example("A source of records"), "BATCH_ROWS", size)
        assert (table(lines) == alone).all()


@pytest.mark.parametrize("wrong", [{"v": "secret", "w": 0}, {"v": "x"}, ["secret"], "secret"])
def test_what_the_source_refuses_is_not_named(open_lines, wrong):
    budget = PrivacyBudget(1.0)
    with pytest.raises(dp.SchemaError) as refused:
        dp.PrivateDataset(open_lines([*LINES, wrong]), SCHEMA, budget)
    assert "secret" not in str(refused.value)
    assert budget.history == ()


PACKAGE = Path(pgmpy_dp.__file__).parent


def imports(source: str, module: str, modules: set[str]) -> set[str]:
    """The modules that a file imports, but for those that only type checkers read."""
    found: set[str] = set()
    is_room = any(name.startswith(f"{module}.") for name in modules)

    class Visitor(ast.NodeVisitor):
        def visit_If(self, node: ast.If) -> None:
            if ast.unparse(node.test) != "TYPE_CHECKING":
                self.generic_visit(node)

        def visit_Import(self, node: ast.Import) -> None:
            found.update(alias.name for alias in node.names)

        def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
            assert not node.level or is_room, f"{module}: imports are absolute."
            origin = f"{module}.{node.module}" if node.level else str(node.module)
            for alias in node.names:
                submodule = f"{origin}.{alias.name}"
                found.add(submodule if submodule in modules else origin)

    Visitor().visit(ast.parse(source))
    return found & modules


def import_circles(sources: dict[str, str]) -> list[list[str]]:
    modules = set(sources)
    graph = nx.DiGraph((name, one) for name, source in sources.items() for one in imports(source, name, modules))
    return sorted(sorted(circle) for circle in nx.strongly_connected_components(graph) if len(circle) > 1)


def test_no_two_files_import_each_other():
    sources = {}
    for file in PACKAGE.rglob("*.py"):
        parts = ("pgmpy_dp", *file.relative_to(PACKAGE).with_suffix("").parts)
        names = file.with_suffix(".pyi")
        text = (names if names.exists() else file).read_text(encoding="utf-8")
        sources[".".join(parts).removesuffix(".__init__")] = text
    assert len(sources) > 100
    circles = import_circles(sources)
    assert circles == []


@pytest.mark.parametrize(
    "back",
    [
        "from p.a import x",
        "import p.a",
        "from p import a",
        "def f():\n    from p.a import x",
        "try:\n    import p.a\nfinally:\n    pass",
    ],
)
def test_a_circle_is_found(back):
    assert import_circles({"p": "", "p.a": "from p.b import y", "p.b": back, "p.c": "from p import b"}) == [
        ["p.a", "p.b"]
    ]


def test_a_circle_through_the_names_of_a_room_is_found():
    sources = {"p": "from .a import x", "p.a": "from q import y", "q": "from .b import y", "q.b": "from p import x"}
    assert import_circles(sources) == [["p", "p.a", "q", "q.b"]]


def test_imports_for_type_checkers_are_no_circle():
    typing = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from p.a import x"
    assert import_circles({"p.a": "import p.b", "p.b": typing}) == []
