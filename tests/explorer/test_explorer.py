"""The page that answers: in a real browser it gives what `query` gives, and hostile names do nothing."""

import json
import math
import os
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from pgmpy.inference import VariableElimination

import pgmpy_dp as dp
from pgmpy_dp.cli import main
from pgmpy_dp.evaluation import bnlearn_network
from pgmpy_dp.explorer import content
from pgmpy_dp.explorer.page import mutual_information
from pgmpy_dp.inference.mixtures.mixture import Mixture
from pgmpy_dp.networks.network import simulate
from pgmpy_dp.release import Guarantee

pytestmark = [pytest.mark.full, pytest.mark.filterwarnings("ignore::UserWarning")]

# Draws are on the page in single precision.
EXACT, BOUNDS = 1e-9, 2e-6


def records_of(count, seed):
    """Records of four variables: a number in bins, one that follows from another, and one that a rule restricts."""
    draw = np.random.default_rng(seed)
    age = draw.integers(0, 80, count)
    married = np.where((age >= 18) & (draw.random(count) < 0.6), "yes", "no")
    health = np.array(["good", "fair", "poor"])[np.clip(draw.poisson(age / 50), 0, 2)]
    return pd.DataFrame(
        {"age": age, "married": married, "health": health, "well": np.where(health == "poor", "no", "yes")}
    )


SCHEMA = dp.Schema(
    {
        "age": dp.Bins([0, 18, 40, 60, 80]),
        "married": ["no", "yes"],
        "health": ["good", "fair", "poor"],
        "well": ["no", "yes"],
    },
    rules=[
        dp.Forbidden({"age": "0_to_18", "married": "yes"}),
        dp.Dependency("health", "well", {"good": "yes", "fair": "yes", "poor": "no"}),
    ],
)


def network(edges, records, schema, cliques=None, seed=1, epsilon=2.0):
    data = dp.PrivateDataset(records, schema, dp.PrivacyBudget(epsilon), noise=dp.SimulatedNoise(seed))
    network = dp.PrivateBayesianNetwork(edges)
    planned, weights = dp.plan_measurements(network, schema)
    network.fit(data.measure(cliques or planned, epsilon, weights=None if cliques else weights))
    network.sample_draws(draws=40)
    return network


def in_groups():
    """A network that is wrong about its nodes of many states, numbers in bins and codes."""
    draw, count = np.random.default_rng(4), 6000
    age = np.clip(draw.normal(60, 25, count), 0, 119).astype(int)
    code = np.minimum((draw.pareto(1.5, count) * 8).astype(int) + 50 * (age > 70), 149)
    records = pd.DataFrame({"age": age, "code": [f"c{own}" for own in code], "sick": np.where(code > 40, "yes", "no")})
    records["tired"] = np.where(draw.random(count) < 0.1 + 0.6 * (age > 70), "yes", "no")
    schema = dp.Schema(
        {
            "tired": ["no", "yes"],
            "code": [f"c{own}" for own in range(150)],
            "sick": ["no", "yes"],
            "age": dp.Bins(range(121)),
        }
    )
    data = dp.PrivateDataset(records, schema, dp.PrivacyBudget(2.0), noise=dp.SimulatedNoise(1))
    network = dp.PrivateBayesianNetwork([("age", "code"), ("code", "tired"), ("tired", "sick")])
    network.fit(data, estimator=dp.AutoMLE(2.0))
    network.sample_draws(draws=40)
    assert set(network.groups_) == {"age", "code"}
    return network


