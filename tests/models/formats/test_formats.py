"""Networks as files: what comes back, here and in pgmpy's own readers."""

import itertools
import re
import tracemalloc

import numpy as np
import pytest
from pgmpy.factors.discrete import DiscreteFactor, TabularCPD
from pgmpy.models import DiscreteBayesianNetwork, DiscreteMarkovNetwork
from pgmpy.readwrite import BIFReader, NETReader, NETWriter, UAIReader, UAIWriter, XDSLReader, XDSLWriter, XMLBIFReader

import pgmpy_dp as dp
from pgmpy_dp.evaluation import bnlearn_network
from pgmpy_dp.models.formats import other_formats as formats
from pgmpy_dp.models.formats.assembling import identifier
from pgmpy_dp.models.formats.formats import save_network
from pgmpy_dp.networks import load_network
from pgmpy_dp.observed.factors import families
from pgmpy_dp.release import Guarantee

BAYESIAN = (".bif", ".xmlbif", ".xdsl", ".net", ".uai", ".json")
READERS = {".bif": BIFReader, ".xmlbif": XMLBIFReader, ".xdsl": XDSLReader, ".net": NETReader}
ESCAPES = {
    ".bif": formats.escape_bif,
    ".xmlbif": formats.escape_xml,
    ".xdsl": identifier,
    ".net": identifier,
}
HOSTILE = {
    "größe, cm": ["<18, child", "18+", "a (b) | c"],
    "table": ["default", "table", "variable { x }"],
    "// x": ['"quoted"', "/* c */", "</OUTCOME>", "&amp;", "%2C", " leading", "trailing ", ""],
    "1": [0, 1],
    "flag": [False, True],
    "dose": [0.1, 2.0, -3.5e-09],
    "ж\t\n": ["один", "two words"],
    "only": ["one state"],
}


def random_network(states, edges, seed=0):
    chance = np.random.default_rng(seed)
    network = DiscreteBayesianNetwork()
    network.add_nodes_from(states)
    network.add_edges_from(edges)
    for clique in families(network):
        cards = [len(states[v]) for v in clique]
        values = chance.dirichlet(np.full(cards[0], 0.05), int(np.prod(cards[1:]))).T  # from 1e-300 to nearly 1
        names = {v: states[v] for v in clique}
        network.add_cpds(TabularCPD(clique[0], cards[0], values, clique[1:] or None, cards[1:] or None, names))
    return network


def hostile_network():
    names = list(HOSTILE)
    return random_network(HOSTILE, [(names[a], names[b]) for a, b in ((0, 2), (1, 2), (4, 3), (5, 6))])


def probabilities(network):
    """Every CPD cell by the names it is asked for with."""
    cells = {}
    for cpd in network.get_cpds():
        for place in itertools.product(*(range(card) for card in cpd.cardinality)):
            named = {v: cpd.state_names[v][i] for v, i in zip(cpd.variables, place, strict=True)}
            cells[cpd.variable, frozenset((v, type(s), s) for v, s in named.items())] = cpd.values[place]
    return cells


@pytest.mark.parametrize("suffix", BAYESIAN)
def test_hostile_names_types_and_all_digits_come_back(tmp_path, suffix):
    network = hostile_network()
    save_network(network, tmp_path / f"a{suffix}")
    read = load_network(tmp_path / f"a{suffix}")
    assert list(read.nodes()) == list(network.nodes())
    assert set(read.edges()) == set(network.edges())
    assert probabilities(read) == probabilities(network)
    assert {v: read.get_cpds(v).state_names[v] for v in HOSTILE} == HOSTILE


