"""How long the page of a model takes in Chromium: to open, and from a click to all bars.

    python tests/benchmarks/explorer.py FOLDER

FOLDER as for `synthesis.py`. Prints, for a mixture of Adult and a network of ALARM (20,000 records, epsilon = 1), with
bounds and without, the file's megabytes, the milliseconds until it has answered the first question, and the median and
largest of fifty clicks, each on a state at random with up to four others given, timed in the page (`performance.now`)
until the layout of the new bars is known. Needs chromium, chromedriver and selenium.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from synthesis import adult

import pgmpy_dp as dp
from pgmpy_dp.evaluation import bnlearn_network
from pgmpy_dp.networks.network import simulate

CLICKS = """
let seed = 1;
const random = (n) => { seed = seed * 48271 % 2147483647; return seed % n; };
const { page, model } = explorer, times = [];
while (times.length < 50) {
  if (page.now.given.size > 4) document.getElementById('reset').click();
  const rows = [...document.querySelectorAll('.state:not([aria-disabled=true]):not([aria-pressed=true])')];
  const begin = performance.now();
  rows[random(rows.length)].click();
  document.body.getBoundingClientRect();
  times.push(performance.now() - begin);
}
times.sort((a, b) => a - b);
return [times[25], times[49]];
"""


def models(folder: Path) -> dict[str, Any]:
    """Return the four models by name."""
    alarm = bnlearn_network("alarm")
    schema = dp.Schema.from_model(alarm)
    data = dp.PrivateDataset(simulate(alarm, 20_000, 0), schema, dp.PrivacyBudget(1.0), noise=dp.SimulatedNoise(1))
    network = dp.PrivateBayesianNetwork(alarm.edges())
    cliques, weights = dp.plan_measurements(network, schema)
    network.fit(data.measure(cliques, 1.0, weights=weights))
    plain = dp.PrivateBayesianNetwork.of(network)
    plain._forget()
    frame, _, schema = adult(folder)
    data = dp.PrivateDataset(frame, schema, dp.PrivacyBudget(1.0, 1e-9), noise=dp.SimulatedNoise(1))
    mixture = dp.PairwiseMixture(epsilon=1.0, delta=1e-9, state_names=schema).fit(data).network_
    alone = dp.PrivateMixtureNetwork(schema, mixture.mixture_, len(frame), mixture.guarantee_)
    return {"alarm": network, "alarm, no bounds": plain, "adult": mixture, "adult, no bounds": alone}


def main() -> None:
    """Print one line a page."""
    options = webdriver.ChromeOptions()
    for flag in ("--headless", "--no-sandbox", "--disable-gpu", "--window-size=1400,900"):
        options.add_argument(flag)
    browser = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
    print("page                MB  open ms  click ms: median  largest")
    with tempfile.TemporaryDirectory() as place:
        for name, model in models(Path(sys.argv[1])).items():
            file = Path(place) / "page.html"
            model.explore(file)
            browser.get(file.as_uri())
            ready = "const [done] = arguments; explorer.ready.then(() => done(performance.now()))"
            opened = browser.execute_async_script(ready)
            median, largest = browser.execute_script(CLICKS)
            print(
                f"{name:17} {file.stat().st_size / 1e6:4.1f}  {opened:7.0f}  {median:16.1f}  {largest:7.1f}", flush=True
            )
    browser.quit()


if __name__ == "__main__":
    main()