@pytest.fixture(scope="module")
def models():
    asia = bnlearn_network("asia")
    found = {"asia": network(asia.edges(), simulate(asia, 3000, 0), dp.Schema.from_model(asia))}
    edges = [("age", "married"), ("age", "health"), ("health", "well")]
    pairs = [("age", "married"), ("age", "health"), ("health", "well"), ("age", "well"), ("married", "health")]
    found["rules"] = network(edges, records_of(2000, 0), SCHEMA, [*pairs, ("married", "well")])
    far = [*pairs, ("married", "well")]
    found["wrong"] = network([("married", "age"), ("well", "health")], records_of(2000, 0), SCHEMA, far)
    assert found["wrong"].check_fit().fails  # so that answers are corrected
    known = [pair for pair in far if pair != ("age", "well")]
    found["unmeasured"] = network([("married", "age"), ("well", "health")], records_of(2000, 0), SCHEMA, known)
    found["groups"] = in_groups()
    draw, names = np.random.default_rng(2), ["a", "b", "c", "d"]
    grid = pd.DataFrame({name: draw.choice(["x", "y", "z"], 1500, p=[0.5, 0.3, 0.2]) for name in names})
    schema = dp.Schema({name: ["x", "y", "z"] for name in names})
    edges = [("a", "b"), ("b", "d"), ("d", "c"), ("c", "a")]
    data = dp.PrivateDataset(grid, schema, dp.PrivacyBudget(1.0), noise=dp.SimulatedNoise(2))
    found["grid"] = dp.PrivateMarkovNetwork(edges).fit(data.measure(edges, 1.0), estimator=dp.CollectiveEM())
    found["grid"].sample_draws(draws=40)
    parts = {}
    for number, (site, count) in enumerate({"north": 2000, "south": 300}.items()):
        data = dp.PrivateDataset(
            records_of(count, number), SCHEMA, dp.PrivacyBudget(1.0), noise=dp.SimulatedNoise(number)
        )
        parts[site] = data.measure(pairs, 1.0)
    partial = dp.PartiallyPooledMarginals.of(dp.union(parts))
    structure = dp.PrivateBayesianNetwork([("age", "married"), ("age", "health"), ("health", "well")])
    found["partial"] = partial.apart(structure).fit(partial)
    found["partial"].sample_draws(draws=40)
    data = dp.PrivateDataset(records_of(2000, 1), SCHEMA, dp.PrivacyBudget(2.0, 1e-6), noise=dp.SimulatedNoise(3))
    estimator = dp.PairwiseMixture(epsilon=2.0, delta=1e-6, state_names=SCHEMA, members=4, components=8)
    found["mixture"] = estimator.fit(data).network_
    found["mixture"].sample_draws(draws=4)
    fit = found["mixture"]._fitted
    vars(fit)["refits"] = replace(fit.refits, missing=0.01)  # as if noise hid dependence
    return found


@pytest.fixture
def opened(browser, tmp_path):
    """Function: a model to what calls a function of JavaScript on its page."""

    def open_page(model, hash=""):
        model.explore(tmp_path / "page.html")
        browser.get("about:blank")
        browser.get_log("browser")
        browser.get((tmp_path / "page.html").as_uri() + hash)
        browser.execute_async_script("const [done] = arguments; explorer.ready.then(() => done(), done)")
        return lambda script, *arguments: browser.execute_script(script, *arguments)

    return open_page


def questions(model, count, seed=0):
    """Random questions whose evidence the model's own records have: the variables asked for, and states of others."""
    draw, schema = np.random.default_rng(seed), model._fitted.schema
    drawn = model.simulate(count, seed=seed)
    for row in drawn.to_dict("records"):
        given = draw.permutation(schema.variables)[: draw.integers(0, min(len(schema.variables), 5))].tolist()
        yield [v for v in schema.variables if v not in given][:6], {v: row[v] for v in given}


def agrees(call, model, count):
    """Compare every question's exact answer, and its bounds for the population and for the records."""
    ways = [{"interval": None}, {"interval": 0.9}, {"interval": 0.9, "target": "records"}]
    asked = [(*question, way) for question in questions(model, count) for way in ways]
    page = [call("return explorer.query(...arguments)", *question) for question in asked]
    for (variables, given, way), found in zip(asked, page, strict=True):
        for variable in variables:
            states = list(model._fitted.schema.states[variable])
            answer = model.query([variable], given, **way)
            if way["interval"] is None:
                expected, columns = answer.values[:, None], ["value"]
            else:
                expected, columns = answer.to_numpy(), list(answer)
            got = np.array([[found[variable][str(state)][column] for column in columns] for state in states])
            near = EXACT if way["interval"] is None else BOUNDS
            if way["interval"] is not None:
                # Draws of whole records, which all bounds contain, may turn over by one.
                turned = 1.0 if "target" in way else 0.1
                near += turned / call("return explorer.model.answered(...arguments).records", given, way)
            assert np.abs(got - expected).max() < near, (given, variable)


