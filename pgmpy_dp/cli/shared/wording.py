"""The library speaks Python; commands put its messages into their own words: a parameter becomes an option."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable

import click

METHODS = {
    "auto": "AutoMLE",
    "collective-em": "CollectiveEM",
    "private-mle": "PrivateMLE",
    "private-bayesian": "papers.PrivateBayesianEstimator",
    "posterior-mean": "PosteriorMean",
    "naive-mle": "papers.NaiveMLE",
    "mixture": "PairwiseMixture",
}
"""Estimators by their names in `pgmpy-dp fit --estimator`."""

# Advice in Python, as a pattern, and the same advice for commands.
_WAYS: tuple[tuple[str, str | Callable[[re.Match[str]], str]], ...] = (
    (r"fit PairwiseMixture, which answers without a tree, or draw .* by sample_draws",
     "fit --estimator mixture, which answers without a tree"),
    (r"AutoMLE and PairwiseMixture, fitted to the records, measure", "release --model and synthesize measure"),
    (r"fit PairwiseMixture", "use pgmpy-dp synthesize"),
    (r" of the first, PrivateDataset\(records, first\.schema, \.\.\.\)", " of the first"),
    (r"ask query, as in query\(.*?\)(?=, which)", "ask pgmpy-dp query --interval 0.9"),
    (r"PrivateMLE with consistency=None or 'inference', or CollectiveEM", "CollectiveEM"),
    (r"raise max_iter, or use inference='junction_tree' where it fits in memory", "see what AutoMLE gives"),
    (r"attach the release it was fitted to by network.attach_release\(.*?\)\)",
     "name the release it was fitted to by --release"),
    (r"make it PrivacyBudget\(epsilon, delta=1e-6\)", "make a ledger with one by pgmpy-dp ledger create --delta"),
    (r'write union\(.*?\)', "name two release files or more"),
    (r"write Schema\(\{'smoke': \['yes', 'no'\]\}\)", "declare one, such as smoke with the states yes|no"),
    (r"declare none and (a state for all others), Schema\(.*?\)", r"declare none in its dictionary and \1 as other"),
    (r"Bins\(range\(0, 121\)\)", "edges 0|1|...|120 in its dictionary"),
    (r"declare Bins\(\.\.\., detail=0\) for ('.*?')", r"write detail=0 for \1 in the dictionary"),
    (r"Schema\(\.\.\., (\w+)=\{(['\"])(.*?)\2: (['\"])(.*?)\4\}\)", r"--\1 \3=\5"),
    (r"use Schema\(\.\.\., csv=CsvFormat\('(\\?)(.*?)'\)\), or CsvFile\(.*?\)",
     lambda found: f"add --delimiter {'$' if found[1] else ''}'{found[1]}{found[2]}'"),
    (r"use Schema\(\.\.\., csv=CsvFormat\(encoding='(.*?)'\)\)", r"add --encoding \1"),
    (r"\(decimal=','\)", "(--decimal ,)"),
    (r"use CsvFile\(path, delimiter=\.\.\., strip=True\)", "add --delimiter or --strip"),
    (r", as dp\.agree finds it|, such as by pyarrow\.parquet\.\w+\(.*?\)|: \S*to_bayesian_network\(\).*formats", ""),
    (r"read others into a frame", "convert it"),
    (r", such as Schema\.from_model\(network\) of a network that has them", ""),
    (r"plan_measurements\(\.\.\., check=(\S+?)\)", r"pgmpy-dp release --check \1"),
    (r"tables of plan_pairs\(schema\)", "tables that pgmpy-dp plan --pairs writes"),
    (r"use measure\(\)", "use pgmpy-dp release"),
    (r"(?:network\.)?check_fit\(\)", "pgmpy-dp check"),
    (r"give a number for each of its states, as in .*?, or attach the release, which (states the edges of bins)",
     r"ask for its states by --target, or name the release, which \1, by --release"),
    (r"give a number for each of its states, as in \{.*?\}\}", "ask for its states by --target"),
    (r"give n_samples", "give --rows"),
    (r"draw more by PosteriorMean\(draws=\d+\)", "draw more by pgmpy-dp query --draws, or --estimator auto"),
    (r"sample_draws\(draws=(\d+)\)", r"--draws \1"),
    (r"PrivateDataset\(\.\.\., (\w+=\S+)\)", r"\1"),
    *((rf"\b{name.split('.')[-1]}(?:\(.*?\))?(?!\w| of)", f"--estimator {own}") for own, name in METHODS.items()),
)  # fmt: skip

# A value as Python writes it: a text, a number, or what stands for any or none.
_VALUE = r"""\"[^\"]*\"|'[^']*'|\d[\d.]*(?:e[-+]?\d+)?|\.\.\.|True"""


def in_command_words(message: str, command: click.Command | None = None) -> str:
    """Rewrite a message of the library for the command line, where parameters are options."""
    context = click.get_current_context(silent=True)
    command = command or (None if context is None else context.command)
    named = [(p.name, p.opts[0]) for p in (command.params if command else ()) if isinstance(p, click.Option)]
    options = {option.lstrip("-").replace("-", "_"): option for _, option in named} | dict(named)
    message = re.sub(r"(?<==\.\.\.)\Z", ".", message)
    for python, shell in _WAYS:
        message = re.sub(python, shell, message)
    laplace = "take --mechanism laplace" if "mechanism" in options else "take --delta 0" if "delta" in options else ""
    message = message.replace("use the Laplace mechanism", laplace) if laplace else message

    def option(found: re.Match[str]) -> str:
        before, name, value = found[1], found[2], found[3] if found.re.groups > 2 else "..."
        if name not in options:
            return found[0]
        shown = "" if value in ("...", "True") else shlex.quote(value.strip("'\""))
        return f"{before}{options[name]} {shown}".rstrip()

    message = re.sub(rf"(?<![\w-])()(\w+)=({_VALUE})", option, message)
    message = re.sub(r"\b(leave |give (?:a |the same )?)(\w+)", option, message)
    return re.sub(r"\A()(\w+)(?= (?:must|is|needs|bounds) )", option, message)
