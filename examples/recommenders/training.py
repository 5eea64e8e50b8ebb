"""Trains and evaluates models of clicks, in one process or on servers.

The same function runs as the only process, with `consistency="none"`, and as one of the
workers of a parameter server.
"""

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from recommenders.click_models import Model
from recommenders.clicks import Clicks

import fxflow
import fxflow.numpy as fnp
from fxflow import nn, optim, random, train
from fxflow.distributed import parameter_server as ps
from fxflow.train import logs, metrics

#: Each consistency as a function of the number of workers.
CONSISTENCIES: dict[str, Callable[[int], ps.Consistency | None]] = {
    "none": lambda workers: None,
    "bsp": lambda workers: ps.bsp(),
    "ssp": lambda workers: ps.ssp(4),
    "asynchronous": lambda workers: ps.asynchronous(rate="fixed"),
    "backup": lambda workers: ps.backup(max(1, workers - 1), min(1, workers - 1)),
    "softsync": lambda workers: ps.softsync(1),
}

#: Edges of the bins of probabilities: clicks are rare.
EDGES = np.concatenate([[0.01, 0.02, 0.03], np.arange(1, 20) / 20]).astype(np.float32)


class Quality(NamedTuple):
    """The quality of predicted clicks: metrics, which add up over batches.

    Attributes:
      scores: its `compute` is the AUC.
      log_loss: in nats.
      calibration: its `compute` is the expected calibration error.
    """

    scores: metrics.Scores
    log_loss: metrics.Mean
    calibration: metrics.Calibration

    def merge(self, other: "Quality") -> "Quality":
        """Returns the quality of both parts together."""
        return Quality(*(one.merge(two) for one, two in zip(self, other, strict=True)))

    def __str__(self) -> str:
        values = (float(metric.compute()) for metric in self)
        auc, log_loss, error = values
        bias = float(self.calibration.bias())
        return (
            f"AUC {auc:.4f}, log loss {log_loss:.4f}, calibration error {error:.4f}, "
            f"predicted / clicked {bias:.3f}"
        )


@fxflow.jit
def quality_of(logits: Any, clicked: Any) -> Quality:
    """Returns the quality of a batch.

    Args:
      logits: f32[n].
      clicked: f32[n].
    """
    chance = nn.sigmoid(logits)
    return Quality(
        metrics.scores(chance, clicked, bins=4000),
        metrics.log_loss(logits, clicked),
        metrics.calibration(chance, clicked, bins=EDGES),
    )


class Settings(NamedTuple):
    """The settings of a run.

    Attributes:
      examples: for training, of all workers together.
      batch: examples of a step of one worker.
      rate: of Adam, for the dense parameters.
      test: examples for evaluation, which come behind those for training.
      report: steps between two reports.
      seed: of the dense parameters.
    """

    examples: int = 1_000_000
    batch: int = 1024
    rate: float = 0.001
    test: int = 100_000
    report: int = 200
    seed: int = 0


def trainer_of(
    loss: Any,
    tables: Any,
    rate: float,
    consistency: str,
    cluster: ps.Cluster | None,
    **options: Any,
) -> tuple[Any, int, int]:
    """Returns a trainer, the number of this worker, and how many workers there are.

    Args:
      loss: the loss function.
      tables: specifications of the tables.
      rate: of Adam, for the dense parameters.
      consistency: a name of `CONSISTENCIES`; "none": no servers.
      cluster: the servers; None, with a consistency: one in this process.
      **options: of `train.table_trainer`.
    """
    index, workers = (cluster.rank, len(cluster.trainers) or 1) if cluster else (0, 1)
    way = CONSISTENCIES[consistency](workers)
    if way is not None:
        options |= {"consistency": way, "cluster": cluster}
    trainer = train.table_trainer(loss, optim.adam(rate), tables, **options)
    return trainer, index, workers


def evaluate(model: Model, trainer: Any, state: Any, batches: Any) -> Quality:
    """Returns the quality of the model on batches.

    Args:
      model: the model.
      trainer: its trainer, here or on servers.
      state: the trainer's state.
      batches: of `Clicks`.
    """
    params, total = trainer.params(state), None
    logits = fxflow.jit(model.logits)
    for batch in batches:
        rows = trainer.rows(model.ids(batch), state)
        part = quality_of(logits(params, rows, model.inputs(batch)), batch.clicked)
        total = total.merge(part) if total else part
    assert total, "there were no batches to evaluate"
    return total


def best_quality(batches: Any) -> Quality:
    """Returns the quality of the true probabilities: no model has a better one.

    Args:
      batches: of `Clicks`.
    """
    total = None
    for batch in batches:
        logits = fnp.log(batch.chance) - fnp.log1p(-batch.chance)
        part = quality_of(logits, batch.clicked)
        total = total.merge(part) if total else part
    assert total, "there were no batches to evaluate"
    return total


def fit(
    model: Model,
    clicks: Clicks,
    settings: Settings,
    *,
    consistency: str = "none",
    cluster: ps.Cluster | None = None,
    seen: Callable[[int, float, Any, Any], bool] | None = None,
    sinks: Sequence[Any] = (),
) -> Quality:
    """Trains as the only process, or as one of the workers, and returns the quality.

    Args:
      model: the model.
      clicks: the logs; each of n workers takes every n-th batch.
      settings: the settings of the run.
      consistency: a name of `CONSISTENCIES`; "none": no servers.
      cluster: the servers; None, with a consistency: one in this process.
      seen: `seen(examples, seconds, trainer, state)`, called for each report with the
        number of examples of all workers and the seconds of training; training ends if
        it returns true. The seconds are without those of the function itself.
      sinks: of `train.logs`, for the loss of each report.
    """
    trainer, index, workers = trainer_of(
        *(model.loss, model.tables, settings.rate, consistency, cluster),
        non_finite="skip",
    )
    state = trainer.init(model.init(random.key(settings.seed)))
    losses, seconds = [], 0.0
    log = logs.Logger(*sinks)
    started = time.perf_counter()
    strides = range(index, settings.examples // settings.batch, workers)
    for steps, number in enumerate(strides, 1):
        batch = clicks(number * settings.batch, settings.batch)
        inputs = model.inputs(batch), batch.clicked
        state, done = trainer.step(state, inputs, ids=model.ids(batch))
        losses.append(done.loss)
        if steps % settings.report == 0 or steps == len(strides):
            mean = float(fnp.mean(fnp.stack(losses)))
            seconds += time.perf_counter() - started
            many = steps * settings.batch * workers
            losses = []
            log(many, {"loss": mean})
            if seen and seen(many, seconds, trainer, state):
                break
            if not seen:
                print(f"{many:12,} examples, {seconds:6.1f} s: loss {mean:.4f}")
            started = time.perf_counter()
    log.close()
    batches = clicks.batches(
        settings.examples, settings.examples + settings.test, settings.batch
    )
    found = evaluate(model, trainer, state, batches)
    trainer.close()
    return found
