"""What 1.x keeps: names with their signatures, commands with their options, and the keys of their JSON.

The lists are `tests/golden/names.txt`, `commands.txt` and `json.txt`; `python tests/test_public.py` writes them again.
"""

from __future__ import annotations

import difflib
import inspect
import json
import os
import re
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click
import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import pgmpy_dp as dp
from pgmpy_dp.cli import main
from pgmpy_dp.models.model import Model
from pgmpy_dp.privacy import Cost, PrivacyLoss

GOLDEN = Path(__file__).resolve().parent / "golden"
ROOMS = {"pgmpy_dp": dp} | {
    f"pgmpy_dp.{name}": getattr(dp, name) for name in ("evaluation", "exports", "papers", "plotting", "report")
}


# Methods by which rooms work together, as ARCHITECTURE describes them, may change; so may what papers print otherwise.
BETWEEN_ROOMS = """
allowed as_measured begin below beside cell_variance checked choose clique_containing closed codes coins
comparing contents copy counted details deviations discrete_gaussian discrete_laplace draw every exponential_mechanism
fitted head independent interpret keys kind listed_edges means measurements
observations origin own parts permute_and_flip quote read refusal scaled spent_in_all squares stated step steps
strata tables_of value weighted
"""
AS_PRINTED = ("cgm_em", "compute_parameters", "data_dependent", "independent", "tables_noise")


def public_names(room: Any) -> list[str]:
    """Its `__all__`, or the functions that it defines."""
    defined = (n for n, v in vars(room).items() if inspect.isfunction(v) and v.__module__ == room.__name__)
    listed = getattr(room, "__all__", None) or (name for name in defined if not name.startswith("_"))
    return sorted(name for name in listed if name not in AS_PRINTED and not name.lower().startswith("printed"))


def signature(function: Any) -> str:
    """Names, kinds and defaults of parameters; a default that is an object stands as dots."""
    parameters = [p for p in inspect.signature(function).parameters.values() if p.name not in ("self", "cls")]
    shown = []
    for each in parameters:
        default = each.default
        plain = default is each.empty or isinstance(default, (bool, int, float, str, tuple, type(None)))
        shown.append(each.replace(annotation=each.empty, default=default if plain else ...))
    return str(inspect.Signature(shown)).replace("Ellipsis", "...")


def members(kind: type) -> dict[str, str]:
    """Methods with their signatures, and without one properties, fields and attributes that docstrings state."""
    ours = [each for each in kind.__mro__ if each.__module__.startswith("pgmpy_dp")]
    found: dict[str, str] = {}
    for each in reversed(ours):
        section = re.search(r"\n    Attributes\n    -+\n(.*?)(?=\n\n    \w+\n    -|\Z)", each.__doc__ or "", re.DOTALL)
        for line in re.findall(r"(?m)^    (\w[\w, ]*?)(?: :.*)?$", section[1] if section else ""):
            found |= dict.fromkeys(line.split(", "), "")
        found |= dict.fromkeys(getattr(each, "__dataclass_fields__", ()), "")
        for name, value in vars(each).items():
            function = getattr(value, "__func__", value)
            if inspect.isfunction(function):
                found[name] = signature(function)
            elif isinstance(value, property) and value.fget.__annotations__.get("return") == "NoReturn":
                found.pop(name, None)  # it refuses, with advice
            elif isinstance(value, property) or hasattr(value, "func"):
                found[name] = ""
    kept = sorted(name for name in found if not name.startswith("_") and name not in BETWEEN_ROOMS.split())
    return {name: found[name] for name in kept}


def listed(kind: type) -> Iterator[str]:
    """Lines of the members of a class, without what every model has."""
    shared = members(Model) if issubclass(kind, Model) and kind is not Model else {}
    own = {name: said for name, said in members(kind).items() if shared.get(name) != said}
    plain = [name for name, said in own.items() if not said and name not in inspect.signature(kind).parameters]
    yield from (f"    .{name}{said}" for name, said in own.items() if said)
    if plain:
        yield f"    {', '.join(plain)}"