def means_agree(call, model, count):
    """Compare the means of numbers: exact, and with bounds for the population and for the records."""
    ways = [{"interval": None}, {"interval": 0.9}, {"interval": 0.9, "target": "records"}]
    binned = set(model.expectation(interval=None).index)
    asked = [([v for v in variables if v in binned], given) for variables, given in questions(model, count, seed=1)]
    asked = [(*question, way) for question in asked if question[0] for way in ways]
    page = [call("return explorer.expectation(...arguments)", *question) for question in asked]
    for (variables, given, way), found in zip(asked, page, strict=True):
        expected = model.expectation(variables, given, **way)
        for variable, row in expected.iterrows():
            got = [found[variable][column] for column in expected]
            assert got == pytest.approx(row.tolist(), rel=EXACT if way["interval"] is None else 1e-5), given


@pytest.mark.parametrize("name", ["rules", "wrong", "unmeasured", "groups", "mixture"])
def test_means_agree_with_python(name, models, opened):
    means_agree(opened(models[name]), models[name], 10)


@pytest.mark.parametrize("name", ["asia", "rules", "wrong", "grid", "partial", "groups", "mixture"])
def test_answers_agree_with_python(name, models, opened):
    agrees(opened(models[name]), models[name], 20)


EDGES = """age marital_status; age education; sex occupation; education occupation; age workclass; occupation workclass
    marital_status relationship; sex relationship; education education_num; education income; marital_status income
    occupation income; sex income; race native_country; sex hours_per_week; occupation hours_per_week
    income capital_gain"""


def large(name):
    """A network of the bnlearn repository, or a network or a mixture of the census records in the folder ADULT."""
    if not name.startswith("adult"):
        known = bnlearn_network(name)
        return network(known.edges(), simulate(known, 20_000, 0), dp.Schema.from_model(known))
    if "ADULT" not in os.environ:
        pytest.skip("ADULT names no folder with adult_train.csv.gz and adult_test.csv.gz")
    sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
    from synthesis import adult

    records, _, schema = adult(Path(os.environ["ADULT"]))
    if name == "adult mixture":
        data = dp.PrivateDataset(records, schema, dp.PrivacyBudget(1.0, 1e-9), noise=dp.SimulatedNoise(1))
        return dp.PairwiseMixture(epsilon=1.0, delta=1e-9, state_names=schema).fit(data).network_
    edges = [tuple(edge.split()) for edge in EDGES.replace("\n", ";").split(";")]
    variables = sorted({variable for edge in edges for variable in edge})
    return network(edges, records[variables], schema.select(variables))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["asia", "alarm", "adult network", "adult mixture", "mixture", "rules", "grid"])
def test_many_answers_agree_with_python(name, models, opened):
    model = models[name] if name in models else large(name)
    page = opened(model)
    agrees(page, model, 200)
    if model._fitted.bins:
        means_agree(page, model, 50)


@pytest.fixture
def page(models, opened):
    return opened(models["rules"])


def card(variable, state):
    """A state's button, by the names that a person reads."""
    return f"document.querySelector('[role=group][aria-label={variable}] [aria-label^=\"{variable}: {state},\"]')"


def test_a_person_asks_and_compares(page, browser, models):
    page(f"{card('health', 'poor')}.click()")
    assert page(f"return {card('health', 'poor')}.ariaPressed") == "true"
    question = page("return document.getElementById('question').textContent")
    assert question.startswith("Given health = poor: about ")
    assert " of 2,0" in question or " of 1,9" in question
    value, lower, upper = 100 * models["rules"].query(["age"], {"health": "poor"}, interval=0.9).loc["60_to_80"]
    outputs = page(f"return {card('age', '60_to_80')}.ariaLabel")
    assert outputs == f"age: 60_to_80, {value:.1f} %, between {lower:.1f} to {upper:.1f} %"
    first = page("return [...document.querySelectorAll('.card h2')].map((head) => head.textContent)")
    assert first[0] == "health"  # what is given comes first, then what differs most
    assert page(f"return {card('well', 'yes')}.ariaDisabled") == "true"
    assert browser.current_url.endswith("#health=poor")

    page("document.getElementById('pin').click()")
    shown = "return [...document.querySelectorAll('#against, #next')].filter((e) => e.offsetParent).map((e) => e.id)"
    assert page(shown) == ["next"]  # which says what to click
    assert page("return document.querySelector('.comparing')") is None  # there is no difference from itself
    page(f"{card('health', 'good')}.click()")
    compared = page("return explorer.compare(['age'], {health: 'good'}, {health: 'poor'}).age['60_to_80']")
    assert page("return document.getElementById('against').textContent").startswith(
        "Compared with health = poor: about"
    )
    assert page(shown) == ["against"]
    outputs = page(f"return {card('age', '60_to_80')}.textContent")
    assert " against " in outputs
    assert f" %−{-100 * compared['value']:.1f} (" in outputs
    assert browser.current_url.endswith("#health=good|health=poor")
    outputs = page("return [...document.querySelectorAll('.card:not(.given) .differs')].map((own) => own.textContent)")
    assert outputs[0] == "differs 100.0 %"  # "well" follows from health

    page("document.getElementById('undo').click()")
    assert page("return document.getElementById('question').textContent") == question
    page("document.getElementById('reset').click()")
    assert page("return document.getElementById('question').textContent").startswith("Nothing given")
    assert browser.get_log("browser") == []


