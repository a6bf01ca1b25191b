"""Chapter 02: a table that turns a cosine into words, as a source document prints it."""

from ..errors import within

# Lower edges, inclusive: 0.90 is "Near-identical", 0.00 is "Weak or no relation".
COSINE_BANDS = (
    (0.90, "Near-identical"),
    (0.70, "Strongly related"),
    (0.40, "Some relationship"),
    (0.00, "Weak or no relation"),
    (-1.00, "Opposing (rare)"),
)


def interpret_cosine(cosine: float) -> str:
    """The words of the table for a cosine; the lower edge belongs to the band.

    Raises: ValueError for what is no cosine (NaN, or outside [−1, 1]).

    >>> interpret_cosine(0.9), interpret_cosine(0.0), interpret_cosine(-0.2)
    ('Near-identical', 'Weak or no relation', 'Opposing (rare)')
    """
    within("interpret_cosine", "[-1, 1]", cosine=round(float(cosine), 9))
    return next((label for lower_edge, label in COSINE_BANDS if cosine >= lower_edge), COSINE_BANDS[-1][1])
