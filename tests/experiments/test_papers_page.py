"""Every number on the page of the papers is computed from the kept results: an edited number is found."""

import math
import re
from functools import cache
from importlib import import_module
from pathlib import Path

import pandas as pd
import pytest

from experiments import bayes_naive, cgm_divergence, cgm_mobility, cgm_scatter, dd_networks, vips_lda
from experiments.populations import bnlearn_network
from experiments.protocol import wins
from pgmpy_dp import papers
from pgmpy_dp.papers import inference_error_bounds

DOCS = Path(__file__).parents[2] / "docs"
# What is no result: names of statements and figures of papers, years, settings that a claim is about, plain words.
NO_RESULT = re.compile(
    r"```.*?```|`[^`]*`|\]\([^)]*\)|(?:Figs?\.|Tables?|Algorithms?|Theorems?|Propositions?|Lemmas?|ICML|AAAI|section) "
    r"\d+(?: \d)?|\bet al\., 20\d\d|, 2020\.|2 \\\|I\\\| log 2|of 5 %|ε = [\d.]+|N = [\d,]+|at 3\b|δ = 1/N|1/K|MNIST"
)


@cache
def kept(name):
    return pd.read_csv(DOCS / "experiments" / f"{name}.csv")


def n(value, digits=3):
    """A number as the page writes it: significant digits, thousands with commas, no zero before the point."""
    text = f"{value:,.0f}" if value >= 1000 else f"{value:#.{digits}g}"
    return text.rstrip(".").removeprefix("0") if value < 1 else text.rstrip(".")


def divergence(name, shape):
    rows = kept(name)
    cell = ["epsilon", "size"]
    medians = rows.groupby(cell)[list(cgm_divergence.RESULTS)].median(numeric_only=True)
    path = medians[[f"published_{number}" for number in cgm_divergence.ITERATIONS]]
    gain = 100 * (1 - path.min(axis=1) / path["published_0"])
    ratio = medians["naive_best"] / medians["collective"]

    def below(one, other):
        return wins(rows, cell, one, other)

    def triple(epsilon, size):
        one = medians.loc[(epsilon, size)]
        return f"{n(one['sgd'])} / {n(one['collective'])} / {n(one['collective_gaussian'])}"

    yield (
        f"{shape}: at its best iteration below its start in {int((gain > 0).sum())} of {len(medians)} cells, by "
        f"{gain.max():.0f} % at most; after 64 iterations in {below('published', 'published_0')}"
    )
    yield (
        f"{shape}: below CGM-EM in {below('collective', 'published')} of {len(medians)} cells, below naive "
        f"likelihood with its default regularisation in {below('collective', 'naive')}, with the one that the truth "
        f"picks for each release in {below('collective', 'naive_best')}, where naive likelihood has "
        f"{ratio.min():.3g} to {ratio.max():.3g} times the divergence"
    )
    yield (
        f"{shape}: below `CollectiveEM` with Laplace noise in {below('sgd', 'collective')} of {len(medians)} cells, "
        f"with Gaussian noise at the same ε and δ in {below('sgd', 'collective_gaussian')}, below CGM-EM in "
        f"{below('sgd', 'published')}; medians of SGD / `CollectiveEM` with Laplace noise / with Gaussian noise "
        f"at N = 10,000: ε = 1 {triple(1.0, 10_000)}, ε = .1 {triple(0.1, 10_000)}; N = 1,000,000: ε = 1 "
        f"{triple(1.0, 1_000_000)}, ε = .1 {triple(0.1, 1_000_000)}"
    )
    yield (
        f"{shape}: below naive likelihood in {below('output', 'naive')} of {len(medians)} cells, below the uniform "
        f"distribution in {below('output', 'uniform')}"
    )
    if name == "cgm-chain":
        for size in (100_000, 10_000):
            one = medians.loc[(1.0, size)]
            values = f"{n(one['published_0'])}, {n(one['published_4'])} and {n(one['published_64'])}"
            yield f"N = {size:,}, ε = 1: {values} at iterations 0, 4 and 64"
    else:
        both = rows.dropna(subset="published_loopy")
        loopy = both["published_loopy"] / both["published_16"]
        yield f"loopily, after 16 iterations, {loopy.min():.3f} to {loopy.max():.3f} times the divergence"


def scatter():
    error = kept("cgm-scatter").groupby("method")["error"].first()
    values = (n(error[m]) for m in (*cgm_scatter.METHODS[1:3], *cgm_scatter.METHODS[3:]))
    yield (
        "mean L1 error of an edge: naive with little regularisation {}, naive with the default {}, CGM-EM {} and with "
        "loopy propagation {}, `CollectiveEM` {}".format(*values)
    )


