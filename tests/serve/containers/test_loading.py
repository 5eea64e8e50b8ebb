"""Names of models, and what they stand for."""

from pathlib import Path

import numpy as np
import pytest

from fxflow.errors import ServeError
from fxflow.serve.containers.loading import load_model

ZOO = "tests.serve.zoo"


def test_a_file(tmp_path: Path) -> None:
    (tmp_path / "served_beside.py").write_text("factor = 5\n")
    path = tmp_path / "served_model.py"
    path.write_text(
        "from served_beside import factor\ndef times(x):\n    return x * factor\n"
    )
    model = load_model(f"{path}:times", inputs={"x": "i64[]"}, batched=False)
    model.prepare(1)
    assert model.run([np.array(3)], 1)[0] == 15


@pytest.mark.parametrize(
    ("source", "options", "words"),
    [
        ("zoo", {}, "'file.py:name' or 'model.fx', got 'zoo'"),
        (f"{ZOO}:none", {}, "there is no 'none'"),
        ("none.py:f", {}, "there is no file 'none.py'"),
        (f"{ZOO}:negative", {}, "say the types of its inputs"),
        (f"{ZOO}:__doc__", {}, "is no model, but a str"),
        ("none.fx", {}, "there is no file 'none.fx'"),
        ("none.fx", {"factory": True}, "it has no factory"),
        ("none.fx", {"arguments": {"a": 1}}, "it has no argument 'a'"),
        (f"{ZOO}:doubling", {"arguments": {"a": 1}}, "is not called"),
    ],
)
def test_no_model(source: str, options: dict, words: str) -> None:
    with pytest.raises(ServeError, match=words):
        load_model(source, **options)
