"""The numbers of the guide for several holders are computed from its tables: an edited number is found."""

from pathlib import Path

import pandas as pd

DOCS = Path(__file__).parents[1] / "docs"
GUIDE = " ".join((DOCS / "guides" / "holders.md").read_text(encoding="utf-8").split())


def listed(values):
    *first, last = values
    return f"{', '.join(first)} and {last}"


def percent(shares):
    return listed([f"{100 * share:.0f} %" for share in shares])


def ways(column):
    """The mean over seeds by set and number of sites, with a column per way."""
    rows = pd.read_csv(DOCS / "pictures" / "holders.csv")
    return rows.groupby(["set", "sites", "way"])[column].mean().unstack().dropna(how="all")


def gain(column, name):
    """How much less error partial pooling has than the better of alone and pooled, by the number of sites."""
    own = ways(column).loc[name]
    return 1 - own["partial"] / own[["alone", "pooled"]].min(axis=1)


def sentences():
    pairs, queries, divergence = ways("overall_pairs"), ways("overall_queries"), ways("overall_kl")
    optimum = [(own["pooled"] / own["optimum"]) for own in (pairs, queries, divergence)]
    average = pairs["average"] / pairs["pooled"]
    yield (
        f"Over all records a pooled union has at most {optimum[0].max():.2f} times the error of the optimum for pairs, "
        f"{optimum[1].max():.2f} times for P(income | one state), and {optimum[2].max():.2f} times the divergence on "
        f"alarm. Averages of networks have {average.min():.2f} to {average.max():.2f} times the union's error of pairs."
    )
    better = [gain(column, "adult") for column in ("site_pairs", "site_queries")] + [gain("site_kl", "alarm")]
    assert min(own.min() for own in better) > 0
    yield (
        f"partial pooling is better than both each site alone and pooling where sites are random: with 2, 5 and 20 "
        f"sites pairs by {percent(better[0])}, answers given one state by {percent(better[1])}, and the divergence on "
        f"alarm by {percent(better[2])}."
    )
    born = [gain(column, "born") for column in ("site_pairs", "site_queries")]
    assert min(own.min() for own in born) > 0
    yield f"With as many places of birth pairs are better by {percent(born[0])}, and answers by {percent(born[1])}."
    rows = pd.read_csv(DOCS / "pictures" / "holders.csv").set_index(["set", "sites", "seed", "way"])
    seeds = rows[["site_pairs", "site_queries", "site_kl"]].stack().unstack("way")
    behind = (seeds["partial"] / seeds[["alone", "pooled"]].min(axis=1)).groupby(level=[0, 1, 3]).max() - 1
    worst = behind.pop(("born", 20, "site_queries"))
    yield (
        f"In a single seed it is at most {100 * behind.max():.0f} % behind the better of them, but for answers within "
        f"20 places of birth, where it is up to {100 * worst:.0f} % behind."
    )
    rows = pd.read_csv(DOCS / "pictures" / "holders_coverage.csv")
    means = rows.groupby(["difference", "way"])[["covered", "error"]].mean().unstack()
    partial, apart = (means["covered"][way] for way in ("partial", "apart"))
    error = means["error"]["partial"] / means["error"]["apart"]
    yield (
        f"90 % bounds within a site contain it for at least {100 * apart.min():.0f} % of answers if each site is "
        f"fitted apart. Those of partial pooling contain {percent(partial)} if sites are alike, differ a little and "
        f"differ much, and its answers have {listed([f'{ratio:.2f}' for ratio in error])} times the error"
    )
    numbers = [own.groupby("set")["seed"].nunique().unique().tolist() for own in (rows, seeds.reset_index())]
    yield f"holders_coverage.csv`, means of {numbers[0][0]} seeds, on some of which variants were compared."
    yield f"means of {numbers[1][0]} seeds): over all records"
    assert [len(own) for own in numbers] == [1, 1]


def test_sentences_say_what_the_tables_hold():
    for sentence in sentences():
        assert sentence in GUIDE


if __name__ == "__main__":
    print(*sentences(), sep="\n")