def test_differences_are_those_of_independent_draws(page):
    """Bounds of a difference are about as wide as the two answers' bounds together, in squares."""
    one, other = ({"health": state} for state in ("good", "poor"))
    found = page("return explorer.compare(['age'], ...arguments)", one, other)["age"]
    answers = [page("return explorer.query(['age'], arguments[0])", given)["age"] for given in (one, other)]
    for state, difference in found.items():
        values = [answer[state]["value"] for answer in answers]
        widths = [answer[state]["upper"] - answer[state]["lower"] for answer in answers]
        assert difference["value"] == pytest.approx(values[0] - values[1], abs=0.03)  # other effects are drawn
        assert difference["lower"] <= difference["value"] <= difference["upper"]
        assert 0.5 < (difference["upper"] - difference["lower"]) / np.hypot(*widths) < 1.6


def test_links_files_and_keys(opened, models, browser):
    page = opened(models["rules"], "#health=poor&nobody=x|health=good")
    assert page("return document.getElementById('question').textContent").startswith("Given health = poor")
    assert "left out" in page("return document.getElementById('said').textContent")
    rows = page("return explorer.page.csv()").split("\r\n")
    assert rows[0] == "variable,state,value,lower,upper,difference,difference_lower,difference_upper"
    assert len(rows) == 2 + 4 + 2 + 3 + 2
    page("document.getElementById('unpin').click()")
    line = page("return explorer.page.python()")
    found = eval(line, {"network": models["rules"]})
    assert list(found) == ["age", "married", "well"]
    assert (found["age"]["value"] > 0).any()

    from selenium.webdriver.common.keys import Keys

    active = browser.switch_to.active_element
    active.send_keys("/")
    browser.switch_to.active_element.send_keys("marr")
    visible = "return [...document.querySelectorAll('.card:not([hidden]) h2')].map((head) => head.textContent)"
    assert page(visible) == ["married"]
    page("explorer.page.cards.get(explorer.model.variable('age')).find()")
    browser.switch_to.active_element.send_keys(Keys.ARROW_DOWN)
    browser.switch_to.active_element.send_keys(Keys.ENTER)
    assert "age = 18_to_40" in page("return document.getElementById('question').textContent")
    browser.switch_to.active_element.send_keys(Keys.CONTROL, "z")
    assert "age" not in page("return document.getElementById('question').textContent")


def test_an_impossible_link_shows_the_page_and_says_so(opened, models):
    page = opened(models["rules"], "#health=poor&well=yes")
    assert page("return document.getElementById('question').textContent").startswith("Nothing given")
    assert page("return document.getElementById('said').textContent").startswith("None of the records can have all")
    assert page("return explorer.page.csv()").count("\r\n") == 1 + 4 + 2 + 3 + 2
    assert page("return location.hash") == ""


def test_enter_on_the_drawing_finds_the_card_and_chooses_nothing(page, browser):
    from selenium.webdriver.common.keys import Keys
    from selenium.webdriver.support.wait import WebDriverWait

    page("document.querySelector('#graph').open = true; document.querySelector('#graph a').focus()")
    browser.switch_to.active_element.send_keys(Keys.ENTER)
    WebDriverWait(browser, 5).until(lambda _: page("return document.activeElement.className") == "state")
    assert page("return document.getElementById('question').textContent").startswith("Nothing given")


