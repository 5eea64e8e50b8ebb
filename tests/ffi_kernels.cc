// Kernels for tests/test_ffi.py, against XLA's typed FFI.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>

#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;
using F32 = ffi::Buffer<ffi::F32>;
using Result = ffi::ResultBuffer<ffi::F32>;

ffi::Error axpy(float alpha, F32 x, F32 y, Result out) {
  if (alpha == 0) return ffi::Error::InvalidArgument("alpha must not be 0");
  if (x.element_count() != y.element_count())
    return ffi::Error::InvalidArgument("x and y must have one size");
  for (size_t i = 0; i < out->element_count(); ++i)
    out->typed_data()[i] = alpha * x.typed_data()[i] + y.typed_data()[i];
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(
    Axpy, axpy,
    ffi::Ffi::Bind().Attr<float>("alpha").Arg<F32>().Arg<F32>().Ret<F32>());

static std::atomic<int> rows_seen{0};
extern "C" int RowsSeen() { return rows_seen.exchange(0); }

ffi::Error softmax(F32 x, Result out) {
  const int64_t n = x.dimensions().back();
  const int64_t rows = x.element_count() / (n ? n : 1);
  rows_seen += rows;
  for (int64_t r = 0; r < rows; ++r) {
    const float* in = x.typed_data() + r * n;
    float* to = out->typed_data() + r * n;
    const float top = *std::max_element(in, in + n);
    float sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += to[i] = std::exp(in[i] - top);
    for (int64_t i = 0; i < n; ++i) to[i] /= sum;
  }
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(Softmax, softmax,
                              ffi::Ffi::Bind().Arg<F32>().Ret<F32>());

// The operand as it lies in memory, and whether the result took its memory.
ffi::Error raw(F32 x, Result out, ffi::ResultBuffer<ffi::S32> same) {
  same->typed_data()[0] = x.typed_data() == out->typed_data();
  std::memmove(out->typed_data(), x.typed_data(), x.size_bytes());
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(
    Raw, raw,
    ffi::Ffi::Bind().Arg<F32>().Ret<F32>().Ret<ffi::Buffer<ffi::S32>>());

// What arrives of attributes, as numbers.
ffi::Error attributes(ffi::Dictionary given, Result out) {
  float* to = out->typed_data();
  to[0] = *given.get<bool>("flag");
  to[1] = *given.get<int64_t>("integer");
  to[2] = *given.get<double>("number");
  to[3] = *given.get<int8_t>("small");
  to[4] = given.get<std::string_view>("text")->size();
  auto list = *given.get<ffi::Span<const int64_t>>("list");
  to[5] = list.size() ? list[list.size() - 1] : -1;
  to[6] = *given.get<ffi::Dictionary>("inner")->get<float>("x");
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(
    Attributes, attributes,
    ffi::Ffi::Bind().Attrs().Ret<F32>());

static std::atomic<int> called{0};
extern "C" int Called() { return called.exchange(0); }
ffi::Error count(ffi::ResultBuffer<ffi::S32> out) {
  out->typed_data()[0] = ++called;
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(
    Count, count, ffi::Ffi::Bind().Ret<ffi::Buffer<ffi::S32>>());

// A handler with a state, made once for each program.
struct Steps {
  static ffi::TypeId id;
  static ffi::TypeInfo info;
  int n = 0;
};
ffi::TypeId Steps::id = {};
ffi::TypeInfo Steps::info = ffi::MakeTypeInfo<Steps>();
extern "C" void* StepsId() { return &Steps::id; }
extern "C" void* StepsInfo() { return &Steps::info; }

ffi::ErrorOr<std::unique_ptr<Steps>> steps_new() {
  return std::make_unique<Steps>();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(StepsNew, steps_new, ffi::Ffi::BindInstantiate());
ffi::Error steps_run(Steps* state, F32 x, Result out) {
  out->typed_data()[0] = x.typed_data()[0] + ++state->n;
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(
    StepsRun, steps_run,
    ffi::Ffi::Bind().Ctx<ffi::State<Steps>>().Arg<F32>().Ret<F32>());
