"""The net's values, its error and the gradient of that over a batch of positions, in numba on all cores."""

from __future__ import annotations

import numba
import numpy as np
from numba import njit, prange

from netfit.network import BUCKETS, FEATURES, UNIT_CP, Array, Net

_FIRST_DECAY, _SECOND_DECAY, _EPSILON = 0.9, 0.999, 1e-8
_WEIGHT_DECAY = 0.01
_CHUNK = 256
"""Positions whose gradient is added up at once: what they hand back fits into the second-level cache"""
_MOST_WEIGHT = 1.98
"""of a row or an output: what an int16 of 1/64 or 1/255 can hold beside others"""
_MOST = (_MOST_WEIGHT, 100.0, _MOST_WEIGHT, 100.0)
_OPTIONS = {"fastmath": True, "error_model": "numpy", "nogil": True}


@njit(**_OPTIONS)
def _inputs(sample, mine, others):
    """Write the inputs that are on; returns how many there are on each side."""
    occupied = sample["occupied"]
    pieces = sample["pieces"]
    count = 0
    mirror_mine = 0
    mirror_others = 0
    bits = occupied
    square = np.int64(0)
    while bits != np.uint64(0):
        if bits & np.uint64(1):
            nibble = (pieces[count >> 1] >> np.uint8(4 * (count & 1))) & np.uint8(15)
            mine[count] = (np.int64(nibble) << 6) | square
            if nibble == 5 and square & 4:
                mirror_mine = 7
            if nibble == 13 and square & 4:
                mirror_others = 7
            count += 1
        bits >>= np.uint64(1)
        square += 1
    for i in range(count):
        nibble = np.int64(mine[i]) >> 6
        at = np.int64(mine[i]) & 63
        kind = nibble & 7
        his = nibble >> 3
        mine[i] = his * 384 + kind * 64 + (at ^ mirror_mine)
        others[i] = (1 - his) * 384 + kind * 64 + (at ^ 56 ^ mirror_others)
    return count


@njit(**_OPTIONS)
def _add_rows(rows, inputs, count, sums):
    """Add the rows of the inputs that are on, four at a time: the sums go through memory less often."""
    i = 0
    while i + 4 <= count:
        one = rows[inputs[i]]
        two = rows[inputs[i + 1]]
        three = rows[inputs[i + 2]]
        four = rows[inputs[i + 3]]
        for j in range(len(sums)):
            sums[j] += (one[j] + two[j]) + (three[j] + four[j])
        i += 4
    while i < count:
        one = rows[inputs[i]]
        for j in range(len(sums)):
            sums[j] += one[j]
        i += 1


@njit(**_OPTIONS)
def _forward(rows, bias, out, out_bias, mine, others, count, sums):
    """Write both sides' sums; returns the value."""
    hidden = len(bias)
    first = sums[:hidden]
    second = sums[hidden:]
    for j in range(hidden):
        first[j] = bias[j]
        second[j] = bias[j]
    _add_rows(rows, mine, count, first)
    _add_rows(rows, others, count, second)
    chosen = (count - 1) >> 2
    weights = out[chosen]
    total = np.float32(0)
    for j in range(2 * hidden):
        unit = min(max(sums[j], np.float32(0)), np.float32(1))
        total += weights[j] * unit * unit
    return total + out_bias[chosen]


