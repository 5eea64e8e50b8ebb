# %% [markdown]
# # Statistics: a regression with outliers
#
# Brownlee's stack loss data (1965) have three measurements of a chemical plant on 21
# days, and its loss of ammonia. They are a classic because least squares hides that
# four days are outliers. This notebook fits a linear model with normal errors, then
# with errors from Student's t distribution, whose degrees of freedom are estimated too:
# the density has a derivative in *every* parameter.

# %%
import matplotlib.pyplot as plt
import numpy as np

import fxflow
import fxflow.numpy as fnp
from fxflow import random
from fxflow.scipy import stats
from fxflow.scipy.optimize import minimize

fxflow.config.update("x64", True)

flow = [80, 80, 75, 62, 62, 62, 62, 62, 58, 58, 58, 58, 58, 58, 50, 50, 50, 50, 50]
water = [27, 27, 25, 24, 22, 23, 24, 24, 23, 18, 18, 17, 18, 19, 18, 18, 19, 19, 20]
acid = [89, 88, 90, 87, 87, 87, 93, 93, 87, 80, 89, 88, 82, 93, 89, 86, 72, 79, 80]
loss = [42, 37, 37, 28, 18, 18, 19, 20, 15, 14, 14, 13, 11, 12, 8, 7, 8, 8, 9]
flow, water, acid, loss = (
    np.array([*column, *last], float)
    for column, last in zip(
        (flow, water, acid, loss), ((56, 70), (20, 20), (82, 91), (15, 15))
    )
)
x = np.stack([np.ones(21), flow, water, acid], 1)

# %% [markdown]
# ## Least squares
#
# Textbooks give −39.92, 0.716, 1.295, −0.152.

# %%
normal = fnp.linalg.lstsq(x, loss)[0]
print(np.round(np.asarray(normal), 4))

# %% [markdown]
# ## Student's errors
#
# The log-likelihood is one line. `minimize` computes its gradient itself; the degrees
# of freedom and the scale are positive, so their logarithms are the variables.


# %%
def surprise(parameters):
    """Returns minus the logarithm of the likelihood."""
    line, log_scale, log_freedom = parameters[:4], parameters[4], parameters[5]
    errors = loss - x @ line
    density = stats.t.logpdf(errors, fnp.exp(log_freedom), 0.0, fnp.exp(log_scale))
    return -fnp.sum(density)


start = fnp.concatenate([normal, fnp.asarray([1.0, 1.0])])
found = minimize(surprise, start, method="BFGS", options={"gtol": 1e-6})
robust, scale, freedom = found.x[:4], fnp.exp(found.x[4]), fnp.exp(found.x[5])
print("line", np.round(np.asarray(robust), 4))
print(f"scale {float(scale):.3f}, degrees of freedom {float(freedom):.2f}")

# %% [markdown]
# Days 1, 3, 4 and 21 stand out only now: in the least-squares fit, they pull the line
# towards themselves.

# %%
figure, axes = plt.subplots(1, 2, figsize=(10, 3.5), sharey=True)
days = np.arange(1, 22)
for axis, line, title in zip(axes, (normal, robust), ("normal errors", "Student's")):
    errors = loss - np.asarray(x @ line)
    axis.bar(days, errors, color=np.where(abs(errors) > 4.5, "tab:red", "tab:blue"))
    axis.set(title=title, xlabel="day")
plt.show()

# %% [markdown]
# ## How sure?
#
# The curvature at the optimum gives standard errors: the inverse of the Hessian has the
# variances of all six parameters, including the degrees of freedom.

# %%
curvature = fxflow.jit(fxflow.hessian(surprise))(found.x)
spread = fnp.sqrt(fnp.diagonal(fnp.linalg.inv(curvature)))
names = ("constant", "air flow", "water", "acid", "log scale", "log freedom")
for name, value, error in zip(names, found.x, spread):
    print(f"{name:12} {float(value):8.3f} ± {float(error):.3f}")

# %% [markdown]
# The bootstrap needs no curvature: 2,000 samples of the 21 days, each with its own fit,
# in one program. `vmap` turns one fit into 2,000.


# %%
def refit(key):
    chosen = random.choice(key, 21, (21,))

    # Weights that Student's density gives, iterated.
    def improve(line, _):
        errors = loss[chosen] - x[chosen] @ line
        weights = (freedom + 1) / (freedom + (errors / scale) ** 2)
        weighted = x[chosen] * weights[:, None]
        left = weighted.T @ x[chosen] + 1e-6 * fnp.eye(4)
        return fnp.linalg.solve(left, weighted.T @ loss[chosen]), None

    return fxflow.lax.scan(improve, robust, None, length=30)[0]


loss, x = fnp.asarray(loss), fnp.asarray(x)
lines = fxflow.jit(fxflow.vmap(refit))(random.split(random.key(0), 2000))
low, high = np.percentile(np.asarray(lines[:, 1]), [2.5, 97.5])
print(f"air flow: 95 % between {low:.3f} and {high:.3f}")

# %%
figure, axis = plt.subplots(figsize=(6, 3.5))
axis.hist(np.asarray(lines[:, 1]), 50, range=(0.2, 1.4))
axis.axvline(float(normal[1]), color="tab:red", label="least squares")
axis.axvline(float(robust[1]), color="black", label="Student's")
axis.set(xlabel="loss by air flow")
axis.legend()
plt.show()

# %% [markdown]
# The numbers, compared with the textbooks:

# %%
assert np.allclose(normal, [-39.9197, 0.7156, 1.2953, -0.1521], atol=1e-4)
outliers = days[abs(np.asarray(loss - x @ robust)) > 4.5]
assert set(outliers) == {1, 3, 4, 21}, outliers
print("outliers:", outliers)