@pytest.mark.parametrize(("suffix", "reader"), READERS.items())
def test_pgmpy_reads_what_is_written(tmp_path, bnlearn, suffix, reader):
    plain = bnlearn("child" if suffix in (".bif", ".xmlbif") else "asia")  # whose states are identifiers
    save_network(plain, tmp_path / f"a{suffix}")
    assert probabilities(reader(str(tmp_path / f"a{suffix}")).get_model()) == probabilities(plain)
    save_network(hostile_network(), tmp_path / f"b{suffix}")
    read = reader(string=(tmp_path / f"b{suffix}").read_text(encoding="utf-8")).get_model()
    assert read.check_model()
    assert sorted(probabilities(read).values()) == sorted(probabilities(hostile_network()).values())
    escape = ESCAPES[suffix]
    assert set(read.nodes()) == {escape(v) for v in HOSTILE}
    for variable, states in HOSTILE.items():
        name = escape(variable)
        assert read.get_cpds(name).state_names[name] == [escape(str(s)) for s in states]


@pytest.mark.parametrize(("suffix", "writer"), [(".xdsl", XDSLWriter), (".net", NETWriter)])
def test_what_pgmpy_writes_is_read(suffix, writer, tmp_path, bnlearn):
    writer(bnlearn("child")).write(str(tmp_path / f"a{suffix}"))
    read, wanted = probabilities(load_network(tmp_path / f"a{suffix}")), probabilities(bnlearn("child"))
    assert set(read) == set(wanted)
    assert all(read[cell] == pytest.approx(wanted[cell], abs=1e-8) for cell in wanted)


HUGIN = """
net { node_size = (80 40); name = "two nodes"; }  % a comment with { and "
discrete node rain { label = "Rain {today}"; position = (1 2); states = ("heavy rain" "none; dry"); }
node wet { states = ("yes", "no"); }
potential (rain) { data = (0.25 0.75); }
potential (wet | rain) { data = ((1 0)  % heavy
                                 (1e-1 0.9)); }
"""


GENIE = """<?xml version="1.0" encoding="UTF-8"?>
<smile version="1.0" id="Network1" numsamples="1000" discsamples="10000"><nodes>
  <cpt id="rain"><state id="heavy" /><state id="none" /><probabilities>0.25 0.75</probabilities></cpt>
  <cpt id="wet"><state id="yes" /><state id="no" /><parents>rain</parents>
    <probabilities>1 0  0.1 0.9</probabilities></cpt>
</nodes><extensions><genie version="1.0" app="GeNIe" name="Network1" /></extensions></smile>"""


OTHERS = {  # a file, its state for no rain, and what is wrong with another
    "a.net": (HUGIN, "none; dry", [
        ("(wet | rain)", "(wet rain)", "not a table of one variable"),
        ("(1 0)", "(1 0 0)", "has 5 probabilities, and needs 4"),
        ("(1 0)", "(1 normal(0,1))", "could not convert"),
        ("node wet", "utility wet", "no complete block"),
        ("node wet", "decision node wet", "is not one with states"),
        ("node wet", "node rain", "'rain' is declared twice"),
        ("(rain)", "(wet)", "each variable needs one table"),
        ("wet | rain", "wet | snow", "'snow'"),
    ]),
    "a.xdsl": (GENIE, "none", [
        ('<cpt id="wet">', '<cpt id="rain">', "'rain' is declared twice"),
        ("<parents>rain", "<parents>rain snow", "'snow'"),
        ("1 0  0.1", "0.1", "has 2 probabilities, and needs 4"),
        ("</nodes>", '<deterministic id="d" /></nodes>', "'d' is a <deterministic>"),
    ]),
}  # fmt: skip


@pytest.mark.parametrize("name", OTHERS)
def test_other_programs_files_are_read(name, tmp_path):
    path, (text, dry, wrong) = tmp_path / name, OTHERS[name]
    path.write_text(text)
    network = load_network(path)
    assert network.get_cpds("rain").state_names["rain"] == ["heavy rain" if name == "a.net" else "heavy", dry]
    assert network.query(["wet"], {"rain": dry}).get_value(wet="yes") == pytest.approx(0.1)
    for old, new, outputs in wrong:
        path.write_text(text.replace(old, new))
        with pytest.raises(dp.ReleaseFormatError, match=re.escape(outputs)):
            load_network(path)


