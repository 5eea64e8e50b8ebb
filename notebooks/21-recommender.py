# %% [markdown]
# # A recommender
#
# Which films will a person like? 943 people gave 100,000 ratings of 1,682 films
# (MovieLens-100k, GroupLens Research). Each person and each film becomes a vector, and
# the product of two vectors predicts the stars.

# %%
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import fxflow
import fxflow.numpy as fnp
from fxflow import nn, optim, random

# The code that reads the data is in fxflow's repository.
places = [Path.cwd(), *Path.cwd().parents, Path(fxflow.__file__).parents[1]]
examples = [p / "examples" for p in places if (p / "examples/helpers").is_dir()]
assert examples, "examples/helpers was not found: run this in a checkout of fxflow"
sys.path.insert(0, str(examples[0]))
from helpers.ratings import load_ratings

ratings = load_ratings()
people, films, stars = ratings.people, ratings.films, ratings.stars
print(people.max() + 1, films.max() + 1, stars.mean())
plt.bar(*np.unique(stars, return_counts=True))
plt.xlabel("stars")
plt.ylabel("ratings")
plt.show()

# %% [markdown]
# ## What to measure
#
# The last ten ratings of each person are held out: a recommender must predict later
# ratings from earlier ones. The simplest guess is the mean of the film, and any model
# should be better.

# %%
last = np.ones(len(people), bool)
last[:-10] = people[10:] != people[:-10]
learned, held_out = np.flatnonzero(~last), np.flatnonzero(last)

sums = np.bincount(films[learned], stars[learned], 1682)
counts = np.bincount(films[learned], minlength=1682)
means = (sums + 5 * stars[learned].mean()) / (counts + 5)


def error(guesses):
    return float(np.sqrt(np.mean((np.asarray(guesses) - stars[held_out]) ** 2)))


by_film = error(means[films[held_out]])
print(f"{len(learned):,} to learn from")
print(f"the film's mean is wrong by {by_film:.3f} stars")

# %% [markdown]
# ## The model
#
# A table has a row for each person, another for each film; `nn.embedding` takes rows.
# Besides the product there is a level for each person (some are strict) and for each
# film (some are good).

# %%
FEATURES = 16


def init(key):
    keys = random.split(key, 2)
    small = nn.initializers.normal(0.05)

    def table(key, rows):
        vectors = nn.embedding_init(key, rows, FEATURES, w_init=small)
        return {"vectors": vectors, "level": fnp.zeros(rows)}

    return {
        "people": table(keys[0], 943),
        "films": table(keys[1], 1682),
        "mean": fnp.float32(stars[learned].mean()),
    }


def guess(params, person, film):
    """`person` and `film` are i32[...]; returns f32[...]."""
    one = nn.embedding(params["people"]["vectors"], person)
    other = nn.embedding(params["films"]["vectors"], film)
    levels = params["people"]["level"][person] + params["films"]["level"][film]
    return params["mean"] + levels + fnp.sum(one * other, -1)


# %% [markdown]
# The loss keeps vectors small (*weight decay*); otherwise the 16 numbers of a
# person would memorize the ratings. Only the rows in the batch count, so frequent
# films are decayed more often, as they should be.


# %%
def loss(params, person, film, given):
    wrong = (guess(params, person, film) - given) ** 2
    rows = [
        nn.embedding(params["people"]["vectors"], person),
        nn.embedding(params["films"]["vectors"], film),
    ]
    size = sum(fnp.sum(row**2, -1) for row in rows)
    return fnp.mean(wrong + 0.1 * size)


EPOCHS, BATCH = 6, 1000
optimizer = optim.adam(optim.cosine_decay_schedule(0.01, EPOCHS * 90))


@fxflow.jit
def step(state, *batch):
    params, memory = state
    value, slope = fxflow.value_and_grad(loss)(params, *batch)
    updates, memory = optimizer.update(slope, memory, params)
    return (optim.apply_updates(params, updates), memory), value