@pytest.mark.parametrize(("name", "given"), [("rules", {"health": "poor"}), ("groups", {}), ("groups", {"code": "c7"})])
def test_the_most_probable_combination_is_that_of_python(name, given, opened, models):
    page, schema = opened(models[name]), models[name]._fitted.schema
    found = page("return [...explorer.model.engine.mostProbable(explorer.model.given(arguments[0])).found]", given)
    named = {schema.variables[v]: schema.states[schema.variables[v]][s] for v, s in found}
    assert named == {**given, **models[name].map_query(None, given)}


def test_the_most_probable_combination_of_a_mixture_is_that_of_python(models, opened):
    model = models["mixture"]
    page, schema = opened(model), models["mixture"]._fitted.schema
    for _, given in questions(model, 10):
        answer = page("return explorer.model.engine.mostProbable(explorer.model.given(arguments[0])).proven", given)
        found = page("return [...explorer.model.engine.mostProbable(explorer.model.given(arguments[0])).found]", given)
        named = {schema.variables[v]: schema.states[schema.variables[v]][s] for v, s in found}
        assert answer
        assert named == {**given, **model.map_query(None, given)}


def test_what_the_records_are_how_many_there_are_and_what_hides_them(opened):
    draw = np.random.default_rng(0)
    visits, person = draw.poisson(1.5, 3000).clip(0, 5), np.arange(3000) // 2
    rows = pd.DataFrame({"person": person, "visits": visits, "ill": np.where(draw.random(3000) < 0.3, "yes", "no")})
    schema = dp.Schema({"visits": list(range(6)), "ill": ["yes", "no"]})
    for epsilon, notices in ((0.01, 1), (1.0, 0)):
        budget, noise = dp.PrivacyBudget(epsilon), dp.SimulatedNoise(0)
        data = dp.PrivateDataset(rows, schema, budget, unit="person", max_rows=2, noise=noise)
        model = dp.PrivateBayesianNetwork([("ill", "visits")]).fit(data, estimator=dp.AutoMLE(epsilon))
        page = opened(model)
        said = "return document.getElementById(arguments[0]).textContent"
        assert page(said, "question") == f"Nothing given: about {len(model.simulate(seed=0)):,} rows."
        assert page(said, "notices").count("Noise hides much of the release") == notices
        labels = page("return [...document.querySelectorAll('.label')].map((e) => e.textContent)")
        assert "".join(label for label in labels if label.isdigit()) == "012345"  # in order, not by share
    page("document.querySelector('[popovertarget=explanation]').click()")
    before = page(said, "explanation")
    page("explorer.page.choose(...explorer.model.fact('visits', 3))")  # as by the keyboard, which leaves the box open
    assert page(said, "explanation") != before
    assert "these rows" in page(said, "explanation")


def test_it_fits_every_screen(opened, models, browser):
    page = opened(models["rules"], "#health=poor|health=good")
    for width in (1400, 800, 390):
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        assert page("return document.documentElement.scrollWidth") <= width
        texts = "return [...document.querySelectorAll('.value, .bounds')]"
        assert page(f"{texts}.filter((e) => e.scrollWidth > e.clientWidth + 1).map((e) => e.textContent)") == []
    assert len(browser.execute_cdp_cmd("Page.printToPDF", {})["data"]) > 10_000