def test_pgmpy_reads_uai_markov_networks(tmp_path):
    chance = np.random.default_rng(0)
    states = {"b": ["x", "y"], "a": ["x", "y", "z"], "c": [0, 1, 2, 3]}
    network = DiscreteMarkovNetwork([("a", "b"), ("c", "a")])
    for scope in (("a", "b"), ("c", "a")):
        cards = [len(states[v]) for v in scope]
        values = 10.0 ** chance.uniform(-300, 3, int(np.prod(cards)))
        network.add_factors(DiscreteFactor(list(scope), cards, values, {v: states[v] for v in scope}))
    save_network(network, tmp_path / "a.uai")
    for read, number in (
        (UAIReader(str(tmp_path / "a.uai")).get_model(), {v: f"var_{i}" for i, v in enumerate(network.nodes())}),
        (load_network(tmp_path / "a.uai"), {v: v for v in states}),
    ):
        for old, new in zip(network.get_factors(), read.get_factors(), strict=True):
            assert new.variables == [number[v] for v in old.variables]
            assert np.array_equal(new.values, old.values)
    assert load_network(tmp_path / "a.uai").get_factors()[1].state_names == {v: states[v] for v in ("c", "a")}
    (tmp_path / "a.uai.schema.json").unlink()
    assert set(load_network(tmp_path / "a.uai").nodes()) == {"var_0", "var_1", "var_2"}


@pytest.mark.parametrize("count", [-2, 10**9])
def test_counts_in_uai_files_have_limits(tmp_path, count):
    (tmp_path / "a.uai").write_text(f"MARKOV\n1\n{count}\n1\n1 0\n2\n0.5 0.5\n")
    with pytest.raises(dp.ReleaseFormatError, match="a count is negative or too large"):
        load_network(tmp_path / "a.uai")


def test_bayesian_uai_tables_stand_as_the_format_asks(tmp_path):
    """Read as Markov factors, whose axes are in the order of the scope, they are the CPDs with the child last."""
    network = random_network({"c": ["x", "y"], "a": ["x", "y", "z"], "b": ["u", "v"]}, [("a", "c"), ("b", "c")])
    save_network(network, tmp_path / "a.uai")
    text = (tmp_path / "a.uai").read_text()
    assert text.splitlines()[:7] == ["BAYES", "3", "2 3 2", "3", "3 1 2 0", "1 1", "1 2"]
    factor = UAIReader(string=text.replace("BAYES", "MARKOV")).get_tables()[0]
    values = np.array(factor[1], dtype=float).reshape(3, 2, 2)
    assert np.array_equal(values, np.moveaxis(network.get_cpds("c").values, 0, -1))


@pytest.mark.parametrize("name", ["asia", "survey", "cancer", "sachs"])
def test_bayesian_networks_that_pgmpy_wrote_as_uai_are_read(name, tmp_path):
    """pgmpy writes values with the child first, and parents in the order of the scope reversed."""
    network = bnlearn_network(name)
    UAIWriter(network).write(str(tmp_path / "a.uai"))
    read = load_network(tmp_path / "a.uai")
    order = [variable for variable, _ in sorted(UAIWriter(network).domain.items(), key=lambda item: item[::-1])]
    number = {variable: f"var_{place}" for place, variable in enumerate(order)}
    for cpd in network.get_cpds():
        found = read.get_cpds(number[cpd.variable])
        turned = found.values.transpose([found.variables.index(number[v]) for v in cpd.variables])
        np.testing.assert_allclose(turned, cpd.values, atol=1e-6)


def test_a_release_is_not_lost_to_a_name_without_an_ending(tmp_path):
    data = dp.PrivateDataset({("a",): [300, 4000]}, dp.Schema({"a": ["x", "y"]}), dp.PrivacyBudget(1.0))
    network = dp.PrivateBayesianNetwork()
    network.add_node("a")
    network.fit(data.measure([("a",)], 1.0))
    with pytest.raises(ValueError, match=r"end the name in \.zip, which keeps the release, or in \.bif"):
        network.save(tmp_path / "name")
    assert not list(tmp_path.iterdir())
    network.save(tmp_path / "name", filetype="bif")
    network.get_cpds("a").values[:] = 0.5
    with pytest.warns(UserWarning, match="no guarantee any more"):
        network.save(tmp_path / "other")  # it has no release, and is BIF as with pgmpy
    assert load_network(tmp_path / "other").get_cpds("a").values.tolist() == [0.5, 0.5]


