"""What the library says in Python's words, the command line says in its own."""

from __future__ import annotations

import re

_NAMES = "epsilon|delta|max_rows|sampling_rate|missing|other|unit|delimiter|encoding|neighbours|mechanism|target|parts"

# Patterns of the library's messages, and what stands in their place; tried in this order.
_PHRASES = (
    (r"Schema\(\.\.\., \w+=\{.*?\}\), at the command line --", "--"),
    (r"unless CsvFile\(path, delimiter=\.\.\.\) says otherwise", "unless --delimiter says otherwise"),
    (r"unless CsvFile\(path, strip=True\) does", "unless --strip does"),
    (r"hand others in as a frame", "write them as one of these"),
    (
        r"declare fine public ones, Bins\(range\(0, 121\)\)",
        "declare fine public ones in its dictionary, edges 0|1|...|120",
    ),
    (r" NET and XDSL are pgmpy's alone: .*$", ""),
    (r"Values must agree in kind as well \('1' is not 1, True is not 1\): ", ""),
    (r'leave it out, or use mechanism="gaussian"', "leave --delta out, or add --mechanism gaussian"),
    (r'numbers="states"', "--numbers states"),
    (r"fit it to one, or attach that which it was fitted to by .*$", "name that which it was fitted to by --release."),
    (r"attach that which it was fitted to by .*$", "name that which it was fitted to by --release."),
    (r"measure those of plan_pairs\(schema\)", "release those that pgmpy-dp plan --pairs writes"),
    (r"^a half-width must be", "--table needs a number of records"),
    (r"expert_knowledge:?", "--forbid or --require"),
    (r"network\.check_fit\(\) says where", "pgmpy-dp check says where"),
    (r"Ask for more, as by sample_posterior\(draws=(\d+)\), and compare two seeds;", r"Ask for more by --draws \1;"),
    (r"Ask for more, as by PosteriorMean\(draws=\d+\);", "See what --estimator auto gives;"),
    (
        r"Give more iterations \(max_iter\), or exact inference \(inference='junction_tree'\) where it fits",
        "See what --estimator auto gives",
    ),
    (r"fit by PrivateMLE\(\)", "fit by --estimator private-mle"),
    (r"with CollectiveEM or PrivateBayesianEstimator", "by --estimator collective-em or private-bayesian"),
    (r"fit with CollectiveEM", "fit by --estimator collective-em"),
    (r"fit PairwiseMixture, which (needs no network|does)", r"take pgmpy-dp synthesize, which \1"),
    (r"plan_measurements\(\.\.\., check=([\d.]+)\)", r"pgmpy-dp release --check \1"),
    (rf"\b({_NAMES})=\.\.\.", lambda found: f"--{found[1].replace('_', '-')}"),
    (rf" in ({_NAMES})=", lambda found: f" for --{found[1].replace('_', '-')}"),
    (
        rf"^({_NAMES})(?= (?:must|bounds|needs|is|says|cannot))",
        lambda found: f"--{found[1].replace('_', '-')}",
    ),
)


def at_the_command_line(message: str) -> str:
    """Name options of commands where the library names its own parameters.

    Examples
    --------
    >>> at_the_command_line("max_rows bounds the rows of a unit: name the column that tells whose a row is, unit=...")
    '--max-rows bounds the rows of a unit: name the column that tells whose a row is, --unit'
    >>> at_the_command_line("Ask for more, as by sample_posterior(draws=8), and compare two seeds; measure others.")
    'Ask for more by --draws 8; measure others.'
    """
    for pattern, words in _PHRASES:
        message = re.sub(pattern, words, message)
    return message


def shown(line: str) -> str:
    """Make a line safe for a terminal: names come from files of others, and may hold what moves the cursor."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in line)
