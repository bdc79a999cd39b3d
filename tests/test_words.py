"""One word, one meaning: names in the package avoid words for which the field has terms (CONTRIBUTING lists them)."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# Settled pairs, and names that files and programs of 0.3 have.
SETTLED = {"at_least", "at_most", "at_most_two", "most_probable", "untold_means", "least_epsilon"}


def avoided():
    """Words in the first column of CONTRIBUTING's table."""
    section = (ROOT / "CONTRIBUTING.md").read_text().split("## One word, one meaning", 1)[1].split("\n## ")[0]
    return {word for row in re.findall(r"^\| (.+?) \|", section, re.MULTILINE)[1:] for word in row.split(", ")}


def names(tree):
    """Every name that a module gives: functions, classes, parameters, variables, attributes."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            yield node.name, node.lineno
        elif isinstance(node, ast.arg):
            yield node.arg, node.lineno
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id, node.lineno
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr, node.lineno


def test_names_use_the_terms_of_the_field():
    words = avoided()
    assert "told" in words
    wrong = []
    for path in sorted((ROOT / "pgmpy_dp").rglob("*.py")):
        for name, line in names(ast.parse(path.read_text())):
            left = name.strip("_").lower()
            for settled in SETTLED:
                left = left.replace(settled, "")
            if words & set(left.split("_")):
                wrong.append(f"{path.relative_to(ROOT)}:{line}: {name}")
    assert not wrong, "CONTRIBUTING says what to write instead:\n" + "\n".join(wrong)
