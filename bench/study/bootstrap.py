"""How sure the mean over positions is."""

from __future__ import annotations

import numpy as np

try:
    from scipy.stats import bootstrap
except ImportError:
    raise SystemExit("the intervals need scipy: pip install scipy") from None

_RESAMPLES = 2000


def mean_interval(values: np.ndarray) -> tuple[float, float]:
    """95% percentile bootstrap interval of the mean, values of shape (n,); the same for the same values."""
    dice = np.random.default_rng(0)
    found = bootstrap((values,), np.mean, n_resamples=_RESAMPLES, method="percentile", rng=dice).confidence_interval
    return float(found.low), float(found.high)
