"""Draws the result of a training run: loss, accuracy, digits with mistakes marked."""

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from mnist import Curve

INK, PALE, RIGHT, WRONG = "#1f3b57", "#b8c7d6", "#2f7d5b", "#c8372d"
ROWS, COLUMNS = 6, 12  # of the grid of digits


def draw(
    curve: "Curve",
    images: np.ndarray,
    labels: np.ndarray,
    probabilities: np.ndarray,
    path: str,
) -> None:
    """Draws a run into a picture file.

    Args:
        curve: the losses and accuracies of the run.
        images: test images `u8[n, 28, 28]`.
        labels: their labels, `u8[n]`.
        probabilities: the model's probabilities, `f32[n, 10]`.
        path: the path of the file; its suffix determines the format.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 8.6), layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)
    top, bottom = figure.subfigures(2, 1, height_ratios=[1, 1.75])
    left, right = top.subplots(1, 2)
    draw_losses(left, curve.losses)
    draw_accuracies(right, curve)
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(axis="y", color="#e6e9ec", linewidth=0.8)
        axes.set_axisbelow(True)

    guesses = probabilities.argmax(-1)
    missed = int(np.sum(guesses != labels))
    bottom.suptitle(
        f"{missed:,} of {len(labels):,} test digits are misread. Above each: what the "
        "model reads. The mistakes made most surely are last.",
        fontsize=11,
        color=INK,
    )
    chosen = choose(labels, probabilities, ROWS * COLUMNS)
    for axes, k in zip(bottom.subplots(ROWS, COLUMNS).flat, chosen, strict=False):
        draw_digit(axes, images[k], int(labels[k]), int(guesses[k]))
    for axes in bottom.axes[len(chosen) :]:
        axes.set_axis_off()
    bottom.get_layout_engine().set(h_pad=0.05, hspace=0.03)
    figure.savefig(path, dpi=120)


def choose(labels: np.ndarray, probabilities: np.ndarray, count: int) -> np.ndarray:
    """Chooses digits to show: the first ones, then the most confident mistakes.

    At most half of them are mistakes; the most confident one is the last.
    """
    wrong = np.flatnonzero(probabilities.argmax(-1) != labels)
    surest = wrong[np.argsort(probabilities[wrong].max(-1), kind="stable")]
    mistakes = surest[max(0, len(surest) - count // 2) :]
    right = np.flatnonzero(probabilities.argmax(-1) == labels)[: count - len(mistakes)]
    return np.concatenate([right, mistakes])


def smooth(values: list[float], window: int = 51) -> np.ndarray:
    """Returns a moving average, over fewer values at both ends."""
    weights = np.ones(min(window, len(values)))
    sums = np.convolve(values, weights, "same")
    return sums / np.convolve(np.ones(len(values)), weights, "same")


def draw_losses(axes: "Axes", losses: list[float]) -> None:
    """Draws each step's loss, pale, and the mean of the steps around it."""
    from matplotlib.ticker import LogLocator, NullLocator

    steps = np.arange(1, len(losses) + 1)
    axes.plot(steps, losses, color=PALE, linewidth=0.6, label="of each batch")
    axes.plot(steps, smooth(losses), color=INK, linewidth=1.8, label="mean of 51")
    axes.set(yscale="log", xlabel="step", title="Training loss")
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 3)))
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_locator(NullLocator())
    axes.legend(frameon=False)


def draw_accuracies(axes: "Axes", curve: "Curve") -> None:
    """Draws the accuracy after each epoch, and prints the last one."""
    epochs = np.arange(1, len(curve.accuracies) + 1)
    percent = 100 * np.asarray(curve.accuracies)
    axes.plot(epochs, percent, color=RIGHT, marker="o", linewidth=1.8)
    axes.annotate(
        f"{percent[-1]:.2f} %",
        (epochs[-1], percent[-1]),
        xytext=(0, 9),
        textcoords="offset points",
        ha="right",
        color=RIGHT,
        fontsize=12,
        fontweight="bold",
    )
    axes.set(xlabel="epoch", title="Test accuracy in percent", xticks=epochs)
    axes.margins(0.08, 0.3)


def draw_digit(axes: "Axes", image: np.ndarray, label: int, guess: int) -> None:
    """Draws a digit with its prediction; a mistake has a frame and the label."""
    right = label == guess
    axes.imshow(image, cmap="gray_r", interpolation="bilinear")
    axes.set(xticks=[], yticks=[])
    title = str(guess) if right else f"{guess}, is {label}"
    axes.set_title(title, fontsize=9, color=RIGHT if right else WRONG, pad=2)
    for spine in axes.spines.values():
        spine.set(visible=not right, color=WRONG, linewidth=1.8)