def test_markov_networks_come_back(tmp_path):
    schema = dp.Schema({"a, b": ["x", "y"], "c": [0, 1, 2], "alone": [True, False]})
    cliques = [("a, b", "c"), ("alone",)]
    tables = {clique: np.arange(1, 1 + schema.cells(clique)).reshape(schema.shape(clique)) * 100 for clique in cliques}
    guarantee = Guarantee.of(1.0, 0.0, None, "add_remove", "laplace", True)
    noisy = dp.NoisyMarginals(schema, tables, dict.fromkeys(cliques, 2.0), guarantee)
    network = dp.PrivateMarkovNetwork([("a, b", "c")])
    network.add_node("alone")
    network.fit(noisy, dp.papers.NaiveMLE())
    for suffix in (".json", ".uai"):
        save_network(network, tmp_path / f"a{suffix}")
        read = load_network(tmp_path / f"a{suffix}")
        assert set(read.nodes()) == set(network.nodes())
        for old, new in zip(network.get_factors(), read.get_factors(), strict=True):
            np.testing.assert_allclose(new.values, old.values, rtol=1e-14 if suffix == ".json" else 0)
            assert new.state_names == old.state_names
    assert load_network(tmp_path / "a.json").guarantee_ == guarantee
    with pytest.raises(ValueError, match=r"save this Markov network as \.json or \.uai"):
        save_network(network, tmp_path / "a.bif")


def test_any_name_comes_back():
    """Texts of three characters, out of those that mean something to a parser and some that do not."""
    texts = ["".join(parts) for parts in itertools.product("/*%,;|(){}[]\"' \t\n<>&a0é", repeat=3)]
    chance = np.random.default_rng(0)
    chance.shuffle(texts)
    states = {f"v{texts[i]}": texts[i + 1 : i + 1 + chance.integers(1, 6)] for i in range(0, 900, 6)}
    states = {name: states[name] for name in {name.lower(): name for name in states}.values()}
    names = list(states)
    network = random_network(states, [(names[i], names[i + 1]) for i in range(0, len(names) - 1, 2)])
    schema = dp.Schema.from_model(network)
    for write, read in (
        (formats.to_bif, formats.from_bif),
        (formats.to_xmlbif, formats.from_xmlbif),
        (formats.to_xdsl, formats.from_xdsl),
        (formats.to_net, formats.from_net),
    ):
        assert probabilities(read(write(network, schema))) == probabilities(network)


def test_names_that_would_become_one_are_refused(tmp_path):
    network = random_network({"Smoke": ["x", "y"], "smoke": ["x", "y"]}, [])
    with pytest.raises(dp.SchemaError, match="'Smoke' and 'smoke'"):
        save_network(network, tmp_path / "a.bif")
    save_network(network, tmp_path / "a.xmlbif")
    network = random_network({"a": [1, "1"]}, [])
    for suffix in READERS:
        with pytest.raises(dp.SchemaError, match="'a': states 1 and '1'"):
            save_network(network, tmp_path / f"b{suffix}")
    network = random_network({"a": ["<5", "x_3C5"]}, [])
    for suffix in (".xdsl", ".net"):
        with pytest.raises(dp.SchemaError, match="'a': states '<5' and 'x_3C5'"):
            save_network(network, tmp_path / f"b{suffix}")
    save_network(network, tmp_path / "b.json")
    assert {path.name for path in tmp_path.iterdir()} == {"a.xmlbif", "b.json"}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp037", "latin-1"])
