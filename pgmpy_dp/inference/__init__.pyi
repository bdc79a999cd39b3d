"""The names of the room, read by lazy_loader and by type checkers."""

from .collective.duals import NLBP as NLBP
from .collective.duals import CollectiveMarginals as CollectiveMarginals
from .collective.duals import counts_by_dual as counts_by_dual
from .collective.noise_laws import GaussianNoise as GaussianNoise
from .collective.noise_laws import LaplaceNoise as LaplaceNoise
from .collective.noise_laws import SmoothedLaplaceNoise as SmoothedLaplaceNoise
from .mixtures.balanced_records import draw_records as draw_records
from .mixtures.fit.ensemble import MixtureFit as MixtureFit
from .mixtures.fit.ensemble import disagreement as disagreement
from .mixtures.fit.ensemble import fit_mixture as fit_mixture
from .mixtures.mixture import AnswerTooLargeError as AnswerTooLargeError
from .mixtures.mixture import Mixture as Mixture
from .tables.table import Layout as Layout
from .tables.table import Table as Table
from .trees.conditioning import Maximisation as Maximisation
from .trees.factor_graph import FactorGraph as FactorGraph
from .trees.factor_graph import build_engine as build_engine
from .trees.junction_tree import Calibration as Calibration
from .trees.junction_tree import JunctionTree as JunctionTree
from .trees.junction_tree import TreeTooLargeError as TreeTooLargeError
from .trees.junction_tree import sample as sample
