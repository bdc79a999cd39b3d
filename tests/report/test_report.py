"""The page about a release: right numbers, honest words, and nothing that a hostile name could do."""

import json
import math
import re
from dataclasses import replace
from html.parser import HTMLParser
from itertools import combinations
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from pgmpy.models import DiscreteBayesianNetwork

import pgmpy_dp as dp
from pgmpy_dp.cli import main
from pgmpy_dp.exports import save_network
from pgmpy_dp.fitting.plans.outlook import Outlook
from pgmpy_dp.inference.mixtures.mixture import Mixture
from pgmpy_dp.privacy.noise import laplace_variance
from pgmpy_dp.release import Guarantee
from pgmpy_dp.report import network_drawing, render_report, write_report
from pgmpy_dp.report.page import _rows, rounded
from pgmpy_dp.report.tables import MarginalNoise, TableFit, detectable_error, table_power

HOSTILE = {
    "<img src=x onerror=alert(1)>": ["<script>alert(1)</script>", "a\u202eb", "", "{{ 7 * 7 }}"],
    'a very "long" name & more of it': ["'\"><svg onload=alert(1)>", "</style><script>alert(1)</script>"],
    "https://example.org/": [0, 1],
}


def made(states, cliques, total=1000, scale=2.0, **promise):
    """A release with even counts."""
    schema = dp.Schema(states)
    tables = {c: np.full(schema.shape(c), total // schema.cells(c)) for c in map(tuple, cliques)}
    sensitivity = 2 if promise.get("neighbours") == "replace_one" else 1
    parts = {"epsilon": sensitivity * len(tables) / scale, "delta": 0.0, "rho": None, "private": True}
    parts |= {"neighbours": "add_remove", "mechanism": "laplace"}
    public = total if sensitivity == 2 else None
    return dp.NoisyMarginals(schema, tables, dict.fromkeys(tables, scale), Guarantee.of(**{**parts, **promise}), public)


def independent(release, promise=None):
    """A mixture of one component, in which all variables are uniform and independent, as if fitted to the release."""
    schema = release.schema
    blocks = [(variable,) for variable in schema.variables]
    tables = [np.full((1, schema.cells(block)), 1 / schema.cells(block)) for block in blocks]
    mixture = Mixture.of(schema.cardinalities(), blocks, [1.0], tables)
    return dp.PrivateMixtureNetwork(schema, mixture, release.total, promise or release.guarantee)


def all_pairs(count):
    """Every pair of some binary variables, uniform and independent, but for the last two, which are equal."""
    names = [f"v{i}" for i in range(count)]
    release = made(dict.fromkeys(names, (0, 1)), [*((v,) for v in names), *combinations(names, 2)], total=1000)
    tables = dict(release.tables) | {(names[-2], names[-1]): np.array([[500, 0], [0, 500]])}
    return dp.NoisyMarginals(release.schema, tables, release.scales, release.guarantee)


@pytest.fixture(scope="module")
def hostile():
    """A release of hostile names, and a Markov network fitted to it."""
    names = list(HOSTILE)
    release = made(HOSTILE, [names[:2], names[1:]], unit="<svg onload=alert(1)>")
    return release, dp.PrivateMarkovNetwork([names[:2], names[1:]]).fit(release)


class Parsed(HTMLParser):
    """Tags, attributes and visible text of a page."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.attributes, self.text = [], [], ""
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        self.text += " " if tag in ("td", "th", "span") else ""

    def handle_data(self, data):
        self.text += data


def words(page):
    return " ".join(Parsed(page).text.split())


def test_names_are_shown_and_do_nothing(hostile):
    release, network = hostile
    for page in (render_report(release), render_report(release, network), render_report(release, independent(release))):
        parsed = Parsed(page)
        assert not {"script", "img", "iframe", "object", "form", "base"} & set(parsed.tags)
        assert not [name for name, _ in parsed.attributes if name.startswith("on") or name in ("src", "xlink:href")]
        assert {value for name, value in parsed.attributes if name == "href"} == {"data:,"}
        assert "url(" not in page.replace("url(#head)", "")
        for variable, states in HOSTILE.items():
            for text in (variable, *map(str, states)):
                assert text.replace("\u202e", r"\u202e") in parsed.text
        assert "\u202e" not in page
        assert "(blank) ''" in parsed.text
        assert render_report(release) == render_report(release)


def test_noise_signal_and_cost_are_those_of_the_release():
    release = made({"a": range(4), "b": range(5), "c": range(3)}, [("a", "b"), ("c",)], total=1200, scale=3.0)
    first, second = Outlook.of_release(release).tables
    assert (first.variables, first.cells, first.mean) == (("a", "b"), 20, pytest.approx(60.0))
    assert first.deviation == pytest.approx(laplace_variance(3.0) ** 0.5)
    assert [first.cost, second.cost] == [0.5, 0.5]
    text = words(render_report(release))
    assert "a, b 20 4.22 60 50.0 % 0 % few cells hidden" in text
    assert "about 1,200" in text


def test_numbers_of_records_are_whole():
    """Two tables of each part, with different sums and noise, make its number of records a fraction."""
    schema, parts = dp.Schema({"a": range(4), "b": range(5)}), {}
    for place, more in (("north", 40), ("south", 70)):
        tables = {("a",): np.full(4, 100 + more), ("a", "b"): np.full((4, 5), 20)}
        parts[place] = dp.NoisyMarginals(schema, tables, dict.fromkeys(tables, 2.0), Guarantee.of(1.0, name=place))
    union = dp.union(parts)
    assert all(release.total % 1 for release in (union, parts["north"]))
    assert "about 533estimated" in words(render_report(parts["north"]))
    text = words(render_report(union))
    for stated in ("about 1,167estimated", "north, about 533 records:", "south, about 633 records:"):
        assert stated in text


@pytest.mark.parametrize(("total", "level"), [(100_000, "clear"), (300, "visible"), (20, "drowned")])
def test_tables_that_drown_are_named(tmp_path, total, level):
    release = made({"a": range(4), "b": range(5)}, [("a", "b")], total=total)
    assert Outlook.of_release(release).tables[0].level == level
    with pytest.raises(ValueError, match=r"r\.pdf: pages are written to \.html and \.htm files"):
        write_report(release, tmp_path / "r.pdf")
    drowned = write_report(release, tmp_path / "r.html")
    assert drowned == ((("a", "b"),) if level == "drowned" else ())
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert ("Where noise hides most cells" in page) == (level == "drowned")


def test_a_table_whose_records_are_in_few_cells_is_hidden_by_its_noise():
    release = made({"a": range(20), "b": range(20)}, [("a", "b")], total=40_000)
    counts = np.zeros((20, 20), dtype=np.int64)
    counts[:2, :2] = 10_000
    uneven = replace(release, tables={("a", "b"): counts})
    assert Outlook.of_release(uneven).tables[0].level == "clear"  # for records that are spread evenly
    assert "a, b 400 2.8 100 100.0 % 99 % most cells hidden" in words(render_report(uneven))


def test_errors_beyond_the_whole_table_are_written_as_such():
    noisy = made({"a": [0, 1], "b": [0, 1]}, [("a",), ("b",), ("a", "b")], total=100, scale=300.0)
    text = words(render_report(noisy, independent(noisy)))
    assert "a, b 0.000 % over 100 %" in text
    assert "(error 0.000 %, noise over 100 %)" in text
    assert "Over 100 %: more than the table itself" in text


def test_the_promise_is_told_as_it_is():
    pure = words(render_report(made({"a": [0, 1]}, [("a",)], scale=1.0)))
    assert (
        "is among the data or not changes how likely any outcome of the release is by a factor of at most eε = 2.72."
        in pure
    )
    assert "at most 73.1 % sure" in pure
    assert "a person with k rows is protected k times less" in pure
    replaced = words(render_report(made({"a": [0, 1]}, [("a",)], scale=4.0, neighbours="replace_one", unit="patient")))
    assert "that patient says one thing or another" in replaced
    assert "protected k times less" not in replaced
    assert "public" in replaced
    gauss = made({"a": [0, 1]}, [("a",)], scale=20.0, delta=1e-6, rho=1 / 800, mechanism="gaussian", epsilon=0.3)
    assert "and by δ = 1e-06 on top" in words(render_report(gauss))
    assert "% sure" not in words(render_report(gauss))
    simulated = words(render_report(made({"a": [0, 1]}, [("a",)], private=False)))
    assert "Not private." in simulated
    assert "learns little" not in simulated


def assert_no_edge_passes_a_box(drawn):
    """Edges run from box to box by cubic curves with vertical ends, and beside boxes on vertical lines."""
    for line in drawn.lines:
        (name, other) = re.split(" to | and ", line.label)
        numbers = [float(text) for text in re.findall(r"-?[0-9.]+", line.path)]
        for x, y in zip(numbers[::2], numbers[1::2], strict=True):
            for box in drawn.boxes:
                inside = box.x < x < box.x + network_drawing.WIDTH and box.y < y < box.y + network_drawing.HEIGHT
                assert not inside or box.name in (name, other), (line.label, box.name)


def test_drawings_keep_boxes_apart_and_point_downwards(bnlearn):
    for graph in (
        nx.DiGraph(bnlearn("alarm").edges()),
        nx.Graph(bnlearn("child").edges()),
        nx.star_graph(list("abcdefghij")),
        nx.DiGraph([("disease", f"symptom {i}") for i in range(40)]),
        nx.DiGraph([(f"root {(i * j) % 6}", f"child {i}") for i in range(30) for j in (1, 5)]),
        nx.DiGraph([("a", "b"), ("b", "c"), ("c", "d"), ("x", "y")]),  # parts that once drifted apart
        nx.Graph({f"alone {i}": [] for i in range(20)}),
    ):
        drawn = network_drawing.draw(graph)
        assert drawn.width < 1.4 * network_drawing.MAX_ACROSS * (network_drawing.WIDTH + network_drawing.GAP_X)
        for one, other in combinations(drawn.boxes, 2):
            apart = abs(one.x - other.x) >= network_drawing.WIDTH or abs(one.y - other.y) >= network_drawing.HEIGHT
            assert apart, (one, other)
        for box in drawn.boxes:
            assert 0 <= box.x <= drawn.width - network_drawing.WIDTH
            assert 0 <= box.y <= drawn.height - network_drawing.HEIGHT
        place = {box.name: box.y for box in drawn.boxes}
        assert_no_edge_passes_a_box(drawn)
        assert not graph.is_directed() or all(place[a] < place[b] for a, b in graph.edges())
    many = {f"v{i}": [0, 1] for i in range(network_drawing.MAX_NODES + 1)}
    pages = [render_report(made(dict(list(many.items())[:n]), [(v,) for v in list(many)[:n]])) for n in (3, len(many))]
    assert ["<svg role=" in page for page in pages] == [True, False]


def test_graphs_without_directions_are_drawn_from_the_middle_outwards():
    away = network_drawing._oriented(nx.disjoint_union(nx.star_graph(3), nx.path_graph(3)))
    assert set(away.edges()) == {(0, 1), (0, 2), (0, 3), (5, 4), (5, 6)}


def test_units_are_told_as_what_they_are():
    rows = words(render_report(made({"a": [0, 1]}, [("a",)], scale=6.0, epsilon=0.5, unit="person_id", max_rows=3)))
    for said in ("with all its rows, added or removed", "At most 3 of them are counted", "share of the rows"):
        assert said in rows
    assert "Rows counted" in rows
    schema = dp.Schema({"a": [0, 1]})
    promise = Guarantee.of(0.5, 0.0, None, "replace_one", "laplace", True, "person_id", {}, 1.0, None)
    noisy = dp.NoisyMarginals(schema, {("a",): np.array([10.5, 20.25])}, {("a",): 4.0}, promise, 31)
    for said in ("They share a weight of 1", "with all its rows, replaced by another", "Units counted", "31"):
        assert said in words(render_report(noisy))


def test_a_network_is_set_beside_the_release():
    states = {"a": ["x", "y"], "b": ["u", "v"]}
    release = made(states, [("a", "b")])
    network = DiscreteBayesianNetwork([("a", "b")]).fit(release, estimator=dp.PrivateMLE())
    text = words(render_report(release, network))
    assert "x 50.0 % 50.0 %" in text
    assert "fitted network" in text
    with pytest.raises(dp.SchemaError, match="'a' has other states in the network than in the release"):
        render_report(made({**states, "a": ["x", "z"]}, [("a", "b")]), network)
    with pytest.raises(dp.SchemaError, match="'b'"):
        render_report(made({"a": ["x", "y"]}, [("a",)]), network)


@pytest.mark.parametrize(("apart", "level"), [(0.028, "clear"), (0.031, "contradicted")])
def test_a_fit_is_contradicted_beyond_five_standard_deviations_of_noise_and_sampling(apart, level):
    """Noise of 0.003 and sampling of 0.005, so that both together are 0.0058."""
    tables = {("a",): np.array([5000, 5000])}
    release = dp.NoisyMarginals(dp.Schema({"a": ["x", "y"]}), tables, {("a",): 30.0}, Guarantee.of(1.0))
    marginal = MarginalNoise("a", np.array([0.5, 0.5]), 0.003)
    assert _rows(release, marginal, np.array([0.5 - apart, 0.5 + apart]))["level"] == level


def test_tables_that_a_mixture_does_not_meet_come_first():
    """Two equal fair coins, taken to be independent: half of the records would have to move. All else is exact."""
    release = all_pairs(4)
    page = render_report(release, independent(release))
    text = words(page)
    assert "It is within the noise of 9 of 10 tables, far beyond that of 1." in text
    assert "v2, v3 50.0 % 0.4 %" in text
    assert "v2, v3: far beyond the noise (error 50.0 %, noise 0.4 %)" in text
    assert text.index("far beyond the noise v0 ") < text.index("within the noise v1 ")
    assert page.count('class="square drowned"') == 1 + 2 + 1  # keys of both maps, and half of the cells
    assert "v0: within the noise (error 0.000 %, noise 0.2 %)" in text
    assert "0 50.0 % 50.0 %" in text  # marginals of the model beside those measured
    with pytest.raises(ValueError, match="another release"):
        render_report(release, independent(release, Guarantee.of(9.0)))
    (cost,) = release.guarantee.costs
    paid, other = (Guarantee(frozenset({replace(cost, id=name, holder="a ledger")})) for name in ("one", "other"))
    with pytest.raises(ValueError, match="another release"):  # of the same losses, which were paid for apart
        render_report(replace(release, guarantee=paid), independent(release, other))


def test_many_pairs_are_a_map_and_a_short_list():
    page = render_report(all_pairs(9))
    assert "Drawing of the network" not in page
    assert page.count('<rect class="square clear" x="1"') == 1  # the key
    assert page.count('<rect class="square clear"') == 9 * 10 // 2  # the key, and all but the last pair
    costs = page[page.index('<h2 id="cost"') :].split("</section>")[0]
    first, folded = costs.split("<summary>The other 35 tables</summary>")
    assert (first.count('<th scope="row">'), folded.count('<th scope="row">')) == (10, 35)
    few = render_report(all_pairs(4))
    assert "Drawing of the network" in few
    assert "<details>" not in few


def test_a_mixture_from_the_command_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    release = all_pairs(4)
    release.save("pairs.zip")
    independent(release).save("mixture.json")
    call = ["report", "pairs.zip", "--model", "mixture.json", "--out", "r.html", "--force"]
    assert json.loads(CliRunner().invoke(main, [*call, "--json"]).stdout)["not_met"] == [["v2", "v3"]]
    assert "beyond the noise of 1 of 10 tables" in CliRunner().invoke(main, call).output
    checked = CliRunner().invoke(main, ["check", "pairs.zip", "--model", "mixture.json"]).output
    assert "the network fails, p < 1e-06" in checked
    assert "v2 = " in checked
    assert "In tables within their noise, an error (total variation) of 0." in Path("r.html").read_text()
    refused = CliRunner().invoke(main, ["report", "mixture.json", "--out", "r.html", "--force"])
    assert refused.exit_code == 1
    assert "report RELEASE --model mixture.json" in refused.output


def test_from_the_command_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    release = made({"a": ["x", "y"], "b": range(40)}, [("a", "b"), ("a",)], total=90)
    release.save("r.zip")
    save_network(DiscreteBayesianNetwork([("a", "b")]).fit(release, estimator=dp.PrivateMLE()), "n.json")
    call = ["report", "r.zip", "--model", "n.json", "--out", "r.html", "--force"]
    result = CliRunner().invoke(main, [*call, "--json"])
    assert json.loads(result.stdout) == {"file": "r.html", "mostly_hidden": [["a", "b"]]}
    assert "Noise hides most cells of 1 of 2 tables" in CliRunner().invoke(main, call).output
    assert "10 more states</summary>" in (tmp_path / "r.html").read_text(encoding="utf-8")


def test_in_a_browser(browser, hostile, tmp_path):
    release, network = hostile
    write_report(release, tmp_path / "r.html", network)
    page = (tmp_path / "r.html").as_uri()
    browser.get_log("performance")
    browser.get(page)

    events = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    asked = {e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"}
    assert page in asked
    assert not [url for url in asked if url != page and not url.startswith(("data:", "chrome:"))]
    assert browser.get_log("browser") == []  # errors, warnings and what the page's policy had to forbid

    assert browser.title == "Privacy report"
    assert browser.execute_script("return document.querySelectorAll('.card').length") == 3
    boxes = "return [...document.querySelectorAll('.network rect')].map(r => r.getBoundingClientRect().width)"
    assert all(width > 100 for width in browser.execute_script(boxes))
    assert len(browser.execute_script(boxes)) == 3
    for width in (1000, 400):
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    colours = set()
    for scheme in ("light", "dark"):
        browser.execute_cdp_cmd(
            "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        )
        style = "const s = getComputedStyle(document.body); return [s.color, s.backgroundColor]"
        colours.add(tuple(browser.execute_script(style)))
    assert len(colours) == 2
    assert len(browser.execute_cdp_cmd("Page.printToPDF", {})["data"]) > 10_000


def test_many_pairs_in_a_browser(browser, tmp_path):
    release = all_pairs(25)
    write_report(release, tmp_path / "r.html", independent(release))
    browser.get_log("browser")
    browser.get((tmp_path / "r.html").as_uri())
    assert browser.get_log("browser") == []
    assert browser.execute_script("return document.querySelectorAll('.map').length") == 2
    for width in (1000, 400):
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    names = "return [...document.querySelectorAll('.tables tbody th')].map(n => n.getBoundingClientRect().width)"
    assert all(width >= 100 for width in browser.execute_script(names) if width)  # not letter below letter
    folded = "return [...document.querySelectorAll('details')].map(d => d.offsetHeight)"
    assert all(height < 60 for height in browser.execute_script(folded))  # 315 rows each


@pytest.mark.parametrize(("value", "text"), [(1234.56, "1,235"), (4.2e-5, "4.2e-05"), (4.2e16, "4.2e+16")])
def test_numbers_have_four_digits_and_exponents_where_they_are_small_or_large(value, text):
    assert (rounded(value), rounded(-value), rounded(0.0)) == (text, f"-{text}", "0")


def test_titles_digits_and_states_follow_the_release():
    """A state is clear where noise is below a tenth of what it holds itself; digits end where the noise begins."""
    states = {"common": ["most", "few", "none"], "wide": list(range(40))}
    release = made(states, [("common",), ("wide",)], total=12_000, scale=10.0)
    tables = dict(release.tables) | {("common",): np.array([11_900, 90, 10])}
    page = render_report(replace(release, tables=tables), title="A <survey>", date="2026-11-22")
    assert "<title>A &lt;survey&gt;</title>" in page
    assert "2026-11-22" in page
    marginals = page[page.index('<h2 id="marginals"') :]
    shares = re.findall(r'<td class="n">([\d.]+) %( [*†])?</td>', marginals)
    assert shares[:3] == [("99.2", ""), ("0.8", " *"), ("0.1", " †")]
    assert ">39</bdi>" in page  # all states, on demand
    assert "10 more states</summary>" in page
    assert "Privacy report" in render_report(release)


def test_a_variable_is_called_the_same_in_its_box_and_on_its_card():
    release = made({"a": ["most", "few"], "b": [0, 1]}, [("a",), ("b",)], total=1000, scale=10.0)
    tables = dict(release.tables) | {("a",): np.array([980, 20])}
    page = render_report(replace(release, tables=tables))
    assert re.findall(r'<title>([ab]: [a-z ]+)</title>\n<rect class="box (\w+)"', page) == [
        ("a: noise visible", "visible"),
        ("b: clear", "clear"),
    ]
    cards = page[page.index('<h2 id="marginals"') :]
    assert re.findall(r'<span class="badge \w+">([a-z ]+)</span>', cards) == ["noise visible", "clear"]


def test_shortened_names_stay_different():
    alike = ["x" * 30 + "y" + "z" * 20, "x" * 29 + "yy" + "z" * 20]
    names = [*(f"a_long_common_beginning_{i}" for i in range(12)), *alike]
    assert len(set(network_drawing.shortened(names).values())) == len(names)
    assert max(map(len, network_drawing.shortened(names).values())) <= 17


@pytest.mark.parametrize("cells", [4, 30])
@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
def test_an_error_of_a_mixture_of_the_size_that_is_told_is_found_in_four_of_five_tables(mechanism, cells):
    """Of 20,000 tables of noise, the same error in all cells: normal approximation puts the share within .07 of .8."""
    generator, deviation, total = np.random.default_rng(0), 7.0, 1000.0
    law = {"laplace": lambda size: generator.laplace(scale=deviation / math.sqrt(2), size=size)}
    drawn = law.get(mechanism, lambda size: generator.normal(scale=deviation, size=size))((20_000, cells))
    noise = cells * deviation * math.sqrt(2 / math.pi) / (2 * total)
    moved = 2 * total * detectable_error(noise, cells, 3.0 if mechanism == "gaussian" else 6.0) / cells
    for part, minimum, maximum in ((1.0, 0.73, 0.87), (0.5, 0.0, 0.4)):
        squares = ((drawn + part * moved * (-1.0) ** np.arange(cells)) ** 2).sum(axis=1) / deviation**2
        assert minimum <= ((squares - cells) / math.sqrt(2 * cells) >= 3.0).mean() <= maximum


def test_what_a_mixtures_tables_could_have_shown_is_told():
    def fits(*found):
        return [TableFit(("v",), 0.0, 0.0, excess, effect) for excess, effect in found]

    assert table_power(fits((0.0, 0.123), (1.0, 0.4), (2.0, 1.2), (5.0, 0.01))) == (
        "In tables within their noise, an error (total variation) of 0.12 to 0.4 would have been found with 80 % "
        "probability; in 1 of these 3 tables the noise hides any error."
    )
    assert table_power(fits((0.0, 1.5))) == "In all tables within their noise, the noise would have hidden any error."
    assert table_power(fits((4.0, 0.1))) == ""


def test_mean_and_quantiles_of_binned_numbers_stand_beside_the_bars(tmp_path):
    schema = dp.Schema({"pay": dp.Bins([0, 10, 20, 40, 1000]), "smoke": ["yes", "no"]})
    pay = np.random.default_rng(0).exponential(15, 5000)
    records = pd.DataFrame({"pay": pay, "smoke": ["yes", "no"] * 2500})
    data = dp.PrivateDataset(records, schema, dp.PrivacyBudget(1.0), noise=dp.SimulatedNoise(0))
    write_report(data.measure([("pay", "smoke")], 1.0), tmp_path / "report.html")
    found = re.search(r"Mean about ([\d.]+), median ([\d.]+)", (tmp_path / "report.html").read_text())
    assert float(found[1]) == pytest.approx(pay.mean(), rel=0.1)
    assert float(found[2]) == pytest.approx(np.median(pay), rel=0.1)
