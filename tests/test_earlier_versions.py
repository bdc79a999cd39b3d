"""Files that versions 0.2 and 0.3 wrote by their commands are read by all of 1.x, with the same answers."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

import pgmpy_dp as dp
from pgmpy_dp.cli import main
from pgmpy_dp.release import Release

GOLDEN = Path(__file__).resolve().parent / "golden"
EXPECTED = {version: json.loads((GOLDEN / version / "expected.json").read_text()) for version in ("0.2", "0.3")}
MODELS = [(version, name) for version, known in EXPECTED.items() for name in known["models"]]


@pytest.mark.parametrize("version", EXPECTED)
def test_a_ledger_is_read_and_charged_further(version, tmp_path):
    ledger = tmp_path / "ledger.json"
    shutil.copy(GOLDEN / version / ledger.name, ledger)
    budget = dp.PrivacyBudget.open(ledger)
    assert [cost.label for cost in budget.history] == EXPECTED[version]["charges"]
    assert vars(budget.spent) == EXPECTED[version]["spent"]
    data = dp.PrivateDataset({("x",): [4, 6]}, dp.Schema({"x": ["y", "n"]}), budget)
    data.measure([("x",)], 1.0)
    assert dp.PrivacyBudget.open(ledger).spent.epsilon == EXPECTED[version]["spent"]["epsilon"] + 1


@pytest.mark.parametrize("version", EXPECTED)
def test_schemas_releases_and_plans_are_read(version, tmp_path):
    folder, records = GOLDEN / version, tmp_path / "records.csv"
    records.write_text("smoke,lung,age\n")
    schema = folder / "schema.json"
    for name, known in EXPECTED[version]["releases"].items():
        release = Release.load(folder / name)
        assert (release.guarantee.epsilon, release.total) == pytest.approx((known["epsilon"], known["total"]))
        assert sorted(map(sorted, release.cliques)) == sorted(map(sorted, known["tables"]))
    measured = Release.load(folder / "release.zip").schema
    assert measured == dp.Schema.load(schema).select(measured.variables)
    for option, name in {"--cliques": "tables.json", "--plan": "plan.json"}.items():
        if (plan := folder / name).exists():
            call = ["release", records, "--schema", schema, "--dry-run", option, plan]
            call += ["--epsilon", 1] if option == "--cliques" else []
            assert CliRunner().invoke(main, list(map(str, call))).exit_code == 0


@pytest.mark.parametrize(("version", "name"), MODELS)
def test_models_answer_as_they_did(version, name):
    answer = dp.load(GOLDEN / version / name).query(["lung"], evidence={"smoke": "yes"})
    for state, probability in EXPECTED[version]["models"][name]:
        assert answer.get_value(lung=state) == pytest.approx(probability, rel=1e-9)
