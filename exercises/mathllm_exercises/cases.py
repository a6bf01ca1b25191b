"""What the checks share: cases drawn at random."""

import functools

__all__ = ["each", "normals"]


def each(draw):
    """Make of `draw(rng, size)`, one case, the function `cases(*sizes)`, which draws one for each size.

    >>> import numpy as np
    >>> @each
    ... def runs(rng, steps, rate=0.1):
    ...     return rng.normal(size=steps), rate
    >>> [(start.shape, rate) for start, rate in runs(2, 3, rate=0.5)(np.random.default_rng(0))]
    [((2,), 0.5), ((3,), 0.5)]
    """

    @functools.wraps(draw)
    def cases(*sizes, **options):
        return lambda rng: [draw(rng, size, **options) for size in sizes]

    return cases


def normals(*shapes, count=1, scale=1.0, centre=0.0, dtype=float):
    """Cases of one random array each, or of `count` of each shape; a list of shapes is a case of several arrays.

    >>> import numpy as np
    >>> [[x.shape for x in case] for case in normals(3, (2, 4), [2, (2, 5)])(np.random.default_rng(0))]
    [[(3,)], [(2, 4)], [(2,), (2, 5)]]
    """

    def one(rng, shape):
        return (centre + scale * rng.normal(size=shape)).astype(dtype)

    cases = [shape if isinstance(shape, list) else [shape] * count for shape in shapes]
    return lambda rng: [tuple(one(rng, shape) for shape in case) for case in cases]
