"""A walk from a raw CSV file, as a spreadsheet of many countries writes it, to synthetic records of the same types."""

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from pgmpy_dp.cli import main

DICTIONARY = """variable,type,states,edges,decimals,missing
admitted,date,,2022-01-01|quarter|2024-01-01,,
left,date,,2022-01-01|quarter|2024-01-01|2024-04-01,,unknown
sex,string,f|m,,,
income,number,,0|500.5|1000|2000|4000|10000,2,unknown
children,integer,0|1|2|3,,,unknown
"""
RULES = "rule,combination\ncomparison,admitted <= left\n"
TABLE = {"sep": ";", "decimal": ","}


def _raw(count=4000):
    generator = np.random.default_rng(0)
    admitted = np.datetime64("2022-01-01") + generator.integers(0, 730, count)
    income = generator.lognormal(7, 0.8, count).round(2).clip(0, 9999)
    frame = pd.DataFrame({"admitted": admitted, "left": admitted + generator.integers(0, 60, count)})
    frame["sex"] = generator.choice(["f", "m"], count)
    frame["income"] = income
    frame["children"] = generator.integers(0, 4, count).astype(float)
    frame["weight"] = np.where(income < 1000, 12.5, 4.25)
    for name in ("left", "income", "children"):
        frame.loc[generator.random(count) < 0.1, name] = None
    return frame


def _run(*words):
    result = CliRunner().invoke(main, list(map(str, words)))
    assert result.exit_code == 0, result.output
    return result.output


def test_from_a_raw_file_to_synthetic_records_that_pandas_reads_alike(tmp_path):
    raw, files = _raw(), {name: tmp_path / name for name in ("dictionary.csv", "rules.csv", "raw.csv")}
    files["dictionary.csv"].write_text(DICTIONARY)
    files["rules.csv"].write_text(RULES)
    raw.to_csv(files["raw.csv"], index=False, **TABLE)
    schema, ledger, out = (tmp_path / name for name in ("schema.json", "ledger.json", "synthetic.csv"))
    model, release = tmp_path / "model.zip", tmp_path / "release.zip"
    form = ("--delimiter", ";", "--decimal", ",", "--rules", files["rules.csv"])
    drafted = _run("schema", files["dictionary.csv"], *form, "--out", schema)
    assert "2022-Q1" in drafted
    assert "admitted and left are drawn within bins so that admitted <= left holds" in drafted
    _run("ledger", "create", ledger, "--epsilon", 4, "--delta", 1e-6)
    spent = ("--schema", schema, "--epsilon", 3, "--delta", 1e-7, "--weights", "weight", "--largest-weight", 12.5)
    assert "records" in _run("synthesize", files["raw.csv"], *spent, "--dry-run", "--records", 2000)
    written = ("--out", out, "--model", model, "--release", release)
    outputs = _run("synthesize", files["raw.csv"], *spent, "--ledger", ledger, *written, "--rows", 5000)
    assert "of survey weight at most 12.5" in outputs
    assert "Sum of all weights: about" in _run("inspect", release)

    read, dated = {}, {**TABLE, "parse_dates": ["admitted", "left"]}
    for name, path in (("raw", files["raw.csv"]), ("synthetic", out)):
        read[name] = pd.read_csv(path, **dated)
    synthetic = read["synthetic"]
    assert synthetic.dtypes.to_dict() == read["raw"].dtypes.to_dict()
    known = synthetic.dropna(subset="left")
    assert (known["admitted"].dt.to_period("Q") <= known["left"].dt.to_period("Q")).all()  # the rule
    assert synthetic["weight"].sum() == pytest.approx(raw["weight"].sum(), rel=0.02)
    for name in ("admitted", "left", "income", "children"):
        assert synthetic[name].isna().mean() == pytest.approx(raw[name].isna().mean(), abs=0.05)
    known = raw["income"].notna()
    weighted = np.average(raw["income"][known], weights=raw["weight"][known])
    assert abs(weighted - raw["income"].mean()) > 100
    assert synthetic["income"].mean() == pytest.approx(weighted, rel=0.1)
    assert abs(synthetic["admitted"].mean() - raw["admitted"].mean()) < pd.Timedelta(days=30)
    assert "2022-" in _run("query", model, "--mean", "left", "--evidence", "admitted=2022-02-03")
