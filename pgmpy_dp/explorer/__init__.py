"""One self-contained page that answers questions to a model in a browser, with bounds.

The page holds the tables of the model and of the draws from which bounds are computed, and a small interpreter in
JavaScript that answers as `query` does. It fetches nothing, and all of it follows from the release.
"""

from pgmpy_dp.explorer.page import ExplorerPage as ExplorerPage
from pgmpy_dp.explorer.page import explore as explore
