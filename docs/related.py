"""Names that belong together though they are in different files or modules.

The reference links what stands beside a function in its file or subject. A function
alone in its file has no such neighbours: its page links to what its line has here.
"""

#: The first name of a line, and what its page links to: in its module, if without dots.
LINES = """
fxflow.dataflow.Plan jit Fragment Schedule SavedPlan Costs
fxflow.dataflow.Rates calibrate Costs
fxflow.distributed.Outcome elastic initialize World
fxflow.distributed.parameter_server.Filter parameter_server Consistency
fxflow.distributed.parameter_server.restart_servers move_shard load_snapshot
fxflow.distributed.parameter_server.move_shard rebalance_shards restart_servers
fxflow.distributed.parameter_server.rebalance_shards move_shard simulate
fxflow.distributed.parameter_server.tables.RowBlock RowTable RowPrograms
fxflow.distributed.parameter_server.simulate bsp ssp asynchronous
fxflow.distributed.parameter_server.monitor.trace Monitor Exporter
fxflow.distributed.zero.Sharded ShardedOptimizer ShardedState sharded_optimizer
fxflow.flatten_util.ravel_pytree fxflow.tree.flatten fxflow.tree.unflatten
fxflow.lax.scaled_dot dot_general dot fxflow.nn.scaled_matmul
fxflow.lax.threefry2x32 fxflow.random.bits fxflow.random.key
fxflow.lax.betainc fxflow.scipy.special.betainc igamma lgamma
fxflow.lax.composite fxflow.jit fxflow.named_call
fxflow.lax.bitcast_convert_type convert_element_type fxflow.numpy.astype
fxflow.lax.gather scatter scatter_add dynamic_slice index_take fxflow.numpy.take
fxflow.lax.scatter_apply scatter scatter_add scatter_mul
fxflow.lax.pad concatenate fxflow.numpy.pad
fxflow.lax.reduce reduce_sum reduce_window associative_scan
fxflow.lax.reduce_window reduce reduce_window_shape_tuple conv
fxflow.lax.linear_recurrence associative_scan scan cumsum
fxflow.lax.ragged_all_to_all all_to_all all_gather ppermute
fxflow.lax.with_sharding_constraint fxflow.device_put fxflow.sharding.reshard
fxflow.lax.mulhi mul
fxflow.lax.linalg.eig eigh hessenberg qr schur svd
fxflow.memory.Space fxflow.device_put fxflow.checkpoint
fxflow.numpy.pad concatenate fxflow.lax.pad
fxflow.numpy.bfloat16 float16 float32 float64 finfo promote_types
fxflow.numpy.complex64 complex128 float32 float64 issubdtype
fxflow.numpy.float4_e2m1fn float8_e8m0fnu float8_e4m3fn finfo fxflow.lax.scaled_dot
fxflow.numpy.float8_e3m4 float8_e4m3 float8_e4m3b11fnuz float8_e4m3fnuz float8_e5m2 \
float8_e5m2fnuz finfo
fxflow.numpy.int2 int4 int8 int16 int32 int64 iinfo
fxflow.numpy.uint2 uint4 uint8 uint16 uint32 uint64 iinfo
fxflow.numpy.bool int8 uint8 issubdtype promote_types
fxflow.numpy.ufunc frompyfunc vectorize add
fxflow.optim.flatten fxflow.flatten_util.ravel_pytree chain
fxflow.optim.nnls fxflow.optim.projections.projection_non_negative \
fxflow.scipy.optimize.nnls
fxflow.optim.assignment.hungarian_algorithm fxflow.scipy.optimize.linear_sum_assignment
fxflow.optim.losses.ntxent triplet_margin_loss cosine_similarity
fxflow.optim.losses.ranking_softmax_loss softmax_cross_entropy \
sigmoid_binary_cross_entropy
fxflow.ragged.RaggedArray array from_padded
fxflow.ref.AbstractRef fxflow.new_ref fxflow.freeze
fxflow.scipy.cluster.hierarchy.DisjointSet linkage fcluster
fxflow.scipy.interpolate.BPoly PPoly BSpline
fxflow.scipy.interpolate.Rbf RBFInterpolator griddata
fxflow.scipy.linalg.clarkson_woodruff_transform fxflow.scipy.linalg.lstsq
fxflow.scipy.linalg.ldl cholesky lu
fxflow.scipy.ndimage.watershed_ift label distance_transform_edt
fxflow.scipy.optimize.OptimizeResults minimize root least_squares
fxflow.scipy.optimize.differential_evolution dual_annealing direct basinhopping minimize
fxflow.scipy.optimize.direct differential_evolution dual_annealing brute minimize
fxflow.scipy.optimize.shgo direct differential_evolution dual_annealing minimize
fxflow.scipy.optimize.isotonic_regression curve_fit lsq_linear
fxflow.scipy.optimize.line_search minimize fxflow.optim.scale_by_zoom_linesearch
fxflow.scipy.signal.ShortTimeFFT stft istft spectrogram
fxflow.scipy.signal.find_peaks_cwt find_peaks argrelextrema
fxflow.scipy.signal.get_window firwin welch
fxflow.scipy.signal.place_poles StateSpace lsim
fxflow.scipy.signal.vectorstrength periodogram
fxflow.scipy.sparse.linalg.eigsh svds eigs lobpcg
fxflow.scipy.sparse.linalg.svds eigsh fxflow.scipy.linalg.svd
fxflow.scipy.spatial.KDTree cKDTree fxflow.scipy.spatial.distance.cdist Delaunay
fxflow.scipy.spatial.transform.Rotation RigidTransform Slerp RotationSpline
fxflow.scipy.special.ellipj ellipk ellipkinc
fxflow.scipy.special.loggamma gammaln gamma rgamma
fxflow.scipy.special.round fxflow.numpy.round fxflow.numpy.rint
fxflow.scipy.special.sph_harm_y sph_legendre_p lpmv
fxflow.scipy.stats.Covariance fxflow.numpy.cov fxflow.random.multivariate_normal
fxflow.scipy.stats.bayes_mvs bootstrap sem
fxflow.scipy.stats.gaussian_kde fxflow.numpy.histogram
fxflow.scipy.stats.quantile fxflow.numpy.quantile quantile_test
fxflow.scipy.stats.rv_histogram gaussian_kde ecdf fxflow.numpy.histogram
fxflow.scipy.stats.sobol_indices permutation_test
fxflow.scipy.stats.multiscale_graphcorr chatterjeexi permutation_test
fxflow.train.precision.all_finite select_tree
fxflow.scipy.stats.ortho_group.rvs fxflow.scipy.stats.special_ortho_group.rvs \
fxflow.scipy.stats.unitary_group.rvs fxflow.random.orthogonal
fxflow.scipy.stats.special_ortho_group.rvs fxflow.scipy.stats.ortho_group.rvs \
fxflow.scipy.stats.unitary_group.rvs fxflow.random.orthogonal
fxflow.scipy.stats.unitary_group.rvs fxflow.scipy.stats.ortho_group.rvs \
fxflow.random.orthogonal
fxflow.scipy.stats.random_correlation.rvs fxflow.random.orthogonal
fxflow.scipy.stats.uniform_direction.rvs fxflow.random.ball
fxflow.serve.Repository fxflow.serve.load_model Model ModelService
fxflow.sparse.Pattern csr_array jacobian_pattern
fxflow.sparse.jacobian_pattern Pattern csr_array fxflow.jacfwd
fxflow.sparse.SparseVector SparseArray coo_array csr_array
fxflow.train.data.LabelJoin records json_lines Features
fxflow.tree.keystr flatten_with_path leaves_with_path map_with_path
"""


def lines() -> list[list[str]]:
    """Returns the names of each line with their modules."""
    found = []
    for line in LINES.strip().splitlines():
        names = line.split()
        module = names[0].rpartition(".")[0]
        found.append([n if "." in n else f"{module}.{n}" for n in names])
    return found
