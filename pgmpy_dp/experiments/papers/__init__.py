"""What papers do otherwise, to compare with: their accountants, and their mechanisms as printed."""

from pgmpy_dp.experiments.papers.accounting import calibrate, price, printed_epsilon

__all__ = ["calibrate", "price", "printed_epsilon"]
