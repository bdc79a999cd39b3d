"""Search of graphs in private records, or in releases of them."""

from pgmpy_dp.structure.noisy_score import NoisyScore
from pgmpy_dp.structure.private_structure_search import PrivateStructureSearch

__all__ = ["NoisyScore", "PrivateStructureSearch"]
