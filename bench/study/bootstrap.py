"""How sure the mean over positions is."""

from __future__ import annotations

import numpy as np

_RESAMPLES = 2000


def mean_interval(values: np.ndarray) -> tuple[float, float]:
    """95% bootstrap interval of the mean, shape (n,); the same for the same values."""
    means = np.random.default_rng(0).choice(values, (_RESAMPLES, len(values))).mean(axis=1)
    low, high = np.quantile(means, (0.025, 0.975))
    return float(low), float(high)