evaluate = fxflow.jit(guess)
params = init(random.key(0))
state, errors = (params, optimizer.init(params)), []
generator = np.random.default_rng(0)
for _ in range(EPOCHS):
    order = generator.permutation(learned)
    for start in range(0, len(order) - BATCH + 1, BATCH):
        rows = order[start : start + BATCH]
        state, _ = step(state, people[rows], films[rows], stars[rows])
    errors.append(error(evaluate(state[0], people[held_out], films[held_out])))

params = state[0]
plt.plot(range(1, EPOCHS + 1), errors, "o-", label="model")
plt.axhline(by_film, linestyle=":", color="gray", label="the film's mean")
plt.xlabel("epoch")
plt.ylabel("error on later ratings, stars")
plt.legend()
plt.show()

# %% [markdown]
# ## Recommend
#
# The predictions for all films are one row; leave out what the person has seen, and
# take the largest.


# %%
@fxflow.jit
def recommend(params, person, seen):
    row = guess(params, person, fnp.arange(1682))
    return fxflow.lax.top_k(fnp.where(seen, -fnp.inf, row), 5)


for person in (0, 1):
    seen = np.zeros(1682, bool)
    seen[films[learned][people[learned] == person]] = True
    values, best = recommend(params, person, seen)
    shown = ", ".join(f"{film} ({value:.1f})" for film, value in zip(best, values))
    print(f"person {person}: films {shown}")

# %% [markdown]
# Films that the same people like have similar vectors. The neighbours of a film are
# those with the largest cosine; here, of the film with the most ratings:

# %%
vectors = params["films"]["vectors"]["w"]
units = vectors / fnp.linalg.norm(vectors, axis=1, keepdims=True)
film = int(counts.argmax())
cosines = fnp.where(counts >= 30, units @ units[film], -1)
print(f"film {film} (from 0) resembles", fnp.argsort(-cosines)[1:6])

# %% [markdown]
# The error on later ratings:

# %%
print(f"{errors[-1]:.3f} stars; the film's mean {by_film:.3f}")
assert errors[-1] < by_film - 0.02

# %% [markdown]
# ## From logs to answers
#
# At scale, the data are logs: columns of strings and counts, with gaps. The tables have
# millions of rows, of which a step should touch those of its batch only. And a client
# waits for an answer. `clicks.py` makes logs like those of Criteo's ads: was an ad
# clicked, 13 numbers, 26 columns of strings. It draws each click with a probability
# from a formula, so we know the best result that there can be. Reading Parquet needs
# `pip install fxflow[arrow]`.

# %%
import tempfile

from recommenders.clicks import Clicks, write

folder = Path(tempfile.mkdtemp())
clicks = Clicks(20_000)
write(folder / "learned.parquet", clicks, 0, 131_072)
write(folder / "later.parquet", clicks, 131_072, 163_840)
log = fxflow.train.data.parquet(str(folder / "learned.parquet"), size=512)
line = next(iter(log))
for name in ("label", "I1", "I2", "C1", "C2"):
    print(name, line[name][:5].to_pylist())

# %% [markdown]
# ### Columns become ids
#
# A description says what each column becomes. `fit` gives a function, which the server
# will use, too; for means and vocabularies it reads the log once. Here strings are
# hashed into one table of 65,536 rows, and numbers fall into intervals; 0 is missing.

# %%
from fxflow.train import data, metrics, table_trainer

strings, numbers = [f"C{i + 1}" for i in range(26)], [f"I{i + 1}" for i in range(13)]
described = {name: data.Hash(name, 1 << 16) for name in strings}
described |= {name: data.Bucket(name, [1, 2, 4, 8, 16, 32, 64]) for name in numbers}
features = data.Features(described).fit(log)
arrays = features(line)
print(arrays["C1"][:5], arrays["I1"][:5])

# %% [markdown]
# ### The model
#
# A *factorization machine* (Rendle 2010): each id has a weight and a vector; the
# products of all pairs of an example's vectors are added up, in linear time. Each
# interval of a number has a weight. The table is updated by rows: those that a batch
# does not name do not change.

# %%
from fxflow.distributed.parameter_server import TableSpec

tables = [
    TableSpec(
        "ids",
        1 + 8,
        optim.adagrad(0.05, initial_accumulator_value=1e-6),
        nn.initializers.normal(0.03),
        rows=1 + (1 << 16),
    )
]


