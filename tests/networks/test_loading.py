"""A network's file may carry its releases: then nothing else is needed, and nothing is lost."""

import io
import json
import zipfile
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from pandas.testing import assert_frame_equal

import pgmpy_dp as dp
from pgmpy_dp.errors import ReleaseFormatError
from pgmpy_dp.networks import load_network
from pgmpy_dp.privacy.cost import Protects, Pure, Zcdp
from pgmpy_dp.privacy.guarantee import Guarantee
from pgmpy_dp.release.carrying import write_carrying
from pgmpy_dp.report import render_report

STATES = {"a": ["u", "v"], "b": [0, 1, 2], "c": dp.Bins([0, 1, 5, 9]), "d": ["x", "y"]}
RULES = [dp.Forbidden({"a": ["u"], "d": ["y"]})]
EDGES = [("b", "a"), ("b", "c"), ("a", "d")]


@pytest.fixture(scope="module")
def data():
    chance = np.random.default_rng(0)
    b = chance.integers(0, 3, 2000)
    a = np.where(chance.random(2000) < 0.2 + 0.3 * b, "u", "v")
    d = np.where((a == "u") | (chance.random(2000) < 0.5), "x", "y")
    records = pd.DataFrame({"a": a, "b": b, "c": b + chance.integers(0, 7, 2000), "d": d})
    schema, budget = dp.Schema(STATES, rules=RULES), dp.PrivacyBudget(5.0, 1e-6)
    return dp.PrivateDataset(records, schema, budget, noise=dp.SimulatedNoise(0))


@pytest.fixture(scope="module")
def noisy(data):
    return data.measure([("a", "b"), ("b", "c"), ("a", "d"), ("c", "d")], epsilon=1.0)


@pytest.fixture(params=["bayesian", "markov", "two releases", "public tables"])
def network(request, data, noisy):
    if request.param == "markov":
        return dp.PrivateMarkovNetwork([*EDGES, ("c", "d")]).fit(noisy)
    if request.param == "two releases":
        second = data.measure_coefficients([("a", "b", "c"), ("a", "d")], epsilon=0.5)
        return dp.PrivateBayesianNetwork(EDGES).fit([noisy, second], estimator=dp.PosteriorMean())
    public = {("a", "c"): np.arange(1.0, 7.0).reshape(2, 3)} if request.param == "public tables" else None
    return dp.PrivateBayesianNetwork(EDGES).fit(noisy, public=public)


@pytest.mark.filterwarnings("ignore:The release contradicts", "ignore:Public tables are contradicted")
def test_what_comes_back_answers_as_before(network, noisy, tmp_path):
    network.save(tmp_path / "m.zip")
    back = type(network).load(tmp_path / "m.zip")
    assert type(load_network(tmp_path / "m.zip")) is type(back) is type(network)
    assert (back.release_, back.guarantee_) == (network.release_, network.guarantee_)
    assert_frame_equal(*(n.query(["a"], {"b": 1}, interval=0.9) for n in (network, back)), rtol=1e-9)
    assert np.isclose(back.check_fit().z2, network.check_fit().z2, rtol=1e-6)
    assert render_report(noisy, back) == render_report(noisy, network)
    back.save(tmp_path / "again.zip")
    assert (tmp_path / "again.zip").read_bytes() == (tmp_path / "m.zip").read_bytes()


def test_a_release_that_a_first_stage_shaped_promises_both(data, tmp_path):
    network = dp.PrivateBayesianNetwork(EDGES).fit(data, dp.PrivateMLE(0.5, allocation="data_dependent"))
    network.save(tmp_path / "m.zip")
    for back in (load_network(tmp_path / "m.zip"), dp.PrivateBayesianNetwork.load(tmp_path / "m.zip")):
        assert back.guarantee_ == network.guarantee_
        assert back.release_ == network.release_
        assert back.guarantee_.epsilon == back.release_.guarantee.epsilon == 0.5


