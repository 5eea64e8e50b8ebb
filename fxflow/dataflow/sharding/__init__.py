"""Automatic sharding: how a function is divided over a mesh, chosen by cost.

`rules` says which axes of an operation's operands and results are one dimension;
`program` lists the operations of a graph, and `dimensions` finds what is divided
together in it; `tying` finds what repeats. `model` has the cost of each choice, and
`solving` the choices of least cost. `collectives` are what devices send each other, and
`constraints` what the partitioner does not find by itself. `sharded` joins all this for
a graph, `plan` and `automatic` for a function, `stages` for the meshes of a plan of
`dataflow.jit`.
"""
