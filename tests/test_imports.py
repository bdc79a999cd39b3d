"""No two files of the package import each other: read off the syntax tree, with the imports inside functions.

A room that imports its names when they are first used lists them in __init__.pyi, which is read for it.
"""

import ast
from pathlib import Path

import networkx as nx
import pytest

import pgmpy_dp

PACKAGE = Path(pgmpy_dp.__file__).parent


def imports(source: str, module: str, modules: set[str]) -> set[str]:
    """The modules that a file imports, but for those that only type checkers read."""
    found: set[str] = set()
    is_room = any(name.startswith(f"{module}.") for name in modules)

    class Visitor(ast.NodeVisitor):
        def visit_If(self, node: ast.If) -> None:
            if ast.unparse(node.test) != "TYPE_CHECKING":
                self.generic_visit(node)

        def visit_Import(self, node: ast.Import) -> None:
            found.update(alias.name for alias in node.names)

        def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
            assert not node.level or is_room, f"{module}: imports are absolute."
            origin = f"{module}.{node.module}" if node.level else str(node.module)
            for alias in node.names:
                submodule = f"{origin}.{alias.name}"
                found.add(submodule if submodule in modules else origin)

    Visitor().visit(ast.parse(source))
    return found & modules


def import_circles(sources: dict[str, str]) -> list[list[str]]:
    modules = set(sources)
    graph = nx.DiGraph((name, one) for name, source in sources.items() for one in imports(source, name, modules))
    return sorted(sorted(circle) for circle in nx.strongly_connected_components(graph) if len(circle) > 1)


def test_no_two_files_import_each_other():
    sources = {}
    for file in PACKAGE.rglob("*.py"):
        parts = ("pgmpy_dp", *file.relative_to(PACKAGE).with_suffix("").parts)
        names = file.with_suffix(".pyi")
        text = (names if names.exists() else file).read_text(encoding="utf-8")
        sources[".".join(parts).removesuffix(".__init__")] = text
    assert len(sources) > 100
    circles = import_circles(sources)
    assert circles == []


@pytest.mark.parametrize(
    "back",
    [
        "from p.a import x",
        "import p.a",
        "from p import a",
        "def f():\n    from p.a import x",
        "try:\n    import p.a\nfinally:\n    pass",
    ],
)
def test_a_circle_is_found(back):
    assert import_circles({"p": "", "p.a": "from p.b import y", "p.b": back, "p.c": "from p import b"}) == [
        ["p.a", "p.b"]
    ]


def test_a_circle_through_the_names_of_a_room_is_found():
    sources = {"p": "from .a import x", "p.a": "from q import y", "q": "from .b import y", "q.b": "from p import x"}
    assert import_circles(sources) == [["p", "p.a", "q", "q.b"]]


def test_imports_for_type_checkers_are_no_circle():
    typing = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from p.a import x"
    assert import_circles({"p.a": "import p.b", "p.b": typing}) == []
