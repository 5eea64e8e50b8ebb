"""Event files, read back with TensorBoard's own reader."""

from __future__ import annotations

import io
import os
import wave
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fxflow
from fxflow import numpy as fnp
from fxflow.train import logs, metrics

pytest.importorskip("tensorboardX", reason="pip install 'fxflow[tensorboard]'")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


def read(folder: Path) -> Any:
    """Returns what TensorBoard reads from a folder."""
    accumulator = pytest.importorskip(
        "tensorboard.backend.event_processing.event_accumulator",
        reason="pip install tensorboard",
    )
    found = accumulator.EventAccumulator(str(folder), size_guidance={"tensors": 0})
    return found.Reload()


def written(folder: Path, *calls: dict[str, Any], **options: Any) -> Any:
    with logs.Logger(logs.tensorboard(folder, **options)) as log:
        for step, values in enumerate(calls):
            log(step, values)
    return read(folder)


def test_scalars_are_written(tmp_path: Path) -> None:
    found = written(tmp_path, {"a/b": fnp.float32(0.5), "n": 3}, {"n": float("nan")})
    assert [(s.step, s.value) for s in found.Scalars("a/b")] == [(0, 0.5)]
    values = [s.value for s in found.Scalars("n")]
    assert values[0] == 3 and np.isnan(values[1])


def test_a_resumed_run_hides_repeated_steps(tmp_path: Path) -> None:
    written(tmp_path, {"n": 0}, {"n": 1}, {"n": 2})
    with logs.Logger(logs.tensorboard(tmp_path, purge_step=1)) as log:
        log(1, {"n": 10})
    assert [(s.step, s.value) for s in read(tmp_path).Scalars("n")] == [(0, 0), (1, 10)]


def test_histograms_count_nonfinite_values(tmp_path: Path) -> None:
    values = fnp.array([0.0, 1.0, 1.0, 2.0, fnp.nan, fnp.inf])
    found = written(
        tmp_path,
        {
            "w": logs.Histogram(values, bins=2),
            "none": logs.Histogram(fnp.array(fnp.nan)),
        },
    )
    ((histogram,),) = ([h.histogram_value for h in found.Histograms("w")],)
    assert (histogram.num, histogram.min, histogram.max, histogram.sum) == (4, 0, 2, 4)
    assert sum(histogram.bucket) == 4
    assert [s.value for s in found.Scalars("w/nonfinite")] == [2]
    assert [s.value for s in found.Scalars("none/nonfinite")] == [1]


def test_images_are_written(tmp_path: Path) -> None:
    from PIL import Image

    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 256, (4, 6, 3), np.uint8)
    found = written(tmp_path, {"image": logs.Image(pixels)})
    (image,) = found.Images("image")
    assert (image.width, image.height) == (6, 4)
    shown = np.asarray(Image.open(io.BytesIO(image.encoded_image_string)))
    np.testing.assert_array_equal(shown, pixels)


def test_audio_is_written(tmp_path: Path) -> None:
    samples = np.array([0.0, 0.5, -1.0, 2.0, np.nan])
    found = written(tmp_path, {"sound": logs.Audio(samples, 8000)})
    (audio,) = found.Audio("sound")
    with wave.open(io.BytesIO(audio.encoded_audio_string)) as file:
        assert (file.getframerate(), file.getnchannels()) == (8000, 1)
        heard = np.frombuffer(file.readframes(9), "<i2")
    np.testing.assert_allclose(heard / 32767, [0, 0.5, -1, 1, 0], atol=1e-4)


def test_texts_are_written(tmp_path: Path) -> None:
    found = written(tmp_path, {"note": logs.Text("**bold** ü")})
    (event,) = found.Tensors("note/text_summary")
    assert event.tensor_proto.string_val[0].decode() == "**bold** ü"


