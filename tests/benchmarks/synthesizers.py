"""How close synthesizers come to records without a network given: ours, and others' by their authors' code.

    python tests/benchmarks/synthesizers.py FOLDER ENVIRONMENTS [--tables adult10,rand,fair] [--epsilons 1,3,0.3]
        [--seeds 3] [--only mixture,dpmm_mst,...] [--limit 600] [--out docs/pictures/synthesizers.csv]

FOLDER holds the census records (see synthesis.py). ENVIRONMENTS holds an environment of Python for each library, by the
names and with the packages that PEERS lists: `python -m venv ENVIRONMENTS/dpmm`, `ENVIRONMENTS/dpmm/bin/pip install
dpmm==0.1.9`. What is in no package registry is read from the files of its repository in a folder `code` there, such as
`ENVIRONMENTS/dpsynth/code`.

Each run, of a synthesizer, a table, an epsilon and a seed, is a process of its own. It gets the positions of public
states or bins, the numbers of states, and (epsilon, delta) of adding or removing one record, which is what all of these
count; what a binner of their own would spend is spent on the rest. It adds a row to the table --out, and runs which are
there are not made again: the mean total variation of its synthetic records from the records over all pairs and all
triples of variables, seconds of the processor from the process's start to its end, imports and compilation included,
and its peak memory; or the reason why it has no records, such as --limit seconds of the processor. Settings are the
authors' defaults. Seeds are those of their generators, and not of noise that comes from OpenDP (dpmm, OpenDP).
"""

import itertools
import os
import resource
import signal
import sys
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
from common import Rows, options, peak_megabytes, private, process

DELTA, BYTES = 1e-9, 12 * 2**30
KEY = ["table", "epsilon", "seed", "synthesizer"]
FOUND = ["pairs", "triples", "cpu_seconds", "megabytes", "reason"]
PERSONS = ["age", "workclass", "education", "marital_status", "occupation"]
COLUMNS = [*PERSONS, "relationship", "race", "sex", "hours_per_week", "income"]


@dataclass(frozen=True)
class Problem:
    """Positions of states, the number of states of each column, and what may be spent."""

    frame: pd.DataFrame
    domain: dict[str, int]
    epsilon: float
    delta: float
    seed: int

    @property
    def rho(self) -> float:
        """The largest rho whose zero-concentrated privacy implies (epsilon, delta) (Canonne et al. 2020, cor. 13)."""
        order = 1 + np.geomspace(1e-3, 1e6, 100_000)
        others = np.log1p(-1 / order) + (np.log(1 / self.delta) - np.log(order)) / (order - 1)
        return float(np.max((self.epsilon - others) / order))


def resampled(problem):
    return problem.frame.sample(len(problem.frame), replace=True, random_state=problem.seed)


def ours(problem, fitted):
    import pgmpy_dp as dp

    schema = dp.Schema({name: range(size) for name, size in problem.domain.items()})
    data = private(problem.frame, schema, problem.epsilon, problem.delta, seed=problem.seed)
    network = fitted(dp, problem).fit(data).network_
    return network.simulate(len(problem.frame), seed=problem.seed)


def mixture(problem):
    return ours(problem, lambda dp, p: dp.PairwiseMixture(p.epsilon, p.delta, stages=2))


def told(problem):
    return ours(problem, lambda dp, p: dp.PairwiseMixture(p.epsilon, p.delta, records=len(p.frame)))


def dpmm(problem, model):
    made = model(
        problem.epsilon, problem.delta, domain=problem.domain, random_state=np.random.RandomState(problem.seed)
    )
    made.fit(problem.frame)
    return made.generate(len(problem.frame))


def dpmm_aim(problem):
    from dpmm.models.aim import AIMGM

    return dpmm(problem, AIMGM)


def dpmm_mst(problem):
    from dpmm.models.mst import MSTGM

    return dpmm(problem, MSTGM)


def dpmm_privbayes(problem):
    from dpmm.models.priv_bayes import PrivBayesGM

    return dpmm(problem, PrivBayesGM)


def mbi_aim(problem):
    from aim import AIM
    from mbi import Dataset, Domain

    np.random.seed(problem.seed)  # noqa: NPY002 (the generator that it draws from)
    data = Dataset(problem.frame, Domain(tuple(problem.domain), tuple(problem.domain.values())))
    pairs = [(pair, 1.0) for pair in itertools.combinations(problem.domain, 2) if data.domain.size(pair) <= 10_000]
    return AIM(problem.epsilon, problem.delta).run(data, pairs, len(problem.frame))[1].df


