"""The Open Inference Protocol v2, as KServe and Triton speak it.

To be read in this order: `tensors` (requests and answers as JSON and bytes), `exchange`
(requests and answers of the routes that predict), `openapi` (the description), `http`
(the routes), `messages` and `rpc` (the same over gRPC).

Source: https://github.com/kserve/open-inference-protocol, and Triton's extensions for
binary tensor data and the model repository.
"""
