"""`fxflow.ref`: references, and functions that read and write them."""

import fxflow
import fxflow.numpy as fnp
from fxflow import ref


def test_the_module_and_its_names_are_listed() -> None:
    assert "ref" in dir(fxflow)
    assert set(ref.__all__) <= set(dir(ref))
    assert fxflow.new_ref is ref.new_ref and fxflow.Ref is ref.Ref
    assert isinstance(fxflow.new_ref(fnp.ones(2)), ref.Ref)
    assert isinstance(fxflow.typeof(fxflow.new_ref(1)), ref.AbstractRef)