def test_curves_are_written(tmp_path: Path) -> None:
    scores = metrics.scores(
        np.array([0.9, 0.8, 0.7, 0.1]), np.array([1, 0, 1, 0]), bins=10
    )
    found = written(tmp_path, {"pr": logs.Curve(scores)})
    (event,) = found.Tensors("pr")
    from tensorboard.util.tensor_util import make_ndarray

    true, false, negative, missed, precision, recall = make_ndarray(event.tensor_proto)
    assert true.tolist() == [2, 2, 2, 2, 2, 2, 2, 2, 1, 1, 0]
    assert false.tolist() == [2, 2, 1, 1, 1, 1, 1, 1, 1, 0, 0]
    assert (negative + false == 2).all() and (missed + true == 2).all()
    np.testing.assert_allclose(precision[[0, 2, 9, 10]], [0.5, 2 / 3, 1, 1], rtol=1e-6)
    np.testing.assert_allclose(recall[[0, 9, 10]], [1, 0.5, 0])


def test_hyperparameters_are_written(tmp_path: Path) -> None:
    given = logs.HyperParameters(
        {"rate": 0.1, "name": "adam", "nesterov": True}, {"accuracy": fnp.float32(0.5)}
    )
    found = written(tmp_path, {"run": given})
    assert found.PluginTagToContent("hparams")
    assert [s.value for s in found.Scalars("accuracy")] == [0.5]


def test_graphs_are_written(tmp_path: Path) -> None:
    def model(x: Any) -> Any:
        with fxflow.named_scope("layer"):
            return fnp.sin(x) * 2

    found = written(tmp_path, {"model": logs.Graph(model, fnp.ones(3))})
    assert "layer/sin" in [node.name for node in found.Graph().node]


def test_embeddings_are_written(tmp_path: Path) -> None:
    given = logs.Embedding(
        np.arange(6.0).reshape(3, 2), ["a", "b", "c"], images=np.ones((3, 4, 4, 3))
    )
    written(tmp_path, {"words": given})
    config = (tmp_path / "projector_config.pbtxt").read_text()
    assert 'tensor_name: "words:00000"' in config and "sprite" in config
    (vectors,) = tmp_path.rglob("tensors.tsv")
    assert np.loadtxt(vectors).tolist() == [[0, 1], [2, 3], [4, 5]]


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (logs.Embedding(np.ones(3)), r"the vectors of a must be \[n, d\], got \[3\]"),
        (logs.Embedding(np.ones((3, 2)), ["x"]), "a has 3 vectors and 1 metadata"),
        (logs.Audio(np.ones((1, 2, 3)), 8000), r"samples of a must be \[time\]"),
    ],
)
def test_values_of_the_wrong_shape_are_refused(
    tmp_path: Path, value: Any, words: str
) -> None:
    log = logs.Logger(logs.tensorboard(tmp_path))
    log(0, {"a": value, "b": 1})
    with pytest.warns(UserWarning, match=words):
        log.close()
    assert [s.value for s in read(tmp_path).Scalars("b")] == [1]


def test_numbers_of_any_size_are_written(tmp_path: Path) -> None:
    values = [0, 10**400, 2**70, 1e300, fnp.nan, -fnp.inf, True, 5e-324]
    log = logs.Logger(logs.tensorboard(tmp_path))
    for step, value in enumerate(values):
        log(step, {"a": value, "b": step, "h": logs.Histogram(fnp.array([1.0]))})
    with pytest.warns(UserWarning, match="could not write step 1.*OverflowError"):
        log.close()
    found = read(tmp_path)
    assert [s.step for s in found.Scalars("a")] == [0, 2, 3, 4, 5, 6, 7]
    assert len(found.Scalars("b")) == len(values) and found.Histograms("h")


def test_a_folder_that_is_not_writable_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file"):
        logs.tensorboard(tmp_path / "file")
    if os.geteuid() == 0:
        pytest.skip("nothing is forbidden to root")
    tmp_path.chmod(0o500)
    with pytest.raises(PermissionError, match="not writable"):
        logs.tensorboard(tmp_path)
