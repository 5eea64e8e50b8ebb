"""Recent and less common optimizers, under the names of `optax.contrib`.

tx = optim.contrib.muon(1e-2)
"""

# fmt: off
from fxflow.core.boundary import public as _public
from fxflow.optim.contrib.by_value import (
    COCOBState, MomoAdamState, MomoState, ReduceLROnPlateauState, cocob, momo,
    momo_adam, reduce_on_plateau, scale_by_cocob,
)
from fxflow.optim.contrib.complex_parts import (
    SplitRealAndImaginaryArrays, SplitRealAndImaginaryState, split_real_and_imaginary,
)
from fxflow.optim.contrib.curvature import (
    HutchinsonState, SophiaState, hutchinson_estimator_diag_hessian, sophia,
)
from fxflow.optim.contrib.distances import (
    DAdaptAdamWState, DoGState, DoWGState, MechanicState, ProdigyState, dadapt_adamw,
    dog, dowg, mechanize, prodigy,
)
from fxflow.optim.contrib.low_rank import (
    GaLoreDimensionNumbers, GaLoreState, galore, scale_by_galore,
)
from fxflow.optim.contrib.orthogonal import (
    MuonDimensionNumbers, MuonState, muon, scale_by_muon,
)
from fxflow.optim.contrib.privacy import (
    DifferentiallyPrivateAggregateState, differentially_private_aggregate, dpsgd,
)
from fxflow.optim.contrib.scheduleless import (
    ScheduleFreeState, schedule_free, schedule_free_adamw,
    schedule_free_eval_params, schedule_free_sgd,
)
from fxflow.optim.contrib.sharpness import SAMState, sam
from fxflow.optim.contrib.variants import (
    MadgradState, ScaleByAdemamixState, ScaleBySimplifiedAdEMAMixState, acprop,
    ademamix, adopt, madgrad, normalize, scale_by_acprop, scale_by_ademamix,
    scale_by_adopt, scale_by_madgrad, scale_by_simplified_ademamix, simplified_ademamix,
)

__all__ = [
    "COCOBState", "DAdaptAdamWState", "DifferentiallyPrivateAggregateState", "DoGState",
    "DoWGState", "GaLoreDimensionNumbers", "GaLoreState", "HutchinsonState",
    "MadgradState", "MechanicState", "MomoAdamState", "MomoState",
    "MuonDimensionNumbers", "MuonState", "ProdigyState", "ReduceLROnPlateauState",
    "SAMState", "ScaleByAdemamixState", "ScaleBySimplifiedAdEMAMixState",
    "ScheduleFreeState", "SophiaState", "SplitRealAndImaginaryArrays",
    "SplitRealAndImaginaryState", "acprop", "ademamix", "adopt", "cocob",
    "dadapt_adamw", "differentially_private_aggregate", "dog", "dowg", "dpsgd",
    "galore", "hutchinson_estimator_diag_hessian", "madgrad", "mechanize", "momo",
    "momo_adam", "muon", "normalize", "prodigy", "reduce_on_plateau", "sam",
    "scale_by_acprop", "scale_by_ademamix", "scale_by_adopt", "scale_by_cocob",
    "scale_by_galore", "scale_by_madgrad", "scale_by_muon",
    "scale_by_simplified_ademamix", "schedule_free", "schedule_free_adamw",
    "schedule_free_eval_params", "schedule_free_sgd", "simplified_ademamix", "sophia",
    "split_real_and_imaginary",
]
# fmt: on

_public(globals(), __all__)