def test_a_network_without_its_release_is_not_written_as_if_it_had_one(noisy, tmp_path):
    network, mixture = dp.PrivateBayesianNetwork(EDGES).fit(noisy), dp.PairwiseMixture(members=1).fit(noisy).network_
    network.remove_edge("a", "d")
    network.remove_node("d")
    bare = dp.PrivateMixtureNetwork(mixture.schema_, mixture.mixture_, mixture.total_, mixture.guarantee_)
    for either in (network, bare):
        with pytest.raises(ValueError, match=r"no release for a \.zip file to carry"):
            either.save(tmp_path / "none.zip")
        assert not (tmp_path / "none.zip").exists()


def promising(path, change):
    """Alter what the model in a file promises."""
    parts = members(path)
    content = json.loads(parts["model.json"])
    content["guarantee"] = change(content["guarantee"])
    path.write_bytes(zipped({**parts, "model.json": json.dumps(content).encode()}))


def other_sums(**changes):
    """The sums alone are altered."""
    return lambda stored: stored | changes


def other_costs(**changes):
    """The cost is altered but for its name, and the sums accordingly."""
    return lambda stored: Guarantee(
        frozenset(replace(cost, **changes) for cost in Guarantee.from_dict(stored).costs)
    ).to_dict()


def no_costs(**changes):
    """As in files of earlier versions, which state sums."""
    return lambda stored: (
        {name: value for name, value in stored.items() if name != "costs"} | {"versions": {}} | changes
    )


OTHER = [{"epsilon": 0.01}, {"epsilon": 0.999}, {"neighbours": "replace_one"}, {"unit": "person"}, {"private": True}]
COSTS = [{"loss": Pure(epsilon)} for epsilon in (0.01, 0.999, 1.5)]
COSTS += [{"protects": protects} for protects in (Protects("replace_one"), Protects("add_remove", "person"))]
COSTS += [{"mechanism": "exponential"}, {"private": True}, {"label": "another question"}, {"id": "another name"}]
COSTS += [{"holder": "another ledger"}]
ELSE = "promises something else than the releases that it carries"
CHANGES = [
    *((other_sums(**sums), "states something else than its costs") for sums in OTHER),
    *((other_sums(**sums), "states something else") for sums in ({"epsilon": 1.5}, {"mechanism": "several"})),
    *((other_costs(**parts), ELSE) for parts in COSTS),
    *((no_costs(**sums), ELSE) for sums in OTHER),
]


@pytest.mark.parametrize(("change", "why"), CHANGES)
def test_a_model_that_promises_less_than_its_releases_or_something_else_is_refused(change, why, noisy, tmp_path):
    path = tmp_path / "m.zip"
    network = dp.PrivateBayesianNetwork(EDGES).fit(noisy)
    network.save(path)
    promising(path, change)
    for load in (load_network, dp.PrivateBayesianNetwork.load):
        with pytest.raises(ReleaseFormatError, match=why):
            load(path)


def test_a_model_may_promise_more_than_its_releases(noisy, tmp_path):
    """Such as what its graph cost. Files of earlier versions count a first stage, and their releases do not."""
    path, graph = tmp_path / "m.zip", Guarantee.of(0.5, 1e-9, private=False)
    network = dp.PrivateBayesianNetwork(EDGES).fit(noisy)
    for change in (
        no_costs(epsilon=1.5, delta=1e-9),
        lambda stored: Guarantee.from_dict(stored).after(graph).to_dict(),
    ):
        network.save(path)
        promising(path, change)
        assert (load_network(path).guarantee_.epsilon, load_network(path).guarantee_.delta) == (1.5, 1e-9)
    assert load_network(path).guarantee_ == noisy.guarantee.after(graph)