def test_hostile_names_are_texts(opened, browser):
    long, many = "x" * 10_000, [f"state {number}" for number in range(5000)]
    states = {
        "__proto__": ["constructor", "</script><script>window.hit = 1</script>", "{arrays}"],
        "<img src=x onerror='window.hit = 1'>": ["\u202egnol", " ", "=1+1"],
        long: ["a&b=c|d#", "%"],
        "many": many,
        "formulas": ["-1+1", "-1.5", "@x"],
    }
    schema = dp.Schema(states)
    guarantee = Guarantee.of(1.0, 0.0, None, "add_remove", "laplace", True, unit="<svg onload='window.hit = 1'>")
    tables = [np.full((1, len(own)), 1 / len(own)) for own in states.values()]
    mixture = Mixture.of(schema.cardinalities(), [(name,) for name in states], [1.0], tables)
    model = dp.PrivateMixtureNetwork(schema, mixture, 100, guarantee)
    page = opened(model)
    events = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    asked = [e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"]
    assert all(url.startswith(("file:", "about:", "data:", "chrome:")) for url in asked)
    assert page("return window.hit") is None
    assert browser.get_log("browser") == []
    found = page("return explorer.query(['__proto__'], {[arguments[0]]: '%'})['__proto__']", long)
    assert sum(own["value"] for own in found.values()) == pytest.approx(1.0)
    assert page("return document.querySelectorAll('.state').length") == 3 + 3 + 2 + 5000 + 3
    assert (
        page("return [...document.querySelectorAll('.state')].filter((e) => e.offsetParent).length")
        == 3 + 3 + 2 + 12 + 3
    )
    page("document.querySelector('.short .rest').click()")
    assert page("return [...explorer.page.cards.get(3).list.children].filter((e) => e.offsetParent).length") == 5000
    page("document.querySelector('[aria-label^=\"__proto__: </script>\"]').click()")
    page("document.querySelector('[aria-label^=xxx] .state').click()")
    address = browser.current_url
    assert "__proto__" in address
    assert page("return document.documentElement.scrollWidth <= innerWidth")
    question = page("return document.getElementById('question').textContent")
    browser.get("about:blank")
    browser.get(address)
    browser.execute_async_script("const [done] = arguments; explorer.ready.then(() => done(), done)")
    assert browser.execute_script("return document.getElementById('question').textContent") == question
    table = browser.execute_script("return explorer.page.csv()")
    assert all(text in table for text in ('"\'=1+1"', '"\'-1+1"', '"-1.5"', '"\'@x"'))


def test_a_tree_that_is_too_large_is_refused(monkeypatch, models):
    monkeypatch.setattr("pgmpy_dp.explorer.content._MAX_WORK", 100)
    with pytest.raises(ValueError, match=r"too large for a page.*table cells.*PairwiseMixture"):
        models["asia"].explore()


@pytest.mark.parametrize(("size", "starts"), [(0.2, [0]), (0.3, [0, 1]), (-0.3, [0, 1])])
def test_components_that_effects_of_states_do_not_reach_in_so_many_steps_are_written_whole(size, starts):
    """The interaction of two variables is four sizes to one side, and two to the other."""
    interaction = content._MAX_STEPS * content._STEP * np.outer([2, -1, -1], [-2, 1, 1])
    table = np.exp([np.zeros((3, 3)), size * interaction])
    assert content._table(table, content.Packed(), exactly=True)["starts"] == starts


@pytest.mark.parametrize("name", ["asia", "wrong", "groups"])
def test_a_network_whose_bounds_are_drawn_question_by_question_has_a_page_without(name, monkeypatch, models, opened):
    monkeypatch.setattr("pgmpy_dp.networks.fitted_network.WIDE", 1)
    model = models[name].copy()
    with pytest.warns(UserWarning, match=r"no bounds\. .* question by question"):
        page = opened(model)
    assert "This page has no bounds" in page("return document.body.textContent")
    exact = VariableElimination(model)
    for variables, given in questions(model, 10):
        found = page("return explorer.query(...arguments)", variables, given)
        for variable in variables:
            states = model._fitted.schema.states[variable]
            got = [found[variable][str(state)]["value"] for state in states]
            expected = exact.query([variable], given, show_progress=False)
            own = [expected.get_value(**{variable: state}) for state in states]
            np.testing.assert_allclose(got, own, atol=EXACT)


def test_boxes_of_the_drawing_have_the_names_of_variables(models):
    page = models["rules"].explore().html
    assert all(f"<title>{name}</title>" in page for name in SCHEMA.variables)
    assert "Not private: nothing is promised" in page  # as its noise is simulated


def test_mutual_information_by_hand():
    joint = np.array([[0.5, 0.25], [0.0, 0.25]])
    expected = 0.5 * np.log(0.5 / 0.375) + 0.25 * np.log(0.25 / 0.375) + 0.25 * np.log(0.25 / 0.125)
    assert mutual_information(joint) == pytest.approx(expected)


def test_a_notebook_shows_the_page_in_the_cell(models):
    shown = models["grid"].explore()._repr_html_()
    assert shown.startswith('<iframe srcdoc="&lt;!doctype html&gt;')
    assert "<script" not in shown
    with pytest.raises(ValueError, match=r"\.html"):
        models["grid"].explore("page.txt")


def test_a_model_without_a_release_has_a_page_without_bounds(opened, models):
    plain = dp.PrivateBayesianNetwork.of(models["asia"])
    plain._forget()
    page = opened(plain)
    found = page("return explorer.query(['lung'], {smoke: 'yes'})")
    assert found["lung"]["yes"]["value"] == pytest.approx(plain.query(["lung"], {"smoke": "yes"}).values[0], abs=1e-9)
    assert set(found["lung"]["yes"]) == {"value"}
    assert page("try { explorer.compare(['lung'], {}, {}) } catch (e) { return e.message }").startswith(
        "This page has no"
    )
    assert "No guarantee" in page("return document.getElementById('notices').textContent")


def test_dates_are_read_and_written_in_their_form(opened):
    forms = {"day": "%d.%m.%y", "month": "%b %Y", "time": "%m/%d/%Y %I:%M %p", "digits": "%Y%m%d", "iso": None}
    edges = ["1950-01-01", "2000-01-01", "2024-02-01", "2030-01-01"]
    hours = ["2024-01-31 08:00", "2024-01-31 12:00", "2024-01-31 12:30", "2024-02-01"]
    times = {"clock": dp.TimeBins(hours, format="%d/%m/%y %I:%M %p"), "stamp": dp.TimeBins(hours)}
    schema = dp.Schema({name: dp.DateBins(edges, format=form) for name, form in forms.items()} | times)
    tables = [np.full((1, 3), 1 / 3) for _ in schema.variables]
    mixture = Mixture.of(schema.cardinalities(), [(name,) for name in schema.variables], [1.0], tables)
    page = opened(dp.PrivateMixtureNetwork(schema, mixture, 100, Guarantee.of(1.0)))
    for name, texts in {
        "day": ["31.01.24", "1.2.24", "31.12.49", "01.01.50", "30.02.24", "31/01/24", "x"],
        "month": ["Jan 2024", "feb 2024", "January 2024", "13 2024"],
        "time": ["01/31/2024 08:15 pm", "1/31/2024 13:15 PM", "02/01/2024 12:00 AM"],
        "digits": ["20240131", "2024131", "20240230"],
        "iso": ["2024-01-31", "2024-02-01 10:00"],
        "clock": ["31/01/24 8:00 AM", "31/01/24 12:29 PM", "31/01/24 12:30 pm", "31/1/24 7:59 AM", "31/01/24 13:00 PM"],
        "stamp": ["2024-01-31 08:00", "2024-01-31T12:29:59", "2024-01-31 12:30:00.5", "2024-01-31", "2024-01-31 24:00"],
    }.items():
        for text in texts:
            number, bins = schema.bins[name].number(text), schema.bins[name]
            inside = number is not None and bins.edges[0] <= number < bins.edges[-1]
            place = sum(number >= edge for edge in bins.edges[1:-1]) if inside else None
            asked = "try { return explorer.model.fact(arguments[0], arguments[1])[1] } catch { return null }"
            assert page(asked, name, text) == place, (name, text)
    for name, bins in schema.bins.items():
        number = 19753.2 * 86_400 / bins.unit
        asked = "return explorer.page.cards.get(explorer.model.variable(arguments[0])).shown(arguments[1])"
        assert page(asked, name, number) == bins.written(number)


def test_missing_values_are_evidence_as_records_have_them(opened):
    schema = dp.Schema({"ill": ["no", "yes"]}, missing={"ill": "unknown"}, missing_values={"ill": ["?", ""]})
    mixture = Mixture.of({"ill": 3}, [("ill",)], [1.0], [[[0.2, 0.3, 0.5]]])
    model = dp.PrivateMixtureNetwork(schema, mixture, 100, Guarantee.of(1.0))
    page = opened(model)
    for text, value in {"null": None, "NaN": math.nan, "'?'": "?", "''": "", "'unknown'": "unknown"}.items():
        state = page(f"return explorer.model.fact('ill', {text})[1]")
        assert model.schema_.states["ill"][state] == "unknown"
        assert model.simulate(3, evidence={"ill": value}, seed=0)["ill"].tolist() == ["unknown"] * 3


def test_from_the_command_line(models, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    models["grid"].save("fitted.zip")
    result = CliRunner().invoke(main, ["explore", "fitted.zip", "--out", "page.html", "--title", "A <grid>", "--json"])
    outputs = json.loads(result.stdout)
    assert outputs == {
        "file": "page.html",
        "bytes": (tmp_path / "page.html").stat().st_size,
        "bounds": True,
        "notes": [],
    }
    assert '<h1 dir="auto">A &lt;grid&gt;</h1>' in (tmp_path / "page.html").read_text()
    assert CliRunner().invoke(main, ["explore", "fitted.zip", "--out", "page.txt"]).exit_code == 1