def mobility():
    rows = kept("cgm-mobility")
    medians = rows.groupby(["people", "epsilon"])[list(cgm_mobility.RESULTS)].median()

    def above(one, other):
        return wins(rows, ["people", "epsilon"], other, one)

    for kind, words in (("dropped", "pairs dropped"), ("paper", "pairs kept"), ("tight", "pairs kept, tight noise")):
        ems = [f"em_{number}_{kind}" for number in cgm_mobility.EM_ITERATIONS]
        naive, sgd, best = medians[f"naive_{kind}"], medians["sgd"], medians[ems].max(axis=1)
        yield (
            f"{words}: CGM-EM above naive likelihood in {', '.join(str(above(em, f'naive_{kind}')) for em in ems)} of "
            f"{len(medians)} cells (iterations {', '.join(map(str, cgm_mobility.EM_ITERATIONS[:-1]))} and "
            f"{cgm_mobility.EM_ITERATIONS[-1]}), `CollectiveEM` in {above(f'collective_{kind}', f'naive_{kind}')}; "
            f"naive likelihood above SGD in {above(f'naive_{kind}', 'sgd')}; the paper's order in "
            f"{int(((best > naive) & (naive > sgd)).sum())} with CGM-EM at its best iteration"
        )
    share = 100 * rows["null_share"].mean()
    yield f"hold {share:.0f} % of the weight ({rows['population'].nunique()} populations of simulated visits)"


def pathologies():
    text = (DOCS / "experiments" / "cgm-pathologies.txt").read_text()
    agreement, crossing = re.search(r"error is ([\d.]+) times .* equal at N = (\d+) million", text).groups()
    default, worst, little = re.search(r"in (\d) of 5 sizes, by .* to ([\d.]+); .* to ([\d.]+)\.", text).groups()
    lowest, within, number = re.search(r"least, ([\d.]+), at .* of that at (\d) of (\d)", text).groups()
    noisy, exact = re.search(r"smallest lambda gives ([\d.]+) with noise and ([\d.]+) without", text).groups()
    yield (
        f"the error is {agreement.lstrip('0')} times the sum of Proposition 4's two terms, equal at N = {crossing} "
        f"million; projected is better at {default} of 5 sizes with a λ that follows the noise (by {worst} at most), "
        f"by up to {little} with little; with noise {within} of {number} λ is within a tenth of the least KL, "
        f"{lowest}, and the smallest λ gives {noisy}, without noise {exact.lstrip('0')}"
    )


def lda():
    rows = kept("vips-lda")
    medians = rows.groupby(["rate", "epsilon"])[list(vips_lda.RESULTS)].median()
    cell, cells = medians.loc[(0.05, 2.4)], len(medians)

    def lowest(one, *others):
        return int((medians[one] < medians[list(others)].min(axis=1)).sum())

    yield (
        f"averaged before the cut, the lowest perplexity of the three in {lowest('moments', 'strong', 'unclipped')} of "
        f"{cells} cells of ε and sampling rate (ε = 2.4, samples of 5 %: {n(cell['moments'])} against "
        f"{n(cell['strong'])} and {n(cell['unclipped'])}, documents that are all alike {n(cell['unigram'])}); as "
        f"printed, in {lowest('printed', 'printed_strong', 'printed_unclipped')} ({n(cell['printed'])} against "
        f"{n(cell['printed_strong'])} and {n(cell['printed_unclipped'])})"
    )
    yield (
        f"plain composition needs less noise in {lowest('noise_plain', 'noise_strong')} of {cells} cells (there "
        f"{n(cell['noise_plain'])} against {n(cell['noise_strong'])}) and has the lower perplexity in "
        f"{lowest('plain', 'strong')}"
    )
    yield (
        f"above averaging before the cut in {lowest('moments', 'printed')} of {cells} cells (there "
        f"{n(cell['printed'])} beside {n(cell['moments'])}), above documents that are all alike in "
        f"{lowest('unigram', 'printed')}"
    )
    plan = {"steps": 20, "sampling_rate": 0.05, "sampling": "without_replacement", "accounting": "moments"}
    stated, true = (papers.price(sigma, 1e-4, **plan) for sigma in (1.24, 1.24 / math.sqrt(2)))
    yield f"ε = {stated:.2f} at noise 1.24"
    yield f"protection is claimed of a replaced one: {true:.2f}"


