"""The distribution logistic beside SciPy's."""

from tests.scipy.stats import suite


def test_logistic() -> None:
    suite.check("logistic")
