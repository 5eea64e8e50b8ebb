"""The Open Inference Protocol v2, as KServe and Triton speak it.

To be read in this order: `tensors` (requests and answers as JSON and bytes), `front`
(what HTTP and gRPC do alike), `asgi` and `http` (HTTP), `pages` (descriptions of the
server), `triton` (statistics and configuration), `messages` and `rpc` (gRPC).

Source: https://github.com/kserve/open-inference-protocol, and Triton's extensions for
binary tensor data and the model repository.
"""