@pytest.mark.parametrize("suffix", [".xmlbif", ".xdsl"])
def test_xml_entities_are_not_read(suffix, encoding, tmp_path):
    path = tmp_path / f"a{suffix}"
    start = f'<?xml version="1.0" encoding="{encoding}"?>'
    rest = "<!DOCTYPE x [<!ENTITY a 'b'>]><BIF><NETWORK><NAME>&a;</NAME></NETWORK></BIF>"
    path.write_bytes(start.encode("ascii" if encoding == "cp037" else encoding) + rest.encode(encoding))
    with pytest.raises(dp.ReleaseFormatError, match=r"entities|utf-8"):
        load_network(path)


@pytest.mark.parametrize("encoding", ["latin-1", "cp037"])
@pytest.mark.parametrize("suffix", [".xmlbif", ".xdsl"])
def test_xml_is_read_as_utf_8_whatever_it_declares(suffix, encoding, tmp_path):
    network, path = hostile_network(), tmp_path / f"a{suffix}"
    save_network(network, path)
    path.write_bytes(path.read_bytes().replace(b"'utf-8'", f"'{encoding}'".encode(), 1))
    assert encoding.encode() in path.read_bytes()
    assert probabilities(load_network(path)) == probabilities(network)


@pytest.mark.parametrize("start", ["BAYES 1 99999999", "MARKOV 2 9000000 9000000", "BAYES 99999999 2 2"])
def test_more_states_than_a_file_has_numbers_are_refused_at_once(start, tmp_path):
    path = tmp_path / "a.uai"
    path.write_text(f"{start} 1 1 0 2 0.5 0.5")
    tracemalloc.start()
    try:
        with pytest.raises(dp.ReleaseFormatError, match=r"more states|invalid literal"):
            load_network(path)
        assert tracemalloc.get_traced_memory()[1] < 1e7
    finally:
        tracemalloc.stop()


def test_a_note_on_names_that_does_not_fit_is_refused(tmp_path):
    path = tmp_path / "a.bif"
    save_network(random_network({"a b": ["x", "y"]}, []), path)
    path.write_text(path.read_text().replace('"a b"', '"other"'))
    with pytest.raises(dp.ReleaseFormatError, match="note on names"):
        load_network(path)


NAMES = {
    "answer": ["yes, a lot", "no", 'he said "no"', "100 %", "%2C", "line\nbreak\r", "größe ж", "{a|b};"],
    'reason, "why" 50%\n': ["// none", "/* c */", "<a href='x'>&amp;</a>", " ", ""],
}


@pytest.mark.parametrize(
    ("name", "filetype", "start"),
    [
        ("a", None, b"// "),
        ("a", "json", b"{"),
        ("a.v2", "xmlbif", b"<"),
        ("a.xml", None, b"<"),
        ("a.BIF", "bif", b"// "),
    ],
)
def test_names_and_filetypes_say_the_format(name, filetype, start, tmp_path):
    network = dp.PrivateBayesianNetwork.of(random_network(NAMES, [tuple(NAMES)]))
    network.save(tmp_path / name, filetype=filetype)
    assert (tmp_path / name).read_bytes().startswith(start)
    read = dp.PrivateBayesianNetwork.load(str(tmp_path / name), filetype=filetype)
    assert probabilities(read) == probabilities(network)
    assert type(read) is dp.PrivateBayesianNetwork
    with pytest.raises(ValueError, match="unknown format"):
        load_network(tmp_path / "a.pkl")
    with pytest.raises(FileNotFoundError):
        load_network(tmp_path / "none.bif")


ENTITIES = '<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "b">]><BIF><NETWORK><NAME>&a;</NAME></NETWORK></BIF>'


@pytest.mark.parametrize("suffix", BAYESIAN)
@pytest.mark.parametrize("content", ["nonsense", "", "<BIF>", "{}", "// pgmpy_dp:schema = {}", ENTITIES])
def test_what_is_no_network_is_refused_with_the_way_out(suffix, content, tmp_path):
    path = tmp_path / f"a{suffix}"
    path.write_text(content)
    for load in (dp.PrivateBayesianNetwork.load, dp.PrivateMarkovNetwork.load, load_network):
        with pytest.raises(dp.ReleaseFormatError) as refused:
            load(path)
        assert str(refused.value).startswith(f"{path}: not a sound {suffix} file (")
        assert "Save the network anew" in str(refused.value)
    if (suffix in (".xmlbif", ".xdsl")) and content == ENTITIES:
        assert "write what they stand for instead" in str(refused.value)


