"""Asks a model over gRPC, by code that is generated from the server's `.proto` file.

python -m fxflow.serve.protocol.proto > inference.proto
pip install grpcio-tools
python -m grpc_tools.protoc -I. --python_out=. --grpc_python_out=. inference.proto
python client.py 127.0.0.1:8001 MODEL 1 2 3
"""

import struct
import sys

import grpc
import inference_pb2 as pb
import inference_pb2_grpc as rpc


def main() -> None:
    """Sends one row, and prints the first output."""
    address, model, *row = sys.argv[1:]
    with grpc.insecure_channel(address) as channel:
        service = rpc.GRPCInferenceServiceStub(channel)
        known = service.ModelMetadata(pb.ModelMetadataRequest(name=model), timeout=30)
        given = known.inputs[0]
        request = pb.ModelInferRequest(model_name=model)
        tensor = request.inputs.add(name=given.name, datatype=given.datatype)
        tensor.shape.extend((1, len(row)))
        tensor.contents.fp32_contents.extend(map(float, row))
        answer = service.ModelInfer(request, timeout=30)
    data = answer.raw_output_contents[0]
    print(*struct.unpack(f"<{len(data) // 4}f", data))


if __name__ == "__main__":
    main()