def names() -> Iterator[str]:
    """Every public name, with its members."""
    yield from ("what all models share", *listed(Model))
    yield "\npgmpy_dp.privacy"
    for kind in (Cost, PrivacyLoss):
        yield from (f"  {kind.__name__}{signature(kind)}", *listed(kind))
    for title, room in ROOMS.items():
        yield f"\n{title}"
        for name in public_names(room):
            value = getattr(room, name)
            if getattr(dp, name, None) is value and room is not dp:
                yield f"  {name} = pgmpy_dp.{name}"
            elif not callable(value) or (inspect.isclass(value) and issubclass(value, Exception)):
                yield f"  {name}"
            else:
                yield f"  {name}{signature(value)}"
                yield from listed(value) if inspect.isclass(value) else ()


def commands(command: click.Command = main, path: str = "pgmpy-dp") -> Iterator[str]:
    """Every command with its arguments and options: those of choices with the choices, and defaults."""
    if isinstance(command, click.Group):
        for name, each in command.commands.items():
            yield from commands(each, f"{path} {name}")
        return
    yield f"\n{path}"
    for each in sorted(command.params, key=lambda p: (isinstance(p, click.Option), p.opts[-1])):
        flags = "/".join([*each.opts, *each.secondary_opts])
        if isinstance(each, click.Argument):
            flags = each.make_metavar(click.Context(command))
        choices = f" {'|'.join(map(str, each.type.choices))}" if isinstance(each.type, click.Choice) else ""
        several = " ..." if each.multiple else ""
        default = each.to_info_dict()["default"]
        said = f" = {default}" if default not in (None, False, ()) and not each.required else ""
        yield f"  {flags}{choices}{several}{said}{' (required)' if each.required else ''}"


SHARED = ("guarantee", "ledger", "schema", "versions", "pgmpy_dp:found", "check")


def keys(found: Any, shared: dict[str, set[str]], path: str = "") -> Iterator[str]:
    """Paths of keys in JSON, without those of `shared` objects; a key that is a name of the records is a star."""
    if isinstance(found, dict):
        for name, value in found.items():
            below = f"{path}.{'*' if name in NAMES else name}"
            if name in SHARED and isinstance(value, dict):
                yield f"{below} = {name.upper()}"
                shared[name] |= {*keys(value, shared)}
            else:
                yield from keys(value, shared, below)
    elif isinstance(found, list) and any(isinstance(value, dict) for value in found):
        for value in found:
            yield from keys(value, shared, f"{path}[]")
    else:
        yield path


NAMES = {"smoke", "lung", "age", "town", "home", "size", "another smoke", "another lung"}
DICTIONARY = """variable,type,states,edges,other
smoke,string,yes|no,,
lung,string,yes|no,,
age,integer,,0|30|60|90,
"""
CALLS = """
schema dictionary.csv --out schema.json
ledger create ledger.json --epsilon 1000 --delta 1e-6
bins records.csv --schema schema.json --variable age --parts 2 --epsilon 1 --ledger ledger.json --out binned.json
states towns.csv --schema open.json --variable town --epsilon 9 --delta 1e-9 --ledger ledger.json --out towns.json \\
    --release towns.zip
plan --schema schema.json --model edges.txt --epsilon 9 --records 900 --out tables.json
plan --schema schema.json --pairs --epsilon 9 --records 900
plan-accuracy --schema schema.json --table smoke,lung=50 --out plan.json
release records.csv --schema schema.json --model edges.txt --epsilon 9 --records 900 --dry-run
release records.csv --schema schema.json --model edges.txt --epsilon 9 --ledger ledger.json --out release.zip
release records.csv --schema schema.json --plan plan.json --ledger ledger.json --out residuals.zip
structure records.csv --schema schema.json --epsilon 9 --delta 1e-9 --records 900 --dry-run
structure records.csv --schema schema.json --epsilon 9 --delta 1e-9 --ledger ledger.json --out found.txt
synthesize records.csv --schema schema.json --epsilon 9 --delta 1e-9 --records 900 --dry-run
synthesize records.csv --schema schema.json --epsilon 9 --delta 1e-9 --ledger ledger.json \\
    --out made.csv --model mixture.zip
ledger create homes-ledger.json --epsilon 10 --delta 1e-6
households homes.csv records.csv --key age --max-persons 2 --schema homes.json --persons-schema people.json \
    --epsilon 9 --delta 1e-9 --ledger homes-ledger.json --out homes-made.csv --persons-out people-made.csv
inspect release.zip
inspect residuals.zip
inspect towns.zip
release records.csv --schema schema.json --model edges.txt --epsilon 9 --no-ledger --out second.zip
union release.zip second.zip --out union.zip
inspect union.zip
fit release.zip --model edges.txt --out fitted.zip
fit release.zip --estimator mixture --out mixture-of-release.zip
probe records.csv --schema schema.json --model fitted.zip --epsilon 1 --ledger ledger.json --out probed.zip
check fitted.zip
query fitted.zip --target lung --evidence smoke=yes
query fitted.zip --target lung --interval 0.9
query fitted.zip --mean age --interval 0.9
query mixture.zip --target lung
sample fitted.zip --rows 3
sample fitted.zip --rows 3 --out drawn.csv
report fitted.zip --out report.html
explore fitted.zip --out explore.html
ledger show ledger.json
"""


