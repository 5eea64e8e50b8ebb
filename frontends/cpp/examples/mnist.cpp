// Trains a net for MNIST for an epoch, tests it, and saves it.
//
//   python frontends/export_mnist.py build
//   cc -std=c11 -O2 -c frontends/c/fxflow.c -o fxflow.o
//   c++ -std=c++20 -O2 -Ifrontends/cpp frontends/cpp/examples/mnist.cpp fxflow.o -ldl -o mnist
//   FXFLOW_PJRT_PLUGIN=$(python -m fxflow.export.plugin) ./mnist build
#include <cstdio>
#include <fstream>
#include <iterator>

#include "fxflow.hpp"

using Bytes = std::vector<unsigned char>;
constexpr int64_t batch = 100, pixels = 784;

Bytes read(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error(path + " cannot be read");
  return Bytes(std::istreambuf_iterator<char>(file), {});
}

int main(int count, char **arguments) try {
  const std::string folder = count > 1 ? arguments[1] : "build";
  fxflow::Runtime runtime;
  fxflow::Model model(runtime, folder + "/mnist.fx");

  const Bytes images = read(folder + "/train-images.u8"), labels = read(folder + "/train-labels.u8");
  const std::span<const unsigned char> pictures(images), answers(labels);
  const size_t steps = labels.size() / batch;
  double sum = 0;
  float loss;
  for (size_t i = 0; i < steps; ++i) {
    model.call("step",
               {fxflow::in("images", {batch, pixels}, pictures.subspan(i * batch * pixels, batch * pixels)),
                fxflow::in("labels", {batch}, answers.subspan(i * batch, batch))},
               {fxflow::scalar_out("output.loss", loss)});
    sum += loss;
  }

  const Bytes others = read(folder + "/test-images.u8"), truth = read(folder + "/test-labels.u8");
  const std::span<const unsigned char> unseen(others);
  std::vector<int32_t> digits(batch);
  size_t right = 0;
  for (size_t i = 0; i < truth.size() / batch; ++i) {
    model.call("predict",
               {fxflow::in("images", {batch, pixels}, unseen.subspan(i * batch * pixels, batch * pixels))},
               {fxflow::out("output.digits", {batch}, digits)});
    for (size_t j = 0; j < digits.size(); ++j) right += digits[j] == truth[i * batch + j];
  }
  std::printf("loss %.6f, accuracy %.4f\n", sum / double(steps),
              double(right) / double(truth.size() / batch * batch));
  model.save(folder + "/trained.fx");
} catch (const std::exception &error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