def logistic():
    rows = kept("vips-logistic")
    medians = rows.groupby("epsilon")[["non_private", "published", "strong", "plain", "sgd", "default"]].median()
    one, tenth = medians.loc[1.0], medians.loc[0.1]
    yield (
        f"area under the curve at ε = 1: non-private {n(one['non_private'])}, the paper's plan {n(one['published'])}, "
        f"with strong composition {n(one['strong'])}, with plain {n(one['plain'])}, DP-SGD tuned in hindsight "
        f"{n(one['sgd'])}, `PrivateLogisticRegression` {n(one['default'])}; at ε = .1 "
        + ", ".join(n(value) for value in tenth)
        + f" ({rows['repeat'].nunique()} populations of made-up records)"
    )
    beats = int((medians["published"] > medians[["strong", "plain"]].max(axis=1)).sum())
    yield (
        f"better than strong and plain composition at {beats} of {len(medians)} ε; DP-SGD is better than it at "
        f"{int((medians['sgd'] > medians['published']).sum())}, and than ours at "
        f"{int((medians['sgd'] > medians['default']).sum())}"
    )


def sigmoid():
    rows = kept("vips-sbn")
    shown = ["non_private", "published", "strong", "plain", "sgd", "default", "frequent"]
    medians = rows.groupby(["records", "epsilon"])[shown].median()
    digits, made = medians.loc[("digits", 3.0)], medians.loc[("made-up", 3.0)]
    names = ("little noise", "the paper's plan", "with strong composition", "with plain", "DP-SGD tuned in hindsight")
    names = (*names, "`PrivateSigmoidBeliefNetwork`", "each pixel's more frequent value")
    yield (
        f"share of values given back at ε = 3, medians of {rows['repeat'].nunique()} repeats, 1,500 digits of "
        "scikit-learn: "
        + ", ".join(f"{name} {n(value)}" for name, value in zip(names, digits, strict=True))
        + "; 10,000 made-up records: "
        + ", ".join(n(value) for value in made)
    )


def spread_of_errors(name):
    """How many times the worst entry of a CPD the upper bound of an answer's error is."""
    network = bnlearn_network(name)
    bounds = inference_error_bounds(network, network)
    return bounds.neighbourhood * bounds.states ** (bounds.treewidth + 1)


def networks():
    rows = kept("dd-networks")
    means = rows.groupby(["network", "epsilon", "method"])[list(dd_networks.MEASURES)].mean()
    cells = len(means) // len(dd_networks.METHODS)

    def better(result, sign=-1):
        wide = means[result].unstack()
        return int((sign * (wide["literal"] - wide["literal D-Ind"]) > 0).sum())

    def listed(result, *where, digits=3):
        return ", ".join(
            f"{name} " + " / ".join(n(means.loc[(name, *one), result], digits) for one in where)
            for name in dd_networks.NETWORKS
        )

    yield (
        f"as printed: lower L1 error of the parameters in {better('parameters')} of {cells} cells (their KL in "
        f"{better('parameters_kl')}), of marginal queries in {better('marginals')}, of conditional queries in "
        f"{better('conditionals')}; joint KL lower in {better('joint_kl')}"
    )
    yield "error of its parameters at 1, and of D-Ind's at 3: " + listed(
        "parameters", (1.0, "literal"), (3.0, "literal D-Ind")
    )
    yield (
        "D-Ind / data-dependent: "
        + listed("map_accuracy", (1.0, "literal D-Ind"), (1.0, "literal"))
        + f"; higher in {better('map_accuracy', 1)} of {cells} cells"
    )
    printed = {"asia": 0.0035, "sachs": 0.04, "child": 0.0014, "alarm": 0.0012}
    times = [value / means.loc[(name, 1.0, "literal"), "mu"] for name, value in printed.items()]
    yield f"lower in {better('mu')} of {cells} cells"
    yield f"at ε = 1 it is {min(times):.1f} to {max(times):.0f} times below the printed values"
    spread = {name: spread_of_errors(name) for name in printed}
    needed = [value * spread[name] for name, value in printed.items()]
    here = [mean * spread[name] for (name, _, method), mean in means["mu"].items() if method == "literal"]
    yield (
        f"with the upper bound as derived here the printed values say that queries err {n(min(needed), 2)} to "
        f"{max(needed):.0f} times as much as the worst entry of a CPD, where they err {n(min(here), 2)} to "
        f"{n(max(here), 2)} times as much at every ε"
    )
    yield (
        "`PrivateMLE` as it comes, error of the parameters at ε = 1: "
        + listed("parameters", (1.0, "default"))
        + "; joint KL, beside that of D-Ind as printed: "
        + listed("joint_kl", (1.0, "default"), (1.0, "literal D-Ind"))
    )
    wide = means["parameters"].unstack()

    def change(one, other):
        ratio = wide[one] / wide[other]
        return ", ".join(f"{value:.2f}".removeprefix("0") for value in (ratio.min(), ratio.median(), ratio.max()))

    for words, one, other in (
        ("strengthened in place of literal", "strengthened", "literal"),
        ("weights of 1 in place of the paper's", "no weights", "strengthened"),
        ("equal shares without a first stage", "D-Ind, strengthened", "strengthened"),
        ("a first stage on all records in place of a sample", "no sampling", "strengthened"),
        ("one table a family in place of two, at equal shares,", "one table", "D-Ind, strengthened"),
    ):
        yield f"{words} {change(one, other)}"