def answers() -> Iterator[str]:
    """The keys of the JSON of every command, each called in a folder with its files."""
    frame = pd.DataFrame({"smoke": ["yes", "no"] * 450, "lung": ["yes", "no", "no"] * 300, "age": np.arange(900) % 90})
    frame.to_csv("records.csv", index=False)
    pd.DataFrame({"town": ["Here", "There"] * 450}).to_csv("towns.csv", index=False)
    pd.DataFrame({"age": np.arange(90), "home": ["big", "small"] * 45}).to_csv("homes.csv", index=False)
    Path("dictionary.csv").write_text(DICTIONARY)
    Path("edges.txt").write_text("smoke -> lung\nage\n")
    dp.Schema({"town": []}, other={"town": "elsewhere"}).save("open.json")
    dp.Schema({"home": ["big", "small"]}).save("homes.json")
    dp.Schema({"smoke": ["yes", "no"], "lung": ["yes", "no"]}).save("people.json")
    shared: dict[str, set[str]] = {name: set() for name in SHARED}
    for call in CALLS.replace("\\\n", "").strip().splitlines():
        result = CliRunner().invoke(main, [*call.split(), "--json"])
        assert result.exit_code == 0, (call, result.output)
        words = [word for word in call.split() if "." not in word and not word[0].isdigit()]
        found = {*keys(json.loads(result.stdout), shared)}
        yield from (f"\npgmpy-dp {' '.join(words)}", *(f"  {path.removeprefix('.')}" for path in sorted(found)))
    for name, found in shared.items():
        yield from (f"\n{name.upper()}", *(f"  {path.removeprefix('.')}" for path in sorted(found)))


LISTS: dict[str, Callable[[], Iterator[str]]] = {"names": names, "commands": commands, "json": answers}


def written(title: str) -> str:
    return "\n".join(LISTS[title]()).lstrip("\n") + "\n"


@pytest.mark.parametrize("title", ["names", "commands", pytest.param("json", marks=pytest.mark.full)])
def test_what_is_public_is_what_is_listed(title, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found, listed = written(title).splitlines(), (GOLDEN / f"{title}.txt").read_text().splitlines()
    changes = [line for line in difflib.unified_diff(listed, found, lineterm="", n=0) if line[0] in "+-"][2:]
    assert not changes, "\n".join(
        [
            f"The public interface is not as tests/golden/{title}.txt lists it:",
            *changes,
            "What went or changed needs a deprecation (docs/stability.md). If this is meant, write the list again:",
            "    python tests/test_public.py",
        ]
    )


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    texts = {}
    with TemporaryDirectory() as folder:
        os.chdir(folder)
        texts = {title: written(title) for title in LISTS}
    for title, text in texts.items():
        (GOLDEN / f"{title}.txt").write_text(text)