def dpsynth(problem, inner):
    import mbi
    from dpsynth.discrete_mechanisms import DiscreteConfig

    class Config(DiscreteConfig):
        def configure(self, *, zcdp_rho, **others):  # dp-accounting's release asks for no budget at all first
            return super().configure(zcdp_rho=max(zcdp_rho, 1e-9), **others)

    domain = mbi.Domain(tuple(problem.domain), tuple(problem.domain.values()))
    data = mbi.Dataset({name: problem.frame[name].to_numpy() for name in problem.domain}, domain)
    mechanism = Config(inner).calibrate(epsilon=problem.epsilon, delta=problem.delta)
    made = mechanism(np.random.default_rng(problem.seed), data)
    return pd.DataFrame(made.synthetic_data.to_dict())


def dpsynth_swift(problem):
    from dpsynth.discrete_mechanisms import SWIFTConfig

    return dpsynth(problem, SWIFTConfig())


def dpsynth_aim(problem):
    """AIM, whose selection pays what it costs.

    It calls the exponential mechanism as that of a score that only grows with records, which a distance from a model is
    not, and so pays a quarter of what the selection costs; here the usual coefficient of one half replaces that.
    """
    from dpsynth.discrete_mechanisms import AIMConfig, common

    unpaid = common.exponential_mechanism
    common.exponential_mechanism = lambda *given, monotonic: unpaid(*given)
    return dpsynth(problem, AIMConfig())


def opendp(problem, algorithm):
    """A contingency table, its records drawn: rounded, as by default, mbi 1.1.0 links columns that its model does not.

    Pairs of RAND then are .093 from the records at epsilon 1 by MST.
    """
    import opendp.prelude as dp
    import polars as pl

    dp.enable_features("contrib")
    context = dp.Context.compositor(
        data=pl.from_dict({name: problem.frame[name].to_numpy() for name in problem.domain}).lazy(),
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=dp.loss_of(rho=problem.rho),
        split_evenly_over=1,
    )
    cuts = {name: list(range(size - 1)) for name, size in problem.domain.items()}
    table = context.query().select(*problem.domain)
    released = table.contingency_table(cuts=cuts, algorithm=getattr(dp.mbi, algorithm)()).release()
    return pd.DataFrame(released.synthesize(len(problem.frame), "sample").to_dict(as_series=False))


def opendp_aim(problem):
    return opendp(problem, "AIM")


def opendp_mst(problem):
    """MST, with room for rounding errors: with ten columns its selections add up to a bit more than their share."""
    from opendp.extras.mbi import _mst

    _mst.prior = lambda share: share * (1 - 1e-12)
    return opendp(problem, "MST")


def margnet(problem):
    """MargNet, with its settings for Adult, and on a processor: without its figures of a graphic card's memory."""
    import torch
    from method.MargDL.main import MargDLGen

    torch.manual_seed(problem.seed)
    np.random.seed(problem.seed)  # noqa: NPY002
    torch.cuda.reset_peak_memory_stats, torch.cuda.max_memory_allocated = (lambda **_: 0,) * 2
    train = {"selection_iterations": 200, "final_iterations": 200, "lr": 0.001, "batch_size": 512}
    config = {"train": train, "model_params": {"d_layers": [256, 256], "dropout": 0.0}}
    asked = SimpleNamespace(iter=None, lr=None, batch=None, test=False, resample=False)
    with tempfile.TemporaryDirectory() as folder:
        made = MargDLGen(asked, problem.frame, problem.domain, "cpu", config, folder, "gan")
        made.fit_adaptive(problem.rho)
    return pd.DataFrame(made.model.sample(len(problem.frame)), columns=list(problem.domain))


def grem(problem):
    raise NotImplementedError("its code answers tables from noisy residuals and draws no records")


@dataclass(frozen=True)
class Peer:
    """A synthesizer, the name of its environment, what is installed there, and whose files are in its folder `code`."""

    run: Callable[[Problem], pd.DataFrame]
    environment: str = ""
    packages: str = ""
    code: str = ""


