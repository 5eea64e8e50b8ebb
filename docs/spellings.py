"""Other libraries' names for fxflow's functions, and the guides that use them.

A reader who searches the site for `PRNGKey`, `jnp.where` or `optax.adam` finds the page
of fxflow's function: the page lists these names. They come from the modules of
`fxflow.compat.jax`, and from the table behind the errors for absent names.
"""

import importlib
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from fxflow._names import _CALLED_HERE

#: Modules of JAX, each with the short name that programs use.
JAX = {
    "jax": "jax",
    "jax.numpy": "jnp",
    "jax.numpy.linalg": "jnp.linalg",
    "jax.numpy.fft": "jnp.fft",
    "jax.lax": "lax",
    "jax.nn": "jax.nn",
    "jax.nn.initializers": "jax.nn.initializers",
    "jax.random": "jax.random",
    "jax.tree": "jax.tree",
    "jax.tree_util": "jax.tree_util",
    "jax.sharding": "jax.sharding",
    "jax.image": "jax.image",
    "jax.ops": "jax.ops",
    "jax.debug": "jax.debug",
    "jax.experimental.checkify": "checkify",
    "jax.experimental.shard_map": "jax.experimental.shard_map",
}
#: Packages of fxflow.optim, and the names in them that Optax does not have.
OPTAX = {
    "fxflow.optim": "optax",
    "fxflow.optim.losses": "optax.losses",
    "fxflow.optim.contrib": "optax.contrib",
    "fxflow.optim.projections": "optax.projections",
    "fxflow.optim.assignment": "optax.assignment",
    "fxflow.optim.perturbations": "optax.perturbations",
}
OWN = {
    *("BacktrackingLinesearchInfo", "MultiNormal", "ScaleByDistanceOverGradientsState"),
    *("ScaleByOptimisticGradientState", "SplitRealAndImaginaryArrays"),
    *("StatefulSchedule", "implicit", "momentum", "nesterov", "unitwise_clip"),
    "unitwise_norm",
}
#: Names of fxflow that JAX does not have in its module of the same name.
NOT_JAX = {
    "jax": "CustomVJPPrimal Mesh PartitionSpec Sharding SingleDeviceSharding "
    "SymbolicZero checkpoint_name get_mesh io_callback jet linear_call make_graph",
    "jax.numpy": "fix real_if_close",
    "jax.numpy.linalg": "EigResult EighResult QRResult SVDResult SlogdetResult",
    "jax.lax": "argsort copy linear_recurrence masked random_fold_in random_seed "
    "random_split random_unwrap random_wrap threefry2x32",
    "jax.nn": "Candidates avg_pool batch_norm batch_norm_init batch_norm_state conv "
    "conv_init ctc_loss ctc_loss_with_forward_probs dropout embedding embedding_bag "
    "embedding_init group_norm group_norm_init gru gru_cell gru_cell_init gru_init "
    "gru_state in_batch_softmax_loss instance_norm instance_norm_init layer_norm "
    "layer_norm_init linear "
    "linear_cross_entropy linear_init log_uniform_candidates lstm lstm_cell "
    "lstm_cell_init lstm_init lstm_state max_pool nce_loss quantized_linear "
    "quantized_linear_init rms_norm rms_norm_init sampled_softmax_loss "
    "uniform_candidates unigram_candidates",
    "jax.tree": "DictKey FlattenedIndexKey GetAttrKey Partial PyTreeDef SequenceKey "
    "all_leaves broadcast_prefix flatten_one_level flatten_one_level_with_keys "
    "flatten_up_to is_tree_node keystr register_dataclass register_pytree_node "
    "register_pytree_node_class register_pytree_with_keys "
    "register_pytree_with_keys_class register_static treedef_children "
    "treedef_is_leaf treedef_tuple",
    "jax.sharding": "GSPMDSharding P make_mesh",
    "jax.debug": "print_saved_residuals",
}
#: The names of packages in pages and examples.
SHORT = {"fnp": "fxflow.numpy", "P": "fxflow.P", "fxflow": "fxflow"}
for _name in ("lax", "nn", "optim", "random", "tree", "debug", "viz", "errors"):
    SHORT[_name] = f"fxflow.{_name}"
for _name in ("train", "sparse", "kernels", "dataflow", "profiler", "export", "scipy"):
    SHORT[_name] = f"fxflow.{_name}"
for _name in ("stats", "signal", "special", "integrate", "interpolate", "optimize"):
    SHORT[_name] = f"fxflow.scipy.{_name}"


def spellings(public: Iterable[str]) -> dict[str, list[str]]:
    """Returns other libraries' names for the public names that they have.

    Args:
      public: full names, such as `fxflow.numpy.where`.

    Returns:
      Names in order, such as `["jnp.where", "jax.numpy.where"]`, for each public name.
    """
    names = set(public)
    found: dict[str, list[str]] = {}

    def add(name: str, *others: str) -> None:
        known = found.setdefault(name, [])
        known.extend(other for other in others if other not in known)

    for module, short in JAX.items():
        here = "fxflow" + module.removeprefix("jax").replace("tree_util", "tree")
        here = here.replace(".experimental", "")
        listed = dir(importlib.import_module(f"fxflow.compat.{module}"))
        for name in set(listed).difference(NOT_JAX.get(module, "").split()):
            same = name.removeprefix("tree_") if here == "fxflow.tree" else name
            at = f"{here}.{same}"
            if at not in names and "experimental" in module:
                at = f"fxflow.{same}"
            if at in names and not name.startswith("_"):
                add(at, *dict.fromkeys((f"{short}.{name}", f"{module}.{name}")))
    for package, optax in OPTAX.items():
        for full in names:
            module, _, name = full.rpartition(".")
            if module == package and name not in OWN:
                add(full, f"{optax}.{name}")
                if module == "fxflow.optim.losses":
                    add(full, f"optax.{name}")
    for module, table in _CALLED_HERE.items():
        place = module.removeprefix("fxflow").lstrip(".")
        for absent, called in table.items():
            leading = re.match(r"[\w.]+(?=$|[(,]| or| for)", called)
            at = f"fxflow.{leading[0]}" if leading else ""
            if at in names:
                add(at, f"{place}.{absent}".lstrip("."))
    return found


def mentions(pages: dict[str, str], public: dict[str, Any]) -> dict[Any, list[str]]:
    """Returns the pages that mention each object most.

    Args:
      pages: the text of each page, by its name.
      public: what each public name stands for, as a key of the result.

    Returns:
      At most three pages for each object.
    """
    counts: dict[Any, Counter[str]] = {}
    for page, text in pages.items():
        for name in re.findall(r"(?<![\w.])[A-Za-z_]\w*(?:\.\w+)+", text):
            head, _, rest = name.partition(".")
            full = f"{SHORT.get(head, head)}.{rest}"
            if full in public:
                counts.setdefault(public[full], Counter())[page] += 1
    return {
        key: [page for page, _ in counter.most_common(3)]
        for key, counter in counts.items()
    }


def texts(folder: Path) -> dict[str, str]:
    """Returns the text of each guide and tutorial, by its page."""
    guides = sorted((folder / "docs" / "guides").glob("*.md"))
    notebooks = sorted((folder / "notebooks").glob("*.py"))
    return {
        **{f"guides/{path.stem}": path.read_text("utf-8") for path in guides},
        **{f"notebooks/{path.stem}": path.read_text("utf-8") for path in notebooks},
    }
