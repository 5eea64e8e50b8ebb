"""The steps of `solve_ivp`: methods, runs of steps, events, the adjoint equation."""