_DPMM = ("dpmm", "dpmm==0.1.9")
_DPSYNTH = (
    "dpsynth",
    "mbi==2.0.0 jax==0.11.0 dp-accounting absl-py attrs pydantic pyyaml more-itertools tqdm pandas etils "
    "importlib_resources",
    "google/dpsynth at cf8075f: its root",
)
_OPENDP = ("opendp", "opendp[mbi,polars]==0.16.0 pandas")

# In the order of their times.
PEERS = {
    peer.run.__name__: peer
    for peer in (
        Peer(resampled),
        Peer(mixture),
        Peer(told),
        Peer(dpmm_privbayes, *_DPMM),
        Peer(dpmm_mst, *_DPMM),
        Peer(opendp_mst, *_OPENDP),
        Peer(dpsynth_swift, *_DPSYNTH),
        Peer(
            mbi_aim,
            "mbi",
            "mbi==1.0.0 jax==0.7.1 jaxlib==0.7.1 pandas==2.3.3 matplotlib",
            "ryan112358/private-pgm at 4d2b3c5: its folder mechanisms",
        ),
        Peer(dpmm_aim, *_DPMM),
        Peer(dpsynth_aim, *_DPSYNTH),
        Peer(opendp_aim, *_OPENDP),
        Peer(margnet, "margnet", "torch pandas tomli tqdm matplotlib scikit-learn", "KaiChen9909/margnet at 8b75032"),
        Peer(grem),
    )
}


def alone(name: str, folder: Path, limit: int) -> None:
    """Run one synthesizer in this process: the problem and the records that it makes are files of a folder."""
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 10))
    resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
    warnings.simplefilter("ignore")
    with np.load(folder / "problem.npz") as held:
        names = [str(column) for column in held["names"]]
        frame = pd.DataFrame(held["codes"], columns=names)
        domain = dict(zip(names, map(int, held["sizes"]), strict=True))
        problem = Problem(frame, domain, float(held["epsilon"]), float(held["delta"]), int(held["seed"]))
    made = PEERS[name].run(problem)[names].to_numpy().astype(np.int64)
    np.savez(folder / "made.npz", codes=made, peak=peak_megabytes())


def run(name: str, problem: Problem, environments: Path, limit: int) -> dict[str, object]:
    """Run one synthesizer in a process of its own, and judge its records."""
    import pgmpy_dp as dp
    from pgmpy_dp.evaluation import compare

    peer = PEERS[name]
    python = environments / peer.environment / "bin" / "python" if peer.environment else Path(sys.executable)
    if not python.exists():
        return {"reason": f"no environment {peer.environment}"}
    paths = [str(environments / peer.environment / "code")] if peer.code else []
    paths += [os.environ["PYTHONPATH"]] if not peer.environment and "PYTHONPATH" in os.environ else []
    jax = {"JAX_ENABLE_COMPILATION_CACHE": "false", "JAX_TRACEBACK_FILTERING": "off"}
    changed = {"PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1", **jax}
    with tempfile.TemporaryDirectory() as held, tempfile.TemporaryFile("w+") as outputs:
        folder = Path(held)
        np.savez(
            folder / "problem.npz",
            codes=problem.frame.to_numpy(),
            names=list(problem.domain),
            sizes=list(problem.domain.values()),
            epsilon=problem.epsilon,
            delta=problem.delta,
            seed=problem.seed,
        )
        call = [__file__, "alone", name, str(folder), str(limit)]
        ended = process(*call, python=str(python), stderr=outputs, env=os.environ | changed)
        found = {"cpu_seconds": round(ended.seconds, 1)}
        if ended.status in (-signal.SIGXCPU, -signal.SIGKILL):
            return found | {"reason": f"no records within {limit} seconds of the processor"}
        if ended.status:
            outputs.seek(0)
            lines = outputs.read().strip().splitlines()
            return found | {"reason": (lines or [f"ended with {ended.status}"])[-1][:200]}
        with np.load(folder / "made.npz") as made:
            frame, peak = pd.DataFrame(made["codes"], columns=list(problem.domain)), float(made["peak"])
    schema = dp.Schema({column: range(size) for column, size in problem.domain.items()})
    errors = compare(problem.frame, frame, schema, sizes=(2, 3))["error"]
    pairs, triples = errors.groupby(errors.index.map(len)).mean().round(5)
    return {"pairs": pairs, "triples": triples, **found, "megabytes": round(peak)}


