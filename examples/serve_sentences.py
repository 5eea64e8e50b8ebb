"""Trains, exports and serves a model of the sentiment of sentences, with a client.

    python examples/serve_sentences.py                 # three passes over the data
    python examples/serve_sentences.py --epochs 6      # the full training
    python examples/serve_sentences.py --export models # only writes the files
    cd models && fxflow serve serving.toml             # serves them

    pip install 'fxflow[examples,serve]'

Requests are texts. The served model is a Python function, which converts texts to
numbers and runs exported programs, which share one file of parameters.
"""

import argparse
import contextlib
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from helpers.texts import load_reviews, words
from sentences import Settings, encoded, learn, logits, tables_of
from serve_mnist import ask, served

import fxflow
from fxflow import export, nn, serve

SIZES = (1, 4, 16)
VECTOR = 100  # length of a word's vector
SERVING = """\
slo = "50ms"

[models.opinion]
source = "{file}:load"
factory = true
arguments = {{folder = "."}}
max_batch = 16
delay = "2ms"
"""


def load(folder: str) -> serve.Model:
    """Returns the model that `fxflow serve` serves: texts → positive sentiment.

    Args:
      folder: the folder that `write` wrote.
    """
    place = Path(folder)
    stored = json.loads((place / "words.json").read_text())
    ids = {word: number for number, word in enumerate(stored["words"])}
    net = serve.load_model(str(place / "opinion-*.fx"))
    net.prepare(SIZES[-1])

    def opinion(texts: np.ndarray) -> dict[str, np.ndarray]:
        rows = np.zeros((len(texts), stored["length"]), np.int32)
        known = np.zeros(len(texts), np.int32)
        for k, text in enumerate(texts):
            found = words(text.decode(errors="replace"))
            numbers = [ids.get(word, 0) for word in found]
            numbers = numbers[: stored["length"] - 2 * stored["margin"]]
            rows[k, stored["margin"] : stored["margin"] + len(numbers)] = numbers
            known[k] = np.count_nonzero(numbers)
        (probabilities,) = net.run([rows], len(rows))
        return {"praise": probabilities[:, 1], "known_words": known}

    return serve.Model(opinion, inputs={"text": "bytes[batch]"}, jit=False)


def write(
    folder: Path, params: Any, frozen: Any, known: list[str], length: int
) -> None:
    """Writes programs, parameters, words and configuration.

    Args:
      folder: the folder, which is created.
      params: the trained parameters.
      frozen: tables of vectors that were not trained.
      known: the word of each number.
      length: the length of an encoded sentence.
    """

    @fxflow.jit
    def probabilities(weights: Any, rows: fxflow.Array) -> fxflow.Array:
        params, frozen = weights
        return nn.softmax(logits(params, frozen, rows, None, 0.0))

    folder.mkdir(parents=True, exist_ok=True)
    weights = params, list(frozen)
    for size in SIZES:
        rows = fxflow.ShapeDtypeStruct((size, length), np.int32)
        export.save(
            folder / f"opinion-{size}.fx",
            export.export(probabilities)(weights, rows),
            params=weights,
            beside="opinion.safetensors",
        )
    margin = max(Settings().widths) - 1
    stored = {"words": known, "length": length, "margin": margin}
    (folder / "words.json").write_text(json.dumps(stored))
    (folder / "serving.toml").write_text(SERVING.format(file=Path(__file__).resolve()))


def main(arguments: list[str] | None = None) -> None:
    """Trains, exports, serves and queries; then serves until Ctrl-C."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--export", metavar="FOLDER", help="only write the files there")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--once", action="store_true", help="end after the queries")
    given = parser.parse_args(arguments)
    settings = Settings(epochs=given.epochs)
    reviews = load_reviews()
    data, known = encoded(reviews.sentences, reviews.labels, max(settings.widths))
    order = np.random.default_rng(0).permutation(len(data.labels))
    tested, taken = order[:1000], order[1000:]
    tables = tables_of(settings, VECTOR, len(known), None)
    params, predict = learn(data, taken, tables, VECTOR, settings)
    right = float(np.mean(predict(tested) == data.labels[tested]))
    print(f"accuracy: {right:.1%} of {len(tested):,} sentences", flush=True)
    with tempfile.TemporaryDirectory() as made:
        folder = Path(given.export or made)
        write(folder, params, tables[1], known.words, data.words.shape[1])
        if given.export:
            return
        with served(folder, "--port", str(given.port)) as port:
            begun = time.perf_counter()
            hits = 0
            for start in range(0, len(tested), SIZES[-1]):
                part = tested[start : start + SIZES[-1]]
                texts = [" ".join(reviews.sentences[k]) for k in part]
                praise = ask(port, "opinion", {"text": texts})["praise"]
                hits += int(np.sum((np.array(praise) > 0.5) == data.labels[part]))
            ms = (time.perf_counter() - begun) / len(tested) * 1e3
            print(f"served accuracy: {hits / len(tested):.1%}, {ms:.2f} ms a sentence")
            for text in ("A wonderful, moving film.", "Dull, long and badly acted."):
                found = ask(port, "opinion", [text])
                print(f"{found['praise'][0]:.0%} praise: {text}", flush=True)
            print(f"ask at http://127.0.0.1:{port}/predict/opinion", flush=True)
            with contextlib.suppress(KeyboardInterrupt):
                while not given.once:
                    time.sleep(3600)


if __name__ == "__main__":
    main()
