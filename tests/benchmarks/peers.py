"""Beside mbi 2.0.0 and pgmpy's own estimator, always as a ratio in one run: `pip install 'pgmpy-dp[bench]'`.

python tests/benchmarks/peers.py [case ...]
"""

import math
import os
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2]))
from experiments.peer_comparisons import CASES, calibration, fresh_process, near_optimum, table_cells


def show(what, comparison) -> None:
    bound = "" if comparison.reached else "at least "
    own = "" if math.isnan(comparison.pgmpy) else f"   pgmpy {comparison.pgmpy:.4g}"
    ours, theirs = comparison.ours, comparison.theirs
    print(f"  {what:<50}{ours:>12.4g}{theirs:>12.4g}   {bound}{comparison.ratio:.2f}{own}", flush=True)


if __name__ == "__main__":
    print(f"ours, mbi's, and their ratio; load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    for case in sys.argv[1:] or CASES:
        print(case)
        for name, comparison in fresh_process(case).items():
            show(f"fresh process to a fitted model: {name}", comparison)
        show("calibration, seconds", calibration(case))
        nearest, estimators = near_optimum(case)
        show("to 0.1 % of the optimum, seconds", nearest)
        print("    " + ", ".join(f"{name} {seconds:.3g}" for name, seconds in estimators.items()))
        show("table cells", table_cells(case))
