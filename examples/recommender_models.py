"""Trains models of clicks, and models that find items, in one process or on servers.

    python examples/recommender_models.py dlrm --examples 1e6
    python examples/recommender_models.py logistic --consistency asynchronous
    fxflow launch --ps 2 --workers 2 examples/recommender_models.py dlrm
    python examples/recommender_models.py two_towers

`logistic` (with FTRL and crosses), `wide_deep` and `dlrm` predict clicks in logs that
`recommenders/clicks.py` makes, whose best possible AUC is known. `two_towers` and
`sequence` (a transformer) recommend films, from MovieLens-100k. Each is a function of
rows of tables: `--consistency` says whether these are in this process or on servers.
"""

import argparse

from helpers.ratings import load_ratings
from recommenders import click_models, retrieval, training
from recommenders.clicks import SIZES, Clicks

from fxflow.distributed import parameter_server as ps
from fxflow.train import logs


def predict_clicks(given: argparse.Namespace, cluster: ps.Cluster | None) -> float:
    """Trains a model of clicks and returns its AUC."""
    clicks = Clicks(given.ids, rate=given.share, seed=given.seed)
    settings = training.Settings(
        int(given.examples), given.batch, test=int(given.test), seed=given.seed
    )
    model = click_models.MODELS[given.model](clicks.sizes, limit=int(given.limit))
    rows = ", ".join(f"{table.rows:,}" for table in model.tables)
    print(f"{sum(clicks.sizes):,} ids; rows of tables: {rows}")
    first = given.logdir and not (cluster and cluster.rank)
    found = training.fit(
        model,
        clicks,
        settings,
        consistency=given.consistency,
        cluster=cluster,
        sinks=[logs.tensorboard(given.logdir)] if first else [],
    )
    stop = settings.examples + settings.test
    behind = clicks.batches(settings.examples, stop, settings.batch)
    print(f"{given.model}: {found}")
    print(f"the true probabilities: {training.best_quality(behind)}")
    return float(found.scores.compute())


def recommend_films(given: argparse.Namespace, cluster: ps.Cluster | None) -> float:
    """Trains a model of the next film and returns its recall among ten."""
    histories = retrieval.histories_of(load_ratings())
    model = retrieval.MODELS[given.model](histories.count)
    settings = retrieval.Settings(
        steps=given.steps, batch=min(given.batch, 128), seed=given.seed
    )
    print(f"what most people saw: {retrieval.popular(histories)}")
    found = retrieval.fit(
        model, histories, settings, consistency=given.consistency, cluster=cluster
    )
    print(f"{given.model}: {found}")
    return float(found.recall.compute())


def main(arguments: list[str] | None = None) -> float:
    """Runs the example and returns the AUC, or the recall."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    models = [*click_models.MODELS, *retrieval.MODELS]
    parser.add_argument("model", nargs="?", default="dlrm", choices=models)
    ways = list(training.CONSISTENCIES)
    parser.add_argument(
        "--consistency", choices=ways, help="none: one process; default: none, or "
        "asynchronous under fxflow launch"
    )  # fmt: skip
    parser.add_argument("--batch", type=int, default=1024, help="examples of a step")
    parser.add_argument("--seed", type=int, default=0)
    clicks = parser.add_argument_group("models of clicks")
    clicks.add_argument("--examples", type=float, default=1e6, help="for training")
    clicks.add_argument("--test", type=float, default=1e5, help="examples behind those")
    clicks.add_argument("--ids", type=float, default=sum(SIZES), help="different ones")
    clicks.add_argument("--share", type=float, default=0.256, help="of clicks")
    clicks.add_argument("--limit", type=float, default=1e5, help="rows of a column")
    clicks.add_argument("--logdir", metavar="FOLDER", help="logs for TensorBoard")
    films = parser.add_argument_group("models that find films")
    films.add_argument("--steps", type=int, default=1500, help="of each worker")
    given = parser.parse_args(arguments)
    cluster = ps.cluster_of(None)
    given.consistency = given.consistency or ("asynchronous" if cluster else "none")
    if cluster and given.consistency == "none":
        parser.error("--consistency none has no servers: run it without fxflow launch")
    clicked = given.model in click_models.MODELS
    return (predict_clicks if clicked else recommend_films)(given, cluster)


if __name__ == "__main__":
    main()
