"""A release is reported on one page of HTML."""

from pgmpy_dp.report.page import render_report, write_report

__all__ = ["render_report", "write_report"]
