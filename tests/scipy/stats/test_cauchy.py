"""The distribution cauchy beside SciPy's."""

from tests.scipy.stats import suite


def test_cauchy() -> None:
    suite.check("cauchy")
