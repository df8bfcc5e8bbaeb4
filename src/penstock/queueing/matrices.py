"""What the matrices of Markov chains have in common."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

TOLERANCE = 1e-9  # of a row that should sum to something, relative to its largest entry


def matrix(values: npt.ArrayLike) -> Floats:
    """A copy that cannot be written to."""
    array = np.array(values, dtype=np.float64)
    array.setflags(write=False)
    return array


def kron(one: Floats, other: Floats) -> Floats:
    """Kronecker product of two rows or two matrices; numpy's takes long for small ones.

    >>> kron(np.array([[1.0, 2.0]]), np.array([[1.0], [3.0]])).tolist()
    [[1.0, 2.0], [3.0, 6.0]]
    """
    if one.ndim == 1:
        return np.outer(one, other).reshape(-1)
    rows, columns = len(one) * len(other), one.shape[1] * other.shape[1]
    return (one[:, None, :, None] * other[:, None, :]).reshape(rows, columns)


def stationary(generator: Floats) -> Floats:
    """π with π·Q = 0 and π·1 = 1, of an irreducible generator.

    >>> stationary(np.array([[-1.0, 1.0], [3.0, -3.0]])).tolist()
    [0.75, 0.25]
    """
    size = len(generator)
    system = generator.T.copy()
    scale = float(np.abs(generator).max(initial=0.0)) or 1.0
    system[-1] = scale
    right = np.zeros(size)
    right[-1] = scale
    return np.asarray(np.linalg.solve(system, right))


def sampled_chain(
    steps: Floats, first: int, uniforms: Floats
) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """A path of a Markov chain whose steps have ``uniforms`` behind them, and what each step was.

    ``steps[i]`` holds the probabilities of the outcomes in state i; outcome o leads to state
    o modulo the number of states. All blocks of the path are walked at once from every state they
    could begin in, then the blocks are joined: the same path as step by step, in numpy.
    """
    states = len(steps)
    total = len(uniforms)
    block = max(1, round((total / states) ** 0.5))
    count = -(-total // block)
    padded = np.zeros(count * block)
    padded[:total] = uniforms
    draws = padded.reshape(count, block)
    edges = np.cumsum(steps, axis=1)[:, :-1]
    state = np.tile(np.arange(states), (count, 1))
    befores = np.empty((block, count, states), dtype=np.int16)
    outcomes = np.empty((block, count, states), dtype=np.int16)
    for step in range(block):
        outcome = (draws[:, step, None, None] >= edges[state]).sum(axis=-1)
        befores[step] = state
        outcomes[step] = outcome
        state = outcome % states
    begins = np.empty(count, dtype=np.intp)
    here = first
    for number, ends in enumerate(state.tolist()):
        begins[number] = here
        here = ends[here]
    rows = np.arange(count)
    path = befores[:, rows, begins].T.reshape(-1)[:total]
    what = outcomes[:, rows, begins].T.reshape(-1)[:total]
    return path.astype(np.intp), what.astype(np.intp)