def logits(params, rows, batch):
    weights, vectors = rows["ids"][..., 0], rows["ids"][..., 1:]
    pairs = fnp.sum(vectors, 1) ** 2 - fnp.sum(vectors**2, 1)
    intervals = fnp.stack([batch[name] for name in numbers], 1)
    dense = fnp.sum(params["numbers"][fnp.arange(13), intervals], 1)
    return params["bias"] + dense + fnp.sum(weights, 1) + fnp.sum(pairs, 1) / 2


def click_loss(params, rows, given):
    batch, clicked = given
    found = logits(params, rows, batch)
    return fnp.mean(nn.softplus(found) - clicked * found)


def prepared(lines):
    made = features(lines)
    ids = {"ids": np.stack([made[name] for name in strings], 1)}
    return ids, {name: made[name] for name in numbers}, np.float32(lines["label"])


trainer = table_trainer(click_loss, optim.adam(0.01), tables)
state = trainer.init({"numbers": fnp.zeros((13, 9)), "bias": fnp.float32(0)})
losses = []
for lines in log:
    ids, counts, clicked = prepared(lines)
    state, done = trainer.step(state, (counts, clicked), ids=ids)
    losses.append(done.loss)
losses = np.array(losses)
plt.plot(np.convolve(losses, np.ones(20) / 20, "valid"))
plt.xlabel("step")
plt.ylabel("loss, mean of 20 steps")
plt.show()

# %% [markdown]
# With `consistency=asynchronous()`, the same model trains on parameter servers, whose
# tables need not fit into one machine.
#
# ### Is it any good?
#
# The metrics are sums, which are added up over the batches of later lines. The AUC is
# the share of pairs, a click and none, that the model ranks correctly. If 20 % is
# predicted, 20 % should click: that is calibration.


# %%
@fxflow.jit
def measured(params, rows, counts, clicked):
    chance = nn.sigmoid(logits(params, rows, counts))
    return metrics.scores(chance, clicked), metrics.calibration(
        chance, clicked, bins=10
    )


auc, calibration = metrics.Scores.empty(), metrics.Calibration.empty(10)
for lines in data.parquet(str(folder / "later.parquet"), size=2048):
    ids, counts, clicked = prepared(lines)
    found = measured(trainer.params(state), trainer.rows(ids, state), counts, clicked)
    auc, calibration = auc.merge(found[0]), calibration.merge(found[1])

known = clicks(131_072, 32_768)
best = metrics.scores(known.chance, known.clicked)
predicted, happened, _ = calibration.table()
plt.plot(predicted, happened, "o-")
plt.plot([0, 1], [0, 1], ":", color="gray")
plt.xlabel("predicted")
plt.ylabel("clicked")
plt.show()

# %% [markdown]
# ### Answers
#
# The folder has the dense part as a program, the table, and the features: a request has
# the columns of the log. `fxflow serve FOLDER` answers over HTTP; here, without one.

# %%
from fxflow import serve


def predict(params, rows, batch):
    return {"click": nn.sigmoid(logits(params, rows, batch))}


served = folder / "clicks"
serve.save_recommender(
    served, predict, state, tables, features, columns={"ids": strings}
)
model = serve.load_recommender(served)
lines = next(iter(data.parquet(str(folder / "later.parquet"), size=4)))
requests = [
    {name: lines[name][row].as_py() for name in strings + numbers} for row in range(4)
]
answers = model.predict(requests)["click"]
print("served", np.round(answers, 3), "clicked", lines["label"].to_pylist())

# %% [markdown]
# The numbers: the AUC of later lines, beside the best there can be; and what is served
# is what was trained.

# %%
ids, counts, _ = prepared(lines)
trained = nn.sigmoid(logits(trainer.params(state), trainer.rows(ids, state), counts))
np.testing.assert_allclose(answers, trained, atol=1e-5)
print(f"AUC {float(auc.compute()):.3f}; the best is {float(best.compute()):.3f}")
assert 0.74 < auc.compute() < best.compute()