def test_mixtures_that_promise_something_else_are_refused(tmp_path):
    path, records = tmp_path / "m.zip", pd.DataFrame({"a": ["u", "v"] * 50, "d": ["x", "x", "y", "y"] * 25})
    mixture = dp.PairwiseMixture(epsilon=1.0, delta=1e-9, state_names={v: STATES[v] for v in "ad"}, members=1)
    network = mixture.fit(records).network_
    rho, delta = network.guarantee_.rho, Fraction(1, 10**9)
    losses = Zcdp(rho, Fraction(1, 2), delta), Zcdp(rho, Fraction(1), delta / 1000), Zcdp(1e-5, Fraction(1), delta)
    other = [{"epsilon": 0.5}, {"delta": 1e-12}, {"neighbours": "replace_one"}]
    for change, why in (
        *((other_sums(**sums), "something else than its costs") for sums in [*other, {"rho": 1e-5}]),
        *((other_costs(loss=loss), "another promise than the network") for loss in losses),
        (other_costs(protects=Protects("replace_one")), "another promise than the network"),
        *((no_costs(**sums), "another promise than the network") for sums in other),
    ):
        network.save(path)
        promising(path, change)
        with pytest.raises(ReleaseFormatError, match=why):
            dp.PrivateMixtureNetwork.load(path)
    promising(path, lambda stored: network.guarantee_.to_dict())
    assert dp.PrivateMixtureNetwork.load(path).guarantee_ == network.guarantee_


def members(path):
    with zipfile.ZipFile(path) as archive:
        return {info.filename: archive.read(info) for info in archive.infolist()}


def zipped(parts, compression=zipfile.ZIP_STORED):
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", compression) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return held.getvalue()


def test_hostile_files_are_refused_by_name(noisy, tmp_path):
    path = tmp_path / "m.zip"
    dp.PrivateBayesianNetwork(EDGES).fit(noisy).save(path)
    good, whole = members(path), path.read_bytes()
    release = good["release-1.zip"]
    other = dp.NoisyMarginals(
        dp.Schema({"a": ["other", "states"]}), {("a",): np.array([1, 2])}, {("a",): 1.0}, noisy.guarantee
    )
    other.save(tmp_path / "other.zip")
    entry = whole.rindex(b"PK\x01\x02")  # of the release, in the directory: said to be a comment on the model's
    comment = whole.rindex(b"PK\x01\x02", 0, entry) + 32
    length = (len(whole) - 22 - entry).to_bytes(2, "little")
    hostile = {
        "a hidden release": whole[:comment] + length + whole[comment + 2 :],
        "compressed": zipped(good, zipfile.ZIP_DEFLATED),
        "a bomb": zipped({**good, "model.json": b" " * 10**7}, zipfile.ZIP_DEFLATED),
        "no release": zipped({"model.json": good["model.json"]}),
        "a gap": zipped({**good, "release-3.zip": release}),
        "another member": zipped({**good, "../../x": b""}),
        "too many": zipped({"model.json": good["model.json"], **{f"release-{i}.zip": release for i in range(1, 30)}}),
        "no model": zipped({"release-1.zip": release, "release-2.zip": release}),
        "truncated": whole[:-30],
        "truncated release": zipped({**good, "release-1.zip": release[:-5]}),
        "a model in a model": zipped({**good, "release-1.zip": whole}),
        "no JSON": zipped({**good, "model.json": b"{"}),
        "NaN": zipped({**good, "model.json": good["model.json"].replace(b'"delta": 0.0', b'"delta": NaN', 1)}),
        "release of other states": zipped({**good, "release-1.zip": (tmp_path / "other.zip").read_bytes()}),
        "text after it": whole + b"x",
    }
    for name, content in hostile.items():
        path.write_bytes(content)
        with pytest.raises(ReleaseFormatError, match=r"m\.zip") as caught:
            load_network(path)
        assert len(str(caught.value)) < 600, name
    chance = np.random.default_rng(0)
    for _ in range(200):  # any byte changed: refused, or without effect
        at = int(chance.integers(len(whole)))
        path.write_bytes(whole[:at] + bytes([whole[at] ^ int(chance.integers(1, 256))]) + whole[at + 1 :])
        with suppress(ReleaseFormatError):
            assert load_network(path).release_ == noisy


def test_more_releases_than_a_file_holds_are_refused_before_anything_is_written(noisy, tmp_path):
    with pytest.raises(ValueError, match="carries 1 to 16 releases"):
        write_carrying(tmp_path / "m.zip", b"{}", (noisy,) * 17)
    assert not (tmp_path / "m.zip").exists()