def naive():
    rows = kept("bayes-naive")
    means = rows.groupby("epsilon")[list(bayes_naive.METHODS)].mean()
    ten, maximum = means.loc[10.0], means.loc[300.0]
    noisy = means[["laplace", "fourier", "fourier_none"]].max(axis=1)
    yield (
        f"mean accuracies at ε = 10, {rows['repeat'].nunique()} repeats: Laplace {n(ten['laplace'])}, Fourier with the "
        f"least increment {n(ten['fourier'])}, as printed {n(ten['fourier_printed'])}, exact {n(ten['exact'])}; with "
        f"the least increment below Laplace at {int((means['fourier'] < means['laplace']).sum())} of {len(means)} ε"
    )
    ahead = {number: int((means[f"sampler_{number}"] > noisy).sum()) for number in bayes_naive.DRAWS}
    possible = int(means["sampler_paper"].notna().sum())
    yield (
        f"one draw, which is what is paid for, leads the noisy updates at {int((means['sampler'] > noisy).sum())} of "
        f"{len(means)} ε ({n(ten['sampler'])} at ε = 10); with the printed truncation, possible at {possible} of them, "
        f"one draw at {int((means['sampler_paper'] > noisy).sum())}, and the mean of "
        + ", ".join(f"{number:,} draws at {times}" for number, times in ahead.items())
        + f" (not private at the price of one); at ε = 300 Laplace has {n(maximum['laplace'])}, a thousand draws "
        f"{n(maximum['sampler_1000'])}"
    )


def linear():
    rows = kept("bayes-linear")
    medians = rows.groupby("precision").median(numeric_only=True)
    cost = medians["epsilon_untempered"]
    yield (
        f"at little prior an untempered draw costs ε = {n(cost.loc[10.0])} (b = 10), and {n(cost.loc[10_000.0])} at "
        f"b = 10,000; tempered to ε = 1 the error is "
        f"{n(medians.loc[10.0, 'tempered_1'] / medians.loc[10.0, 'untempered'])} times as large (medians of "
        f"{rows['repeat'].nunique()} repeats)"
    )


def proposition_1():
    """One count with noise of scale 1: the probability of discrete noise beyond the printed bound, log(1 / p)."""
    promised = 0.0499
    beyond = math.floor(math.log(1 / promised)) + 1
    yield f"it fails with probability {n(2 * math.exp(-beyond) / (1 + math.exp(-1)))} where {n(promised)} was promised"


CLAIMS = {
    "cgm-chain": lambda: divergence("cgm-chain", "chain"),
    "cgm-er": lambda: divergence("cgm-er", "Erdős–Rényi graph"),
    "cgm-scatter": scatter,
    "cgm-mobility": mobility,
    "cgm-pathologies": pathologies,
    "vips-lda": lda,
    "vips-logistic": logistic,
    "vips-sbn": sigmoid,
    "dd-networks": networks,
    "bayes-naive": naive,
    "bayes-linear": linear,
    "proposition 1": proposition_1,
}


def page():
    return " ".join((DOCS / "papers.md").read_text().split())


@pytest.mark.parametrize("name", CLAIMS)
def test_what_the_page_says_is_computed_from_kept_results(name):
    text = page()
    for sentence in CLAIMS[name]():
        assert sentence in text


def test_the_page_has_no_number_that_is_not_computed():
    text = page()
    for claims in CLAIMS.values():
        for sentence in sorted(claims(), key=len, reverse=True):
            text = text.replace(sentence, " ")
    left = NO_RESULT.sub(" ", text)
    assert not re.findall(r".{0,40}\d.{0,40}", left)


def test_the_divergences_of_cgm_em_that_the_security_page_quotes_are_those_of_the_experiment():
    medians = kept("cgm-chain").groupby(["epsilon", "size"]).median(numeric_only=True).loc[(1.0, 100_000)]
    text = (DOCS.parent / "SECURITY.md").read_text()
    assert f"KL {n(medians['published_4'])} after 4 iterations, {n(medians['published_64'])} after 64" in text
    assert f"the likelihood of the noise: {n(medians['collective'])} |" in text


def test_the_theory_names_tests_and_functions_that_exist():
    text = (DOCS / "papers_theory.md").read_text()
    for path, name in re.findall(r"`([a-z_/]+\.py)::(\w+)`", text):
        assert f"def {name}(" in (DOCS.parent / "tests" / path).read_text()
    for room, name in re.findall(r"`(?:dp\.)?(papers|evaluation|inference|release)\.(\w+)", text):
        assert hasattr(import_module(f"pgmpy_dp.{room}"), name)
