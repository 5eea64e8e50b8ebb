"""The distribution laplace beside SciPy's."""

from tests.scipy.stats import suite


def test_laplace() -> None:
    suite.check("laplace")