def table(name: str, folder: Path) -> tuple[pd.DataFrame, dict[str, int]]:
    """Positions of states, and numbers of states."""
    from outlook import tables

    from pgmpy_dp.records.frames import encode

    frame, schema = tables(folder)[name.removesuffix("10")]()
    names = COLUMNS if name == "adult10" else list(schema.variables)
    codes = encode(frame, schema, names)
    domain = {column: size for column, size in schema.cardinalities().items() if column in names}
    return pd.DataFrame({column: np.asarray(codes[column], np.int64) for column in domain}), domain


def summary(rows: pd.DataFrame, epsilon: float) -> str:
    """A table of the pairs / triples of each synthesizer at one epsilon, means over seeds, as Markdown."""
    own = rows[rows["epsilon"] == epsilon]
    places = list(own["table"].unique())
    lines = ["| synthesizer | " + " | ".join(f"{place}, pairs / triples | CPU s, MB" for place in places) + " |"]
    lines.append("|---" * (1 + 2 * len(places)) + "|")
    for name in PEERS:
        cells = []
        for place in places:
            found = own[(own["synthesizer"] == name) & (own["table"] == place)][FOUND[:-1]].mean()
            pairs, triples = (f"{found[size]:.4f}".lstrip("0") for size in FOUND[:2])
            cells.append(f"{pairs} / {triples}" if found["pairs"] > 0 else "")
            cells.append(f"{found['cpu_seconds']:.0f}, {found['megabytes']:.0f}" if found["pairs"] > 0 else "")
        if any(cells):
            lines.append(f"| {name.replace('_', ' ')} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def draw(rows: pd.DataFrame, out: Path) -> None:
    """Draw the errors of pairs (filled) and of triples (empty), means over seeds: a panel a table, a line a peer."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import NullFormatter

    ticks = [0.003, 0.01, 0.03, 0.1, 0.3]
    made = rows.dropna(subset="pairs")
    places = list(made["table"].unique())
    names = [name for name in PEERS if name in set(made["synthesizer"])]
    page = Figure(figsize=(9, 1.6 + 0.27 * len(names)), layout="constrained")
    for axes, place in zip(
        page.subplots(1, len(places), sharex=True, sharey=True, squeeze=False)[0], places, strict=True
    ):
        for color, epsilon in enumerate(sorted(made["epsilon"].unique())):
            own = made[(made["table"] == place) & (made["epsilon"] == epsilon)].groupby("synthesizer")
            for size, filled in (("pairs", f"C{color}"), ("triples", "none")):
                found = own[size].mean()
                lines = [names.index(name) for name in found.index]
                label = f"ε = {epsilon:g}" if filled != "none" else None
                axes.scatter(found, lines, edgecolors=f"C{color}", facecolors=filled, label=label)
        axes.set(title=place, xscale="log", ylim=(len(names) - 0.5, -0.5))
        axes.set_yticks(range(len(names)), [name.replace("_", " ") for name in names])
        axes.set_xticks(ticks, [f"{tick:g}".lstrip("0") for tick in ticks])
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.grid(axis="y", alpha=0.4)
    page.supxlabel("mean total variation of pairs (empty: triples)", fontsize="medium")
    page.legend(*page.axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=3, frameon=False)
    page.savefig(out, metadata={"Date": None})


def main() -> None:
    """Make the runs that are not in the table, and print a summary."""
    if sys.argv[1:2] == ["alone"]:
        return alone(sys.argv[2], Path(sys.argv[3]), int(sys.argv[4]))
    asked = options(
        "folder", "environments", tables=("adult10", "rand", "fair"), epsilons=(1.0, 3.0, 0.3), only=tuple(PEERS),
        seeds=3, limit=600, out=Path("docs/pictures/synthesizers.csv"),
    )  # fmt: skip
    warnings.simplefilter("ignore")
    kept = Rows(asked.out, KEY, FOUND)
    known = {name: table(name, asked.folder) for name in asked.tables}
    for seed, epsilon, name, place in itertools.product(range(asked.seeds), asked.epsilons, asked.only, known):
        key = (place, epsilon, seed, name)
        if key not in kept:
            found = run(name, Problem(*known[place], epsilon, DELTA, seed), asked.environments, asked.limit)
            print(*key, found, flush=True)
            kept.add(key, found)
    rows = kept.read()
    for epsilon in rows["epsilon"].unique():
        print(f"epsilon {epsilon:g}\n\n{summary(rows, epsilon)}\n")
    return None


if __name__ == "__main__":
    main()
