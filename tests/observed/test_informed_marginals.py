"""Tables that are published elsewhere join a release: read by names and states, at no cost, and kept in files."""

import pickle

import numpy as np
import pandas as pd
import pytest

import pgmpy_dp as dp
from pgmpy_dp.observed.reading import observe
from pgmpy_dp.release import Release

SCHEMA = dp.Schema({"sex": ["f", "m"], "age": ["young", "mid", "old"], "job": ["a", "b"]})
COUNTS = np.array([[30.0, 20.0, 10.0], [15.0, 20.0, 5.0]])
PAIR = ("sex", "age")
FRAME = pd.DataFrame(COUNTS, pd.Index(["f", "m"], name="sex"), pd.Index(["young", "mid", "old"], name="age"))


def noisy(seed=0, cliques=((("sex", "job")),), epsilon=1.0, neighbours="add_remove"):
    generator = np.random.default_rng(seed)
    records = pd.DataFrame({v: generator.choice(s, 4000) for v, s in SCHEMA.state_names.items()})
    data = dp.PrivateDataset(
        records, SCHEMA, dp.PrivacyBudget(5.0), neighbours=neighbours, noise=dp.SimulatedNoise(seed)
    )
    return data.measure(list(cliques), epsilon)


FORMS = {
    "array": COUNTS,
    "list": COUNTS.tolist(),
    "cross table": FRAME,
    "transposed, reordered": FRAME.T.iloc[::-1, ::-1],
    "series": FRAME.stack().sample(frac=1.0, random_state=0),
    "shares": FRAME / 100,
    "exact": dp.PublicTable(FRAME.T),
    "errors": dp.PublicTable(COUNTS, FRAME.T * 0),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_a_table_is_read_alike_and_scaled_to_the_records(form):
    release = noisy()
    informed = dp.InformedMarginals(release, {PAIR: FORMS[form]})
    assert informed.tables[PAIR] == pytest.approx(COUNTS * release.total / 100)
    assert (informed.guarantee, informed.total, informed.public_total) == (release.guarantee, release.total, None)
    assert informed.variables == ("sex", "age", "job")


@pytest.mark.parametrize(
    ("public", "named"),
    [
        ({("sex", "wage"): COUNTS}, "wage"),
        ({PAIR: COUNTS.T}, "shape"),
        ({PAIR: -FRAME}, "negative"),
        ({PAIR: FRAME * np.nan}, "not finite"),
        ({PAIR: FRAME * 0}, "positive sum"),
        ({PAIR: FRAME.rename(index={"f": "F"})}, "'sex' has no state 'F'"),
        ({PAIR: FRAME.iloc[:, :2]}, "no number for state 'old' of variable 'age'"),
        ({PAIR: FRAME.stack().iloc[1:]}, "combinations of states are missing"),
        ({PAIR: FRAME.rename_axis(index="gender")}, "'gender'"),
        ({PAIR: pd.concat([FRAME, FRAME])}, "twice"),
        ({PAIR: FRAME, ("age", "sex"): FRAME}, "repeats clique"),
        ({PAIR: dp.PublicTable(FRAME, -1.0)}, "standard errors"),
        ({PAIR: FRAME.astype(object).where(FRAME > 5, "few")}, "numbers are needed"),
    ],
)
def test_tables_that_do_not_fit_are_refused_in_a_line_that_says_why(public, named):
    with pytest.raises(ValueError, match=named) as refused:
        dp.InformedMarginals(noisy(), public)
    assert "\n" not in str(refused.value)


def test_tables_of_one_variable_need_no_names():
    series = pd.Series([60, 40], ["f", "m"])
    assert dp.InformedMarginals(noisy(), {"sex": series}).public["sex",].table.tolist() == [60, 40]


def test_a_table_that_was_measured_too_is_averaged_by_precision():
    release = noisy(cliques=[("age", "sex")])
    deviation = release.variances["age", "sex"] ** 0.5
    public = dp.PublicTable(COUNTS, deviation * COUNTS.sum() / release.total)  # as noisy as the release
    informed = dp.InformedMarginals(release, {PAIR: public})
    mean = (release.tables["age", "sex"] + COUNTS.T * release.total / 100) / 2
    assert informed.cliques == (("age", "sex"),)
    assert informed.tables["age", "sex"] == pytest.approx(mean)
    assert informed.variances["age", "sex"] == pytest.approx(deviation**2 / 2)


def test_standard_errors_are_those_of_their_own_cells():
    release = noisy()
    errors = np.array([[8.0, 4.0, 2.0], [4.0, 4.0, 4.0]])
    informed = dp.InformedMarginals(release, {PAIR: dp.PublicTable(COUNTS, errors)})
    seen = observe(informed, ["age"])
    assert seen.cliques == (("age",),)
    assert seen.noise.variance == pytest.approx((errors**2).sum(axis=0) * (release.total / 100) ** 2)


@pytest.mark.parametrize("neighbours", ["add_remove", "replace_one"])
def test_files_and_pickles_keep_public_tables(tmp_path, neighbours):
    informed = dp.InformedMarginals(noisy(neighbours=neighbours), {PAIR: dp.PublicTable(FRAME / 3, 0.1), "job": [1, 2]})
    informed.save(tmp_path / "release.zip")
    loaded = Release.load(tmp_path / "release.zip")
    assert loaded == informed == pickle.loads(pickle.dumps(informed))
    assert loaded.tables[PAIR].tolist() == informed.tables[PAIR].tolist()
    assert loaded != dp.InformedMarginals(informed.noisy, {PAIR: FRAME})


def test_releases_of_the_same_records_join_and_keep_public_tables():
    first, second = noisy(), noisy(1, [("age",)])
    informed = dp.InformedMarginals(first, {PAIR: FRAME})
    for joined in (informed + second, second + informed, informed + dp.InformedMarginals(second, {"job": [1, 2]})):
        assert joined.guarantee.epsilon == 2.0
        assert set(map(frozenset, joined.noisy.cliques)) == {frozenset({"sex", "job"}), frozenset({"age"})}
        assert PAIR in joined.public


WRONG_LAST = [[1.0] * 5 + [last] for last in (-1.0, True, "1")]


@pytest.mark.parametrize("table", [[], [1.0] * 5, *WRONG_LAST, [10**400] * 6, [0.0] * 6, "123456", None])
def test_hostile_tables_in_files_are_refused(tmp_path, table, rewritten):
    path = tmp_path / "release.zip"
    dp.InformedMarginals(noisy(), {PAIR: FRAME}).save(path)
    rewritten(path, lambda contents: None)
    assert isinstance(Release.load(path), dp.InformedMarginals)
    rewritten(path, lambda contents: contents["public"][0].update(table=table))
    with pytest.raises(dp.ReleaseFormatError):
        Release.load(path)
    rewritten(path, lambda contents: contents.update(public=[]))
    with pytest.raises(dp.ReleaseFormatError, match="no public table"):
        Release.load(path)
