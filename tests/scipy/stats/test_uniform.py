"""The distribution uniform beside SciPy's."""

from tests.scipy.stats import suite


def test_uniform() -> None:
    suite.check("uniform")
