"""BIF files of other programs, and files made to waste the reader's time and memory."""

import gzip
import tracemalloc
from pathlib import Path

import numpy as np
import pgmpy
import pytest
from pgmpy.readwrite import BIFReader

from pgmpy_dp.models.formats.other_formats import from_bif

SHIPPED = Path(pgmpy.__file__).parent / "utils" / "example_models"

FOREIGN = """\ufeff// by hand /* still the same comment
network "a net" { property author = "x"; }
variable "Rain" { property position = (1, 2); type discrete[2] { "no" "yes" }; property more; }
variable Pump{type discrete [ 3 ] { off, half way, on };}
/* a comment
   of two lines */ variable Wet { type discrete [ 2 ] { no, yes }; }
variable Dry { type discrete [ 2 ] { no, yes }; }
probability ( rain ) { table .25, 7.5e-1; }
probability (Pump) { default 0.5 0.25 0.25; }
probability ( Wet | Rain, Pump ) {
  property weather;
  default 0.5, 0.5;
  (yes, half way) 0.1, 0.9;
}
probability ( Dry Wet ) {
  table
    1.0, 0.0,
    0.0, 1.0;
}
"""


@pytest.mark.parametrize("name", ["asia", "sachs", "child"])
def test_networks_are_read_as_pgmpy_reads_them(name):
    content = gzip.decompress((SHIPPED / f"{name}.bif.gz").read_bytes())
    own, theirs = from_bif(content), BIFReader(string=content.decode()).get_model()
    assert own.name == theirs.name
    assert list(own.nodes()) == list(theirs.nodes())
    assert list(own.edges()) == list(theirs.edges())
    for read, cpd in zip(own.get_cpds(), theirs.get_cpds(), strict=True):
        assert (read.variables, read.state_names) == (cpd.variables, cpd.state_names)
        assert np.array_equal(read.values, cpd.values)


def test_whatever_the_format_allows_is_read():
    network = from_bif(FOREIGN.encode())
    assert network.check_model()
    assert network.name == "a net"
    assert set(network.edges()) == {("Rain", "Wet"), ("Pump", "Wet"), ("Wet", "Dry")}
    assert network.get_cpds("Pump").state_names["Pump"] == ["off", "half way", "on"]
    assert network.get_cpds("Rain").values.tolist() == [0.25, 0.75]
    assert network.get_cpds("Pump").values.tolist() == [0.5, 0.25, 0.25]
    wet = network.get_cpds("Wet")
    assert wet.variables == ["Wet", "Rain", "Pump"]
    assert wet.values[1].tolist() == [[0.5, 0.5, 0.5], [0.5, 0.9, 0.5]]
    assert network.get_cpds("Dry").values.tolist() == [[1.0, 0.0], [0.0, 1.0]]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("/* a", "/* a /*", ""),  # comments do not nest: still sound
        ("*/", "", "comment does not end"),
        *(("discrete[2]", new, "'Rain' does not have as many states") for new in ("discrete[3]", "continuous")),
        ("variable Dry", "variable Wet", "'Wet' is declared twice"),
        ("( Dry Wet )", "( Pump )", "two blocks"),
        ("Rain, Pump", "Rain, Sun", "'Sun', which is not declared"),
        ("( Dry Wet )", "Dry", "no variable: 'Dry'"),
        ("( Dry Wet )", "( )", "'', which is not declared"),
        *(("(yes, half way)", new, "rows of 'Wet' do not fit") for new in ("(yes, half)", "(yes)")),
        ("  default 0.5, 0.5;\n", "", "rows of 'Wet' do not fit"),
        ("0.1, 0.9;", "0.1, 0.9; (yes, half way) 0.2, 0.8;", "row of 'Wet' occurs twice"),
        ("0.1, 0.9;", "0.1, 0.9, 0.0;", "rows of 'Wet' do not fit"),
        *(("0.1, 0.9;", new, "negative or not finite") for new in ("0.1, nan;", "-0.1, 1.1;")),
        ("7.5e-1", "0,75", "rows of 'Rain' do not fit"),
        (".25, 7.5e-1", "x", "could not convert"),
        ("  table\n", "  cells\n", "row of 'Dry' begins with 'cells'"),
        ("    0.0, 1.0;\n}", "    0.0, 1.0;\n", "no complete block"),
        ("network", "net", "no complete block"),
    ],
)
def test_what_is_wrong_is_named(old, new, message):
    content = FOREIGN.replace(old, new, 1).encode()
    if not message:
        from_bif(content)
        return
    with pytest.raises(ValueError, match=message):
        from_bif(content)


def many_parents(row):
    """Forty parents of two states: 2**40 columns."""
    names = [f"v{number}" for number in range(41)]
    declared = "".join(f"variable {name} {{ type discrete [ 2 ] {{ a, b }}; }}\n" for name in names)
    return f"{declared}probability ( v0 | {', '.join(names[1:])} ) {{ {row} }}"


BOMBS = {  # the first five took pgmpy's reader from ten seconds to hours; the others 8 terabytes
    "blanks": f"probability ({' ' * 100_000}\n}}",
    "bars": f"probability ({' | ' * 100_000}\n}}",
    "comments": "//\n" + "/*" * 500_000,
    "quotes": "//\n" + '"\\' * 500_000,
    "blocks": "variable " * 500_000,
    "row": many_parents(f"({', '.join(['a'] * 40)}) 0.5, 0.5;"),
    "default": many_parents("default 0.5, 0.5;"),
    "table": many_parents("table 0.5, 0.5;"),
}


@pytest.mark.parametrize("name", BOMBS)
def test_bombs_are_refused_in_the_time_and_memory_of_reading_them(name):
    content = BOMBS[name].encode()
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=r"complete block|comment|do not fit|too many"):
            from_bif(content)
        assert tracemalloc.get_traced_memory()[1] < 1e8
    finally:
        tracemalloc.stop()
