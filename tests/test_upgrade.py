"""`docs/from_0_3.md`: every name of 0.3 that is gone stands there, and what to write instead is there to be used."""

from __future__ import annotations

import inspect
import re
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import pgmpy_dp as dp
from pgmpy_dp._names import FORMER
from pgmpy_dp.cli import main

ROOT = Path(__file__).resolve().parents[1]
ROWS = re.findall(r"(?m)^\| (`.*) \| (.*) \|$", (ROOT / "docs" / "from_0_3.md").read_text().replace("\\|", "¦"))
FORMERLY = [code for row in ROWS for code in re.findall("`([^`]*)`", row[0])]
NOW = [code for row in ROWS for code in re.findall("`([^`]*)`", row[1])]
PATH = re.compile(r"(?:dp|pgmpy_dp|experiments)(?:\.\w+)+")


def found(code: str) -> Any:
    """What a dotted name means; with ``(option=)``, the parameter of that name."""
    name, _, option = code.partition("(")
    first, *rest = name.split(".")
    value = dp if first == "dp" else import_module(first)
    for part in rest:
        try:
            value = getattr(value, part)
        except AttributeError:
            if not inspect.ismodule(value):
                raise
            try:
                value = import_module(f"{value.__name__}.{part}")
            except ModuleNotFoundError as error:
                raise AttributeError(code) from error
    return inspect.signature(value).parameters[option.rstrip("=)")] if option else value


def names(listing: str) -> set[str]:
    """Names in a list of `test_public`, as the page writes them; what all models have is said of one."""
    entries, room, kind = set(), "", ""
    for line in listing.splitlines():
        text, depth = line.strip(), len(line) - len(line.lstrip())
        name, _, arguments = text.partition("(")
        if depth == 0:
            room = kind = "dp.PrivateBayesianNetwork" if text.startswith("what all") else name.replace("pgmpy_dp", "dp")
            continue
        if depth == 2:
            kind = name = f"{room}.{name.partition(' =')[0]}"
        each = (
            [f"{kind}{name}"]
            if text.startswith(".")
            else [name]
            if depth == 2
            else [f"{kind}.{a}" for a in text.split(", ")]
        )
        entries.update(each)
        options = re.findall(r"(?:^|, )(\w+)=", arguments)
        entries.update(f"{each[0]}({option}=)" for option in options)
    return entries


@pytest.mark.parametrize("code", [code for code in FORMERLY if PATH.match(code)])
def test_what_is_called_gone_is_gone(code):
    with pytest.raises((AttributeError, KeyError, ModuleNotFoundError)):
        found(code)


@pytest.mark.parametrize("code", NOW)
def test_what_to_write_instead_is_there(code):
    if code.startswith("pgmpy-dp "):
        assert code.split()[1] in main.commands
    elif code == "python -m experiments":
        import_module("experiments.__main__")
    elif PATH.match(code):
        found(code)


def is_gone(name: str) -> bool:
    try:
        found(name)
    except (AttributeError, KeyError):
        return True
    return False


def test_every_name_that_went_is_on_the_page():
    """A member by its own name, which the page may say of one class for all; members of what is gone are not named."""
    listed = (names((ROOT / "tests" / "golden" / name).read_text()) for name in ("0.3/names.txt", "names.txt"))
    before, now = listed
    gone = {name for name in before - now if is_gone(name)}
    assert {"dp.AutoModel", "dp.AutoModel(epsilon=)", "dp.Bins(found_by=)"} <= gone

    def said_as(name: str) -> str:
        return name.partition("(")[2] or name.rpartition(".")[2]

    said = {said_as(code) for code in FORMERLY}
    assert {
        name for name in gone if said_as(name) not in said and not is_gone(re.sub(r"(\.\w+|\(.*)$", "", name))
    } == set()


@pytest.mark.parametrize(("room", "name"), [(room, name) for room, known in FORMER.items() for name in known])
def test_errors_of_former_names_say_what_to_use(room, name):
    assert f"{room.replace('pgmpy_dp', 'dp')}.{name}" in FORMERLY
    with pytest.raises(AttributeError, match=f"gone since 1.0: use {re.escape(FORMER[room][name])}"):
        getattr(import_module(room), name)
