"""Dataflow functions over processes: the tasks of a cluster run fragments.

`devices` describes a cluster's devices, which is all that planning needs. `cluster`
starts or finds the tasks. `session` is the controller, which sends each task its part
of a program once and step numbers after that; `worker` is a task. Both run their parts
with an `executor`, and exchange `messages` over `links`. `remote` has the arrays that
stay in tasks.
"""
