"""The posterior as the calls of a certificate have it."""

from typing import TYPE_CHECKING

import numpy as np

from basq.errors import InputError
from basq.results.export import Draws

if TYPE_CHECKING:
    from basq.results.result import Result


def draws(result: "Result") -> Draws:
    """The calls of the certificate with their smoothed weights, those of no weight left out."""
    found = result.certificate
    if found is None:
        raise InputError("exact=True needs a certificate: result.certify(log_likelihood) makes one.")
    if result.cheap:
        raise InputError(
            "exact=True gives the parameters that calls are made with; this result has others "
            f"({', '.join(result.cheap)}). See result.certificate.x and .weights."
        )
    weights = found.weights
    some = weights > 0.0
    if not some.any():
        raise InputError(f"No call of the certificate has a weight. {found.message}")
    x = found.x[some]
    try:
        log_prior = result.prior.log_pdf(x)
    except InputError:  # a transform without a density
        log_prior = None
    return Draws(result.names, x, np.log(weights[some]), found.log_likelihood[some], log_prior)
