"""The built site, in the folder SITE: no page scrolls sideways on a desktop or a phone, and no box is cut."""

import os
from pathlib import Path

import pytest

PAGES = ["index", "start", "estimators", "from_pgmpy", "benchmarks", "papers", "guides/officer", "guides/publish"]
PAGES += ["api/estimators", "api/generated/pgmpy_dp.PrivateBayesianNetwork", "project/CHANGELOG", "from_0_3"]
PAGES += ["tutorials/1_a_private_network_in_five_minutes"]
WIDER = """
const inner = document.documentElement.clientWidth;
const scrolls = (e) => e && (/auto|scroll/.test(getComputedStyle(e).overflowX) || scrolls(e.parentElement));
const cut = [...document.querySelectorAll('article :is(pre, table, img, iframe, .sd-card, p, dt)')].filter((e) =>
  e.getBoundingClientRect().right > inner + 1 && !scrolls(e.parentElement) && !scrolls(e));
return [document.documentElement.scrollWidth - inner, cut.map((e) => e.outerHTML.slice(0, 80))];
"""


@pytest.mark.skipif("SITE" not in os.environ, reason="SITE names no folder of the built site")
@pytest.mark.parametrize("width", [1400, 390])
@pytest.mark.parametrize("page", PAGES)
def test_nothing_is_wider_than_the_window(browser, page, width):
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.get((Path(os.environ["SITE"]).resolve() / f"{page}.html").as_uri())
    assert browser.execute_script(WIDER) == [0, []]
