"""Symbolic sizes, resolved by a call."""

import pytest

from fxflow.core.arrays import Aval, dtypes
from fxflow.errors import ExportError, ShapeError
from fxflow.export import SymbolicScope, is_symbolic_dim
from fxflow.export.sizes import parse_shape, settled, solve

F32 = dtypes.dtype("float32")


def sized(*texts):
    return Aval(parse_shape(texts), F32)


def test_sizes_are_parsed_from_text():
    (size,) = parse_shape(["2*t + 1"])
    assert is_symbolic_dim(size)
    assert str(size) == "2*t + 1"


def test_constant_texts_become_numbers():
    assert parse_shape(["3", "0", "b - b + 2"]) == (3, 0, 2)
    assert not is_symbolic_dim(3)


@pytest.mark.parametrize("text", ["", "b +", "f(b)", "-3", "mod(b, 0)"])
def test_invalid_sizes_are_refused(text):
    with pytest.raises(ExportError, match="as the length of an axis"):
        parse_shape([text])


def test_a_call_determines_the_names():
    expected = [sized("b", "2*t"), sized("t + b", "3"), Aval((4,), F32)]
    known = solve(expected, [(5, 6), (8, 3), (4,)], "f")
    assert known == {"b": 5, "t": 3}
    assert str(settled(sized("b*t", "7"), known)) == "f32[15,7]"
    assert settled(expected[2], known) is expected[2]


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        ([(5, 7), (8, 3)], "there is no t ≥ 1"),
        ([(5, 0), (5, 3)], "there is no t ≥ 1"),
        (
            [(5, 6), (9, 3)],
            r"axis 0 of argument 1, f32\[b \+ t,3\], is 9, but b \+ t is 8 for b = 5, "
            "t = 3",
        ),
    ],
)
def test_contradicting_shapes_are_refused(shapes, message):
    with pytest.raises(ShapeError, match=message):
        solve([sized("b", "2*t"), sized("t + b", "3")], shapes, "f")


def test_undetermined_names_are_refused():
    with pytest.raises(ShapeError, match="do not determine a, b"):
        solve([sized("a*b")], [(6,)], "f")
    with pytest.raises(ShapeError, match="no argument determines"):
        settled(sized("c"), {"b": 1})
    with pytest.raises(ShapeError, match="would be -1"):
        settled(sized("b - 2"), {"b": 1})
    with pytest.raises(ShapeError, match="divides by 0"):
        settled(sized("mod(b, b - 1)"), {"b": 1})


def test_constraints_are_checked():
    scope = SymbolicScope(["b >= 4", "mod(b, 2) == 0"])
    expected = [Aval(parse_shape(["b"], scope), F32)]
    assert solve(expected, [(6,)], "f") == {"b": 6}
    with pytest.raises(ShapeError, match=r"f: b >= 4, which it was .* b = 2 in f32"):
        solve(expected, [(2,)], "f")
    with pytest.raises(ShapeError, match=r"mod\(b, 2\) == 0, .* for b = 5"):
        solve(expected, [(5,)], "f")


def test_symbolic_sizes_of_the_caller():
    inner, outer = sized("b", "2*t"), sized("n + 1", "4*n")
    known = solve([inner], [outer.shape], "f")
    assert known == {"b": outer.shape[0], "t": sized("2*n").shape[0]}
    assert settled(sized("b*t"), known) is sized("2*n^2 + 2*n")
    with pytest.raises(ShapeError, match=r"axis 1 .* is n, for which there is no t"):
        solve([inner], [sized("n", "n").shape], "f")


def test_types_print_their_sizes():
    keys = Aval(parse_shape(["b"]), dtypes.dtype("key<fry>"))
    assert (str(keys), keys.mlir) == ("key<fry>[b]", "tensor<⟨b⟩x2xui32>")
    assert sized("b", "3").mlir == "tensor<⟨b⟩x3xf32>"
