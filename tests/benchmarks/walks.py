"""How far a reader walks: distinct functions and files of the package on the way through five common tasks.

Counted with `sys.setprofile` on the second run, once imports are done and caches are warm:

    python tests/benchmarks/walks.py            # one line a walk
    python tests/benchmarks/walks.py --listed   # and the functions of each
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import numpy as np
import pandas as pd

import pgmpy_dp as dp

PACKAGE = str(Path(dp.__file__).parent)
EDGES = [("a", "b"), ("b", "c"), ("a", "d")]
SCHEMA = dp.Schema({variable: ["x", "y", "z"] for variable in "abcd"})


def walked(task: Callable[[], Any]) -> set[CodeType]:
    """Code objects of the package's functions that a task calls."""
    found: set[CodeType] = set()

    def note(frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(PACKAGE) and not code.co_name.startswith("<"):
            found.add(code)

    task()
    sys.setprofile(note)
    try:
        task()
    finally:
        sys.setprofile(None)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--listed", action="store_true", help="also print the functions, by file")
    listed = parser.parse_args().listed
    warnings.simplefilter("ignore")
    os.environ["TQDM_DISABLE"] = "1"
    draws = np.random.default_rng(0).integers(3, size=(1000, 4))
    frame = pd.DataFrame({v: np.array(["x", "y", "z"])[column] for v, column in zip("abcd", draws.T, strict=True)})
    with tempfile.TemporaryDirectory() as folder:
        csv, release = Path(folder) / "records.csv", Path(folder) / "release.zip"
        frame.to_csv(csv, index=False)
        data = dp.PrivateDataset(frame, SCHEMA, dp.PrivacyBudget(9.0))
        data.measure([("a", "b"), ("b", "c"), ("a", "d")], epsilon=1.0).save(release)

        def csv_to_table() -> None:
            dp.PrivateDataset(csv, SCHEMA, dp.PrivacyBudget(1.0)).measure([("a", "b")], epsilon=1.0)

        def frame_to_network() -> None:
            dp.PrivateBayesianNetwork(EDGES).fit(frame, estimator=dp.PrivateMLE(epsilon=1.0, state_names=SCHEMA))

        def release_to_bound() -> None:
            network = dp.PrivateBayesianNetwork(EDGES).fit(dp.NoisyMarginals.load(release), dp.CollectiveEM())
            network.query(["d"], evidence={"c": "x"}, interval=0.9)

        def frame_to_mixture() -> None:
            mixture = dp.PairwiseMixture(1.0, 1e-6, SCHEMA, components=3, members=1).fit(frame).network_
            mixture.simulate(100, seed=1)

        def counts_to_topics() -> None:
            dp.PrivateLDA(2, 1.0, 1e-6, steps=3, document_length=9).fit(np.tile([[3, 1, 0, 5], [0, 4, 4, 1]], (200, 1)))

        walks = {  # the most functions and files that each is to pass
            "CSV file to noisy table": (csv_to_table, 105, 27),
            "data frame to network of PrivateMLE": (frame_to_network, 120, 28),
            "release file to a 90 % bound": (release_to_bound, 200, 35),
            "data frame to synthetic records of a mixture": (frame_to_mixture, 150, 30),
            "word counts to private topics": (counts_to_topics, 100, 20),
        }
        for name, (task, most, files) in walks.items():
            codes = walked(task)
            by_file = Counter(str(Path(code.co_filename).relative_to(PACKAGE)) for code in codes)
            print(f"{name}: {len(codes)} functions in {len(by_file)} files (at most {most} in {files})")
            for file in sorted(by_file) if listed else ():
                held = [code for code in codes if code.co_filename.endswith(file)]
                names = [code.co_qualname for code in sorted(held, key=lambda code: code.co_firstlineno)]
                print(f"    {file} ({len(names)}): {', '.join(names)}")


if __name__ == "__main__":
    main()
