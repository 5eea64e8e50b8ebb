"""The Open Inference Protocol v2, as KServe and Triton speak it.

Reading order: `tensors` (requests and answers as JSON and binary data), `front` (shared
by HTTP and gRPC), `asgi`, `connections`, `endpoints` and `http` (HTTP), `rpc` (gRPC),
`descriptions` (OpenAPI, status pages, Triton's configuration and statistics).

Source: https://github.com/kserve/open-inference-protocol, and Triton's extensions for
binary tensor data and the model repository.
"""
