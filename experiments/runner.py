"""Runner of experiments: trials in at most two processes, a CSV that grows as they finish, a figure with a caption.

A stopped run can be resumed: trials whose rows are in the CSV are not run again.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import matplotlib
import pandas as pd
from matplotlib.figure import Figure
from tqdm import tqdm

from experiments.catalogue import load, run_trial, start
from experiments.drawing import add_caption
from pgmpy_dp import __version__
from pgmpy_dp._files import replacing

Trial = Mapping[str, Any]
PROCESSES = 2


@dataclass(frozen=True)
class Experiment:
    """Definition of an experiment for the runner.

    Attributes
    ----------
    trials : callable
        Maps the flag `quick` to the trials, which are mappings of the same names to texts and numbers. A trial depends
        only on them, seeds included.
    run : callable
        Maps a trial to its results, one mapping per row, with the names in `results` and none of the trial's.
    results : tuple of str
        Names of the results.
    figure : callable
        Maps all rows of a run to a figure without caption.
    caption : callable
        Maps all rows of a run to paragraphs of text: the paper's claim, the outcome, and why they differ.
    processes : int
        Largest number of concurrent processes; 1 if times are measured.
    version : int
        Incremented when the meaning of rows changes, here or in the library; rows of other versions are refused.
    """

    trials: Callable[[bool], list[dict[str, Any]]]
    run: Callable[..., list[dict[str, Any]]]
    results: tuple[str, ...]
    figure: Callable[[pd.DataFrame], Figure]
    caption: Callable[[pd.DataFrame], str]
    processes: int = PROCESSES
    version: int = 1


def reproduce(name: str, out: Path, quick: bool = False, processes: int = PROCESSES) -> list[Path]:
    """Run the missing trials of an experiment, then draw it.

    Parameters
    ----------
    name : str
        Name in the catalogue.
    out : Path
        Output folder; created if missing.
    quick : bool
        Whether to run few and small trials, in under 40 seconds on two cores.
    processes : int
        Number of processes; 1 to run in this process.

    Returns
    -------
    list of Path
        The CSV, the figure as PNG and SVG, and the caption as text.

    Raises
    ------
    ValueError
        If the folder has a CSV of this name from another version.
    """
    experiment: Experiment = load(name)
    trials = experiment.trials(quick)
    out.mkdir(parents=True, exist_ok=True)
    path = out / f"{name}.csv"
    keys = list(trials[0])
    version = f"{__version__}-{experiment.version}"
    columns = [*keys, "rows", "version", "private", *experiment.results]
    rows = _finished(path, columns, version)
    done = _identities(rows, keys)
    missing = [trial for trial in trials if _identity(trial) not in done]
    with tqdm(total=len(trials), initial=len(trials) - len(missing), desc=name, disable=None) as bar:
        for trial, results in _results(name, missing, min(processes, experiment.processes, len(missing))):
            lines = [
                {**trial, "rows": len(results), "version": version, "private": False, **result} for result in results
            ]
            _append(path, pd.DataFrame(lines, columns=columns))
            bar.update()
    return _draw(name, experiment, path, columns, trials)


def _results(name: str, trials: list[dict[str, Any]], processes: int) -> Iterable[tuple[Trial, list[dict[str, Any]]]]:
    if processes <= 1:
        for trial in trials:
            yield trial, run_trial(name, trial)
        return
    context = multiprocessing.get_context("spawn")  # threads of numerical libraries do not survive a fork
    with ProcessPoolExecutor(processes, context, initializer=start) as pool:
        futures = {pool.submit(run_trial, name, trial): trial for trial in trials}
        try:
            for future in as_completed(futures):
                yield futures[future], future.result()
        except BaseException:  # also on an interrupt, which reaches the running trials; they are lost
            pool.shutdown(cancel_futures=True)
            raise


def _append(path: Path, frame: pd.DataFrame) -> None:
    """Append the rows of a trial in one write, so that a kill leaves at most one incomplete line."""
    text = frame.to_csv(index=False, header=not path.exists(), lineterminator="\n")
    with path.open("ab", buffering=0) as handle:
        handle.write(text.encode())
        os.fsync(handle.fileno())


def _finished(path: Path, columns: list[str], version: str) -> pd.DataFrame:
    """Return the rows of complete trials, and remove incomplete ones, left by a kill, from the file."""
    if not path.exists():
        return pd.DataFrame(columns=columns)
    text = path.read_text()
    whole = text[: text.rfind("\n") + 1]
    if not whole:
        path.unlink()
        return pd.DataFrame(columns=columns)
    frame = pd.read_csv(StringIO(whole))
    if list(frame.columns) != columns or (frame["version"] != version).any():
        raise ValueError(f"{path} holds another experiment or version: move it away, or choose another --out.")
    keys = columns[: columns.index("rows")]
    identities = _identities(frame, keys)
    counts: dict[tuple[str, ...], int] = {}
    for identity in identities:
        counts[identity] = counts.get(identity, 0) + 1
    complete = [counts[identity] == rows for identity, rows in zip(identities, frame["rows"], strict=True)]
    if whole != text or not all(complete):
        frame = frame[complete]
        _write(path, frame)
    return frame


def _write(path: Path, frame: pd.DataFrame) -> None:
    with replacing(path) as handle:
        handle.write(frame.to_csv(index=False, lineterminator="\n").encode())


def _identities(frame: pd.DataFrame, keys: list[str]) -> list[tuple[str, ...]]:
    return [_identity(dict(zip(keys, row, strict=True))) for row in frame[keys].itertuples(index=False)]


def _identity(trial: Trial) -> tuple[str, ...]:
    """Return a trial's values as text, the same for numbers from Python and from the file."""
    values = trial.values()
    return tuple(value if isinstance(value, str) else repr(float(value)) for value in values)


def _draw(
    name: str, experiment: Experiment, path: Path, columns: list[str], trials: list[dict[str, Any]]
) -> list[Path]:
    """Sort the CSV, whose rows are written in any order, and draw the rows of these trials."""
    keys = columns[: columns.index("rows")]
    rows = pd.read_csv(path)
    order = {_identity(trial): number for number, trial in enumerate(trials)}
    place = pd.Series([order.get(identity, len(order)) for identity in _identities(rows, keys)], index=rows.index)
    rows = rows.loc[place.sort_values(kind="stable").index]
    _write(path, rows)
    rows = rows[(place < len(order)).loc[rows.index]].reset_index(drop=True)
    paragraphs = [" ".join(paragraph.split()) for paragraph in experiment.caption(rows).strip().split("\n\n")]
    paragraphs.append("Noise is simulated with fixed seeds: nothing here is private.")
    figure = experiment.figure(rows)
    add_caption(figure, paragraphs)
    written = [path, *(path.with_suffix(suffix) for suffix in (".png", ".svg", ".txt"))]
    with matplotlib.rc_context({"svg.hashsalt": name}):
        figure.savefig(written[1], dpi=130, metadata={"Software": None})
        figure.savefig(written[2], metadata={"Date": None})
    written[3].write_text("\n\n".join(paragraphs) + "\n")
    return written
