"""The distribution expon beside SciPy's."""

from tests.scipy.stats import suite


def test_expon() -> None:
    suite.check("expon")