@njit(parallel=True, **_OPTIONS)
def _values(rows, bias, out, out_bias, samples, values, threads):
    total = len(samples)
    for thread in prange(threads):
        mine = np.zeros(64, np.int64)
        others = np.zeros(64, np.int64)
        sums = np.zeros(2 * len(bias), np.float32)
        for i in range(total * thread // threads, total * (thread + 1) // threads):
            count = _inputs(samples[i], mine, others)
            values[i] = _forward(rows, bias, out, out_bias, mine, others, count, sums)


@njit(**_OPTIONS)
def _expected(value):
    return np.float32(1) / (np.float32(1) + np.exp(-value))


@njit(**_OPTIONS)
def _sort(inputs, counts, starts, places):
    """Sort the sides of a chunk by the inputs that are on: those of input f are places[starts[f]:starts[f + 1]]."""
    starts[:] = 0
    for side in range(len(counts)):
        for k in range(counts[side]):
            starts[inputs[side, k]] += 1
    for feature in range(1, len(starts)):
        starts[feature] += starts[feature - 1]
    for side in range(len(counts) - 1, -1, -1):
        for k in range(counts[side]):
            feature = inputs[side, k]
            starts[feature] -= 1
            places[starts[feature]] = side


@njit(parallel=True, **_OPTIONS)
def _batch(rows, bias, out, out_bias, samples, order, share, g_rows, g_bias, g_out, g_out_bias, errors):
    """Add up the gradient of half the mean squared error of the expected score; one slice of each array a thread.

    A thread takes its positions in chunks: what both sides of each hand back is kept, and then added to the rows one
    input after the other, so that a row's gradient goes through memory once a chunk.
    """
    total = len(order)
    threads = len(errors)
    hidden = len(bias)
    chunk = min(_CHUNK, len(samples))
    for thread in prange(threads):
        near = samples[:chunk].copy()
        inputs = np.zeros((2 * chunk, 32), np.int16)
        counts = np.zeros(2 * chunk, np.int32)
        starts = np.zeros(len(rows) + 1, np.int32)
        places = np.zeros(2 * chunk * 32, np.int16)
        sums = np.zeros(2 * hidden, np.float32)
        backs = np.zeros((chunk, 2 * hidden), np.float32)
        sides = backs.reshape(2 * chunk, hidden)
        g_r = g_rows[thread]
        g_b = g_bias[thread]
        g_o = g_out[thread]
        g_r[:] = 0
        g_b[:] = 0
        g_o[:] = 0
        g_out_bias[thread, :] = 0
        error = 0.0
        end = total * (thread + 1) // threads
        for first in range(total * thread // threads, end, chunk):
            taken = min(chunk, end - first)
            for c in range(taken):  # without work between them, many loads are under way at once
                near[c] = samples[order[first + c]]
            for c in range(taken):
                sample = near[c]
                mine = inputs[2 * c]
                others = inputs[2 * c + 1]
                count = _inputs(sample, mine, others)
                counts[2 * c] = count
                counts[2 * c + 1] = count
                value = _forward(rows, bias, out, out_bias, mine, others, count, sums)
                expected = _expected(value)
                # computed here: an array of targets would take as much memory again as an order
                target = _expected(sample["score"] / np.float32(UNIT_CP))
                target += share * (sample["result"] / np.float32(2) - target)
                off = expected - target
                error += off * off
                slope = off * expected * (np.float32(1) - expected)
                chosen = (count - 1) >> 2
                weights = out[chosen]
                grown = g_o[chosen]
                back = backs[c]
                for j in range(2 * hidden):
                    unit = min(max(sums[j], np.float32(0)), np.float32(1))
                    grown[j] += slope * unit * unit
                    inside = np.float32(2) * unit if sums[j] < np.float32(1) else np.float32(0)
                    back[j] = slope * weights[j] * inside
                g_out_bias[thread, chosen] += slope
                for j in range(hidden):
                    g_b[j] += back[j] + back[hidden + j]
            _sort(inputs, counts[: 2 * taken], starts, places)
            for feature in range(len(rows)):
                begin = starts[feature]
                _add_rows(sides, places[begin:], starts[feature + 1] - begin, g_r[feature])
        errors[thread] = error


def values(net: Net, samples: Array, threads: int) -> Array:
    """Return the values of positions in natural units, float32."""
    found = np.zeros(len(samples), np.float32)
    _values(*net, samples, found, threads)
    return found


@njit(**_OPTIONS)
def _step(weights, mean, square, parts, share, decays, rate, shrunk, epsilon, most):
    """AdamW over a flat array: weights shrink, move by the sum of the threads' parts, and stay within `most`."""
    threads = len(parts)
    for i in range(len(weights)):
        change = np.float32(0)
        for thread in range(threads):
            change += parts[thread, i]
        change *= share
        mean[i] += decays[0] * (change - mean[i])
        square[i] += decays[1] * (change * change - square[i])
        weight = shrunk * weights[i] - rate * mean[i] / (np.sqrt(square[i]) + epsilon)
        weights[i] = min(max(weight, -most), most)


class Gradient:
    """Room for the gradient of a net, what adds it up, and AdamW, which follows it."""

    def __init__(self, hidden: int, threads: int) -> None:
        numba.set_num_threads(min(threads, numba.config.NUMBA_NUM_THREADS))
        shapes = ((FEATURES, hidden), (hidden,), (BUCKETS, 2 * hidden), (BUCKETS,))
        self._parts = [np.zeros((threads, *shape), np.float32) for shape in shapes]
        self._errors = np.zeros(threads)
        self.moments = [np.zeros((2, part[0].size), np.float32) for part in self._parts]
        """Means of the gradient and of its square, for each array of the net."""
        self.steps = 0
        """Steps taken."""
        self._count = 0

    def of(self, net: Net, samples: Array, order: Array, share: float) -> tuple[list[Array], float]:
        """Return the gradient over the positions that `order` names, and the sum of their squared errors.

        share: of the result in the target.
        """
        squared = self.add_up(net, samples, order, share)
        return [part.sum(axis=0) / np.float32(len(order)) for part in self._parts], squared

    def add_up(self, net: Net, samples: Array, order: Array, share: float) -> float:
        """Keep the same gradient for `follow`; returns the sum of the squared errors."""
        _batch(*net, samples, order, np.float32(share), *self._parts, self._errors)
        self._count = len(order)
        return float(self._errors.sum())

    def follow(self, net: Net, rate: float) -> None:
        """Change the net's weights by a step of AdamW."""
        self.steps += 1
        shrunk = np.float32(1 - rate * _WEIGHT_DECAY)
        rate *= np.sqrt(1 - _SECOND_DECAY**self.steps) / (1 - _FIRST_DECAY**self.steps)
        decays = np.array([1 - _FIRST_DECAY, 1 - _SECOND_DECAY], np.float32)
        numbers = np.array([1 / self._count, rate, _EPSILON], np.float32)
        for array, part, (mean, square), most in zip(net, self._parts, self.moments, _MOST, strict=True):
            parts = part.reshape(len(part), -1)
            scalars = numbers[0], decays, numbers[1], shrunk, numbers[2], np.float32(most)
            _step(array.reshape(-1), mean, square, parts, *scalars)