def test_the_other_kind_of_network_is_refused_by_name(tmp_path):
    network = dp.PrivateBayesianNetwork.of(random_network({"a": ["x", "y"]}, []))
    network.save(tmp_path / "a.uai")
    with pytest.raises(dp.ReleaseFormatError, match=r"a\.uai: it holds a DiscreteBayesianNetwork: pgmpy_dp\.load"):
        dp.PrivateMarkovNetwork.load(tmp_path / "a.uai")
    dp.PrivateMarkovNetwork.of(network.to_markov_model()).save(tmp_path / "b.json")
    with pytest.raises(dp.ReleaseFormatError, match=r"b\.json: it holds a DiscreteMarkovNetwork"):
        dp.PrivateBayesianNetwork.load(tmp_path / "b.json")


def test_json_keeps_the_guarantee_of_either_kind(tmp_path):
    guarantee = Guarantee.of(1.0, 0.0, None, "add_remove", "laplace", True)
    network = dp.PrivateBayesianNetwork.of(random_network({"a": ["x", "y"]}, []))
    for made in (network, dp.PrivateMarkovNetwork.of(network.to_markov_model())):
        made.save(tmp_path / "none.json")
        assert not hasattr(load_network(tmp_path / "none.json"), "guarantee_")
        save_network(made, tmp_path / "given.json", guarantee)
        made.guarantee_ = guarantee
        made.save(tmp_path / "own.json")
        assert (tmp_path / "given.json").read_bytes() == (tmp_path / "own.json").read_bytes()
        assert type(made).load(tmp_path / "own.json").guarantee_ == guarantee


@pytest.mark.parametrize("suffix", BAYESIAN)
def test_probabilities_that_were_rounded_stay_as_they_are(suffix, tmp_path):
    """pgmpy takes sums between 0.99 and 1.01."""
    network = random_network({"a": ["x", "y", "z"]}, [])
    network.get_cpds("a").values = np.array([0.333, 0.333, 0.333])
    save_network(network, tmp_path / f"a{suffix}")
    assert load_network(tmp_path / f"a{suffix}").get_cpds("a").values.tolist() == [0.333, 0.333, 0.333]
    network.get_cpds("a").values = np.array([0.3, 0.3, 0.3])
    with pytest.raises(ValueError, match="not equal to 1"):
        save_network(network, tmp_path / f"b{suffix}")
    assert not list(tmp_path.glob("b*"))


def test_tables_of_the_same_variables_are_multiplied(tmp_path):
    """UAI may have several; here a network has one factor for them."""
    (tmp_path / "a.uai").write_text("MARKOV 2 2 3 3 2 0 1 2 1 0 1 0 6 1 2 3 4 5 6 6 1 2 3 4 5 6 2 1 10")
    network = load_network(tmp_path / "a.uai")
    first, second = network.get_factors()
    assert (first.variables, second.variables) == (["var_0", "var_1"], ["var_0"])
    assert first.values.tolist() == [[1, 6, 15], [8, 20, 36]]
    twice = DiscreteMarkovNetwork(network.edges())
    twice.add_factors(first, second, second)
    with pytest.raises(ValueError, match="multiply them first"):
        save_network(twice, tmp_path / "b.json")


def test_a_copy_has_the_order_of_the_nodes():
    network = random_network({"c": ["x", "y"], "b": ["x", "y"], "a": ["x", "y"]}, [("a", "b"), ("b", "c")])
    for made in (dp.PrivateBayesianNetwork.of(network), dp.PrivateMarkovNetwork.of(network.to_markov_model())):
        assert list(made.nodes()) == list(made.copy().nodes()) == ["c", "b", "a"]
