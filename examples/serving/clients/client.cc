// Asks a model over gRPC, by code that is generated from the server's `.proto` file.
//
//   python -m fxflow.serve.protocol.proto > inference.proto
//   protoc --cpp_out=. --grpc_out=. --plugin=protoc-gen-grpc=$(which grpc_cpp_plugin) inference.proto
//   c++ -std=c++17 -I. client.cc inference.pb.cc inference.grpc.pb.cc
//       $(pkg-config --cflags --libs grpc++ protobuf) -o client
//   ./client 127.0.0.1:8001 MODEL 1 2 3
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <cstring>
#include <iostream>
#include <string>

#include "inference.grpc.pb.h"

int main(int count, char **arguments) {
  if (count < 4) {
    std::cerr << "client ADDRESS MODEL NUMBER...\n";
    return 2;
  }
  auto channel = grpc::CreateChannel(arguments[1], grpc::InsecureChannelCredentials());
  auto service = inference::GRPCInferenceService::NewStub(channel);
  const auto deadline = std::chrono::system_clock::now() + std::chrono::seconds(30);
  const auto check = [](const grpc::Status &status) {
    if (status.ok()) return;
    std::cerr << status.error_message() << "\n";
    std::exit(1);
  };

  inference::ModelMetadataRequest which;
  inference::ModelMetadataResponse known;
  which.set_name(arguments[2]);
  grpc::ClientContext first;
  first.set_deadline(deadline);
  check(service->ModelMetadata(&first, which, &known));

  inference::ModelInferRequest request;
  request.set_model_name(arguments[2]);
  auto *tensor = request.add_inputs();
  tensor->set_name(known.inputs(0).name());
  tensor->set_datatype(known.inputs(0).datatype());
  tensor->add_shape(1);
  tensor->add_shape(count - 3);
  for (int i = 3; i < count; ++i)
    tensor->mutable_contents()->add_fp32_contents(std::stof(arguments[i]));
  inference::ModelInferResponse answer;
  grpc::ClientContext second;
  second.set_deadline(deadline);
  check(service->ModelInfer(&second, request, &answer));

  const std::string &bytes = answer.raw_output_contents(0);
  for (std::size_t i = 0; i + 4 <= bytes.size(); i += 4) {
    float value;
    std::memcpy(&value, bytes.data() + i, 4);
    std::cout << value << (i + 4 < bytes.size() ? " " : "\n");
  }
}
