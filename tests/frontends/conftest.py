"""A plug-in and a program that the tests of the C front end share."""

import pytest

from tests.frontends.building import HERE, SANITIZED, C, build


@pytest.fixture(scope="session")
def fake(tmp_path_factory):
    """A plug-in with two devices that copies operands to results."""
    target = tmp_path_factory.mktemp("plug-in") / "fake.so"
    return build(target, HERE / "fake_plugin.c", options=("-shared", "-fPIC", "-O1"))


@pytest.fixture(scope="session")
def tour(tmp_path_factory):
    """A program that does everything with each of its files, with sanitizers."""
    target = tmp_path_factory.mktemp("tour") / "tour"
    return build(target, HERE / "tour.c", C / "fxflow.c", options=SANITIZED)
