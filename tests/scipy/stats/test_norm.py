"""The distribution norm beside SciPy's."""

from tests.scipy.stats import suite


def test_norm() -> None:
    suite.check("norm")
