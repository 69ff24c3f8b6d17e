"""Pictures of a result: matplotlib figures, made without pyplot; `offered` hands them to it where it shows them."""

from basq.plots.audits import plot_calibration
from basq.plots.certificate import plot_certificate
from basq.plots.corner import plot_corner
from basq.plots.picture import offered
from basq.plots.predictive import plot_predictive
from basq.plots.run import plot_run, plot_time
from basq.plots.sensitivity import plot_sensitivity
from basq.plots.slices import plot_slices

__all__ = [
    "offered",
    "plot_calibration",
    "plot_certificate",
    "plot_corner",
    "plot_predictive",
    "plot_run",
    "plot_sensitivity",
    "plot_slices",
    "plot_time",
]
