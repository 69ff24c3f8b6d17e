"""What of a result can be drawn: methods of `Result`, whose figures show themselves."""

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, cast

from numpy.typing import ArrayLike

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from basq.results.result import Result


class Drawable:
    """The pictures of a result."""

    def plot_corner(
        self,
        *,
        names: str | Sequence[str] | None = None,
        truths: ArrayLike | Mapping[str, float] | None = None,
        points: bool | None = None,
        prior: bool = True,
        others: "Mapping[str, Result] | None" = None,
        labels: Sequence[str] | Mapping[str, str] | None = None,
        figsize: tuple[float, float] | None = None,
        color: str = "#0072B2",
    ) -> "Figure":
        """Draw the marginals of one and two parameters, with the evaluated points.

        Parameters
        ----------
        names : str or list of str, optional
            Only these parameters, in this order.
        truths : dict or (d,) array, optional
            Marked where known: by name, or one for each parameter.
        points : bool, optional
            Show the evaluated points; by default where there are at most 300.
        prior : bool
            Show the prior beside every marginal.
        others : dict of Result, optional
            Further results by their names in the legend, drawn as lines over the parameters that they share.
        labels : list or dict of str, optional
            Instead of those of the prior.
        figsize : (float, float), optional
            Inches.
        color : str
            Of the posterior.
        """
        return self._draw(
            "plot_corner", names=names, truths=truths, points=points, prior=prior, others=others, labels=labels,
            figsize=figsize, color=color,
        )  # fmt: skip

    def plot_run(self, *, truth: float | None = None) -> "Figure":
        """Draw log Z and its error after every batch, with the audits."""
        return self._draw("plot_run", truth=truth)

    def plot_calibration(self) -> "Figure":
        """Draw how far off the predictions of the batches were, against the normal law."""
        return self._draw("plot_calibration")

    def plot_certificate(self) -> "Figure":
        """Draw what independent calls say about the surrogate."""
        return self._draw("plot_certificate")

    def plot_slices(
        self,
        *,
        names: str | Sequence[str] | None = None,
        through: Literal["best", "mean"] | ArrayLike = "best",
    ) -> "Figure":
        """Draw the surrogate's log-likelihood along every parameter, with its error and the points nearby."""
        return self._draw("plot_slices", names=names, through=through)

    def plot_time(self) -> "Figure":
        """Draw where the time of every batch went."""
        return self._draw("plot_time")

    def plot_predictive(
        self,
        data: ArrayLike | Mapping[str, ArrayLike] | None = None,
        x: ArrayLike | Mapping[str, ArrayLike] | None = None,
        *,
        names: str | int | Sequence[str | int] | None = None,
        noise: Callable[..., Any] | None = None,
    ) -> "Figure":
        """Draw the output over the posterior, median and bands of 68 and 95 %, with the data.

        Parameters
        ----------
        data : array or dict of arrays, optional
            As the output; NaN where there are none.
        x : array or dict of arrays, optional
            What the output is drawn against, its index by default; one for all panels, or as the output.
        names : str, int or list of such, optional
            Keys of a dict, or rows of an output with two axes, to draw; the first six by default.
        noise : callable, optional
            As that of `predict`: draws where 95 % of the data are expected, too.
        """
        return self._draw("plot_predictive", data, x, names=names, noise=noise)

    def report(
        self,
        path: str | os.PathLike[str],
        *,
        title: str | None = None,
        truths: ArrayLike | Mapping[str, float] | None = None,
        truth: float | None = None,
    ) -> None:
        """Write one self-contained HTML page: verdict, posterior, pictures, audits, failures, settings.

        Parameters
        ----------
        path : path
            Of the file.
        title : str, optional
        truths : dict or (d,) array, optional
            Parameters to mark in the corner plot, where known: by name, or one for each.
        truth : float, optional
            True log-evidence, where known.
        """
        from basq.report.page import write_report

        write_report(cast("Result", self), path, title=title, truths=truths, truth=truth)

    def _draw(self, kind: str, *data: Any, **options: Any) -> "Figure":
        """A picture of `basq.plots`, which is imported when the first one is drawn."""
        from basq import plots

        return plots.offered(getattr(plots, kind)(self, *data, **options))
