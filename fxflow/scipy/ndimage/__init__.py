"""Images of any number of axes: `fxflow.scipy.ndimage`."""

# fmt: off
from fxflow.core.boundary import public as _public
from fxflow.scipy.ndimage.distances import (
    distance_transform_bf, distance_transform_cdt, distance_transform_edt,
)
from fxflow.scipy.ndimage.filters import (
    convolve, convolve1d, correlate, correlate1d, gaussian_filter, gaussian_filter1d,
    gaussian_gradient_magnitude, gaussian_laplace, laplace, prewitt, sobel,
    uniform_filter, uniform_filter1d,
)
from fxflow.scipy.ndimage.fourier_filters import (
    fourier_ellipsoid, fourier_gaussian, fourier_shift, fourier_uniform,
)
from fxflow.scipy.ndimage.generic_filters import (
    generic_filter, generic_filter1d, generic_gradient_magnitude, generic_laplace,
    vectorized_filter,
)
from fxflow.scipy.ndimage.interpolation import (
    affine_transform, geometric_transform, map_coordinates, rotate, shift,
    spline_filter, spline_filter1d, zoom,
)
from fxflow.scipy.ndimage.measurements import (
    center_of_mass, extrema, find_objects, histogram, label, labeled_comprehension,
    maximum, maximum_position, mean, median, minimum, minimum_position,
    standard_deviation, sum, sum_labels, value_indices, variance,
)
from fxflow.scipy.ndimage.morphology import (
    binary_closing, binary_dilation, binary_erosion, binary_fill_holes,
    binary_hit_or_miss, binary_opening, binary_propagation, black_tophat,
    generate_binary_structure, grey_closing, grey_dilation, grey_erosion, grey_opening,
    iterate_structure, morphological_gradient, morphological_laplace, white_tophat,
)
from fxflow.scipy.ndimage.rank_filters import (
    maximum_filter, maximum_filter1d, median_filter, minimum_filter, minimum_filter1d,
    percentile_filter, rank_filter,
)
from fxflow.scipy.ndimage.watersheds import watershed_ift

__all__ = [
    "affine_transform", "binary_closing", "binary_dilation", "binary_erosion",
    "binary_fill_holes", "binary_hit_or_miss", "binary_opening", "binary_propagation",
    "black_tophat", "center_of_mass", "convolve", "convolve1d", "correlate",
    "correlate1d", "distance_transform_bf", "distance_transform_cdt",
    "distance_transform_edt", "extrema", "find_objects", "fourier_ellipsoid",
    "fourier_gaussian", "fourier_shift", "fourier_uniform", "gaussian_filter",
    "gaussian_filter1d", "gaussian_gradient_magnitude", "gaussian_laplace",
    "generate_binary_structure", "generic_filter", "generic_filter1d",
    "generic_gradient_magnitude", "generic_laplace", "geometric_transform",
    "grey_closing", "grey_dilation", "grey_erosion", "grey_opening", "histogram",
    "iterate_structure", "label", "labeled_comprehension", "laplace", "map_coordinates",
    "maximum", "maximum_filter", "maximum_filter1d", "maximum_position", "mean",
    "median", "median_filter", "minimum", "minimum_filter", "minimum_filter1d",
    "minimum_position", "morphological_gradient", "morphological_laplace",
    "percentile_filter", "prewitt", "rank_filter", "rotate", "shift", "sobel",
    "spline_filter", "spline_filter1d", "standard_deviation", "sum", "sum_labels",
    "uniform_filter", "uniform_filter1d", "value_indices", "variance",
    "vectorized_filter", "watershed_ift", "white_tophat", "zoom",
]
# fmt: on

_public(globals(), __all__)
