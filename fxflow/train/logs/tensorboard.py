"""`tensorboard`: a sink that writes TensorBoard's event files, by tensorboardX."""

from __future__ import annotations

import io
import os
import time
import wave
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from fxflow.errors import ArgumentError
from fxflow.train.logs.dataflow import graph_def
from fxflow.train.logs.values import (
    Audio,
    Curve,
    Embedding,
    Graph,
    Histogram,
    HyperParameters,
    Image,
    Text,
    counted,
    finite,
    pixels,
)


class _TensorBoard:
    """The sink of `tensorboard`."""

    def __init__(self, folder: str, purge_step: int | None) -> None:
        try:
            import tensorboardX
        except ImportError:
            raise ImportError(
                "logs for TensorBoard need tensorboardX: pip install "
                "'fxflow[tensorboard]'"
            ) from None
        self._x = tensorboardX
        os.makedirs(folder, exist_ok=True)
        if not os.access(folder, os.W_OK):
            raise PermissionError(f"tensorboard: {folder} is not writable")
        self._folder = Path(folder)
        # File names have a resolution of one second; the suffix makes them unique.
        self._writer = tensorboardX.SummaryWriter(
            folder, purge_step=purge_step, filename_suffix=f".{time.time_ns()}"
        )

    def write(self, step: int, seconds: float, values: Mapping[str, Any]) -> None:
        errors: list[Exception] = []
        for name, value in values.items():
            try:
                self._one(name, value, step, seconds)
            except Exception as error:  # write the other values
                errors.append(error)
        if errors:
            raise errors[0]

    def _one(self, name: str, value: Any, step: int, seconds: float) -> None:
        writer = self._writer
        match value:
            case Histogram():
                self._histogram(name, value, step, seconds)
            case Image():
                shown = pixels(name, value)
                writer.add_image(name, shown, step, seconds, dataformats="HWC")
            case Audio():
                self._summary(_audio(self._x, name, value), step, seconds)
            case Text(text=text):
                writer.add_text(name, text, step, seconds)
            case Curve():
                self._curve(name, value, step, seconds)
            case HyperParameters():
                self._hyper_parameters(value, step, seconds)
            case Embedding():
                self._embedding(name, value, step)
            case Graph(graph=graph):
                self._graph(graph_def(self._x.proto, graph), seconds)
            case _:
                writer.add_scalar(name, float(value), step, seconds)

    def _summary(self, summary: Any, step: int, seconds: float) -> None:
        self._writer.file_writer.add_summary(summary, step, seconds)

    def _histogram(
        self, name: str, value: Histogram, step: int, seconds: float
    ) -> None:
        good, bad = finite(name, value.values)
        if bad:
            self._writer.add_scalar(f"{name}/nonfinite", bad, step, seconds)
        if good.size:
            counts, edges = counted(good, value.bins)
            with np.errstate(over="ignore", under="ignore"):
                total, squares = good.sum(), np.square(good).sum()
            self._writer.add_histogram_raw(
                name,
                min=good.min(),
                max=good.max(),
                num=good.size,
                sum=total,
                sum_squares=squares,
                bucket_limits=edges[1:].tolist(),
                bucket_counts=counts.tolist(),
                global_step=step,
                walltime=seconds,
            )

    def _curve(self, name: str, value: Curve, step: int, seconds: float) -> None:
        # Counts above each threshold, in ascending order.
        positive = np.asarray(value.scores.positive, np.float64)
        negative = np.asarray(value.scores.negative, np.float64)
        found = np.append(np.cumsum(positive[::-1])[::-1], 0)
        wrong = np.append(np.cumsum(negative[::-1])[::-1], 0)
        both = found + wrong
        self._writer.add_pr_curve_raw(
            name,
            true_positive_counts=found,
            false_positive_counts=wrong,
            true_negative_counts=negative.sum() - wrong,
            false_negative_counts=positive.sum() - found,
            precision=np.where(both > 0, found / np.where(both > 0, both, 1), 1),
            recall=found / max(positive.sum(), 1e-30),
            global_step=step,
            num_thresholds=len(found),
            walltime=seconds,
        )

    def _hyper_parameters(
        self, value: HyperParameters, step: int, seconds: float
    ) -> None:
        results = {name: float(result) for name, result in value.results.items()}
        parts = self._x.summary.hparams(dict(value.parameters), results)
        for part in parts:
            self._summary(part, step, seconds)
        for name, result in results.items():
            self._writer.add_scalar(name, result, step, seconds)

    def _embedding(self, name: str, value: Embedding, step: int) -> None:
        vectors = np.asarray(value.vectors)
        if vectors.ndim != 2:
            raise ArgumentError(
                f"log: the vectors of {name} must be [n, d], got {list(vectors.shape)}"
            )
        for what, given in (("metadata", value.metadata), ("images", value.images)):
            if given is not None and len(given) != len(vectors):
                raise ArgumentError(
                    f"log: {name} has {len(vectors)} vectors and {len(given)} {what}"
                )
        images = None
        if value.images is not None:
            images = np.moveaxis(np.asarray(value.images), -1, 1)
        self._writer.add_embedding(
            vectors,
            metadata=None if value.metadata is None else list(value.metadata),
            metadata_header=None if value.header is None else list(value.header),
            label_img=images,
            global_step=step,
            tag=name,
        )

    def _graph(self, graph: Any, seconds: float) -> None:
        event = self._x.proto.event_pb2.Event(graph_def=graph.SerializeToString())
        self._writer.file_writer.add_event(event, walltime=seconds)

    def flush(self) -> None:
        self._writer.flush()

    def close(self) -> None:
        self._writer.close()


def _audio(x: Any, name: str, value: Audio) -> Any:
    """Returns the summary of audio, as 16-bit WAV."""
    samples = np.asarray(value.samples, np.float32)
    if samples.ndim == 1:
        samples = samples[:, None]
    if samples.ndim != 2:
        raise ArgumentError(
            f"log: the samples of {name} must be [time] or [time, channels], got "
            f"{list(samples.shape)}"
        )
    clean = np.clip(np.nan_to_num(samples), -1, 1)
    data = io.BytesIO()
    with wave.open(data, "wb") as file:
        file.setnchannels(samples.shape[1])
        file.setsampwidth(2)
        file.setframerate(int(value.rate))
        file.writeframes((clean * 32767).astype("<i2").tobytes())
    summary = x.proto.summary_pb2.Summary
    audio = summary.Audio(
        sample_rate=value.rate,
        num_channels=samples.shape[1],
        length_frames=len(samples),
        encoded_audio_string=data.getvalue(),
        content_type="audio/wav",
    )
    return summary(value=[summary.Value(tag=name, audio=audio)])


def tensorboard(
    folder: str | os.PathLike[str], *, purge_step: int | None = None
) -> _TensorBoard:
    """Returns a sink that writes everything for `tensorboard --logdir folder`.

    Args:
      folder: the run's folder, which is created if necessary.
      purge_step: hides steps of earlier files that are at least this one, because a
        resumed run writes them again.

    Returns:
      A sink, for `Logger`.

    Raises:
      ImportError: tensorboardX is not installed (extra `tensorboard`).
      PermissionError: the folder is not writable.
    """
    return _TensorBoard(os.fspath(folder), purge_step)
