// fxflow.h for C++20: objects that free themselves, spans, exceptions.
//
//   fxflow::Runtime runtime;                       // $FXFLOW_PJRT_PLUGIN
//   fxflow::Model model(runtime, "mnist.fx");
//   std::vector<float> scores(10);
//   model.call("predict", {fxflow::in("x", {1, 784}, pixels)},
//              {fxflow::out("output", {1, 10}, scores)});
//
// Errors are thrown as
// fxflow::Error. Compile frontends/c/fxflow.c with the program, as C.
#pragma once

#include <complex>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <ranges>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "../c/fxflow.h"

namespace fxflow {

class Error : public std::runtime_error {
 public:
  explicit Error(fx_status status) : std::runtime_error(fx_error()), status_(status) {}
  Error(fx_status status, const std::string &what)
      : std::runtime_error(what), status_(status) {}
  fx_status status() const { return status_; }

 private:
  fx_status status_;
};

inline void check(fx_status status) {
  if (status != FX_OK) throw Error(status);
}

// The dtype of a C++ type; fx_dtype has the others, such as FX_BF16 for uint16_t.
template <class T> constexpr fx_dtype dtype_of() {
  if constexpr (std::is_same_v<T, bool>) return FX_BOOL;
  else if constexpr (std::is_same_v<T, float>) return FX_F32;
  else if constexpr (std::is_same_v<T, double>) return FX_F64;
  else if constexpr (std::is_same_v<T, std::complex<float>>) return FX_C64;
  else if constexpr (std::is_same_v<T, std::complex<double>>) return FX_C128;
  else {
    static_assert(std::is_integral_v<T>, "no dtype for this type");
    constexpr int base = std::is_signed_v<T> ? FX_I8 : FX_U8;
    return static_cast<fx_dtype>(base + (sizeof(T) == 1   ? 0
                                         : sizeof(T) == 2 ? 1
                                         : sizeof(T) == 4 ? 2
                                                          : 3));
  }
}

// A path for C, which would end at a zero.
inline const char *path_of(const std::string &path) {
  if (path.find('\0') != path.npos) throw Error(FX_BAD_ARGUMENT, path + ": has a zero byte");
  return path.c_str();
}

using Shape = std::vector<int64_t>;

struct Type {
  std::string name, text;
  fx_dtype dtype;
  Shape shape;
  size_t bytes;
  explicit Type(const fx_type &t)
      : name(t.name), text(t.type), dtype(t.dtype), shape(t.dims, t.dims + t.rank),
        bytes(t.bytes) {}
};

// An argument or a result of a call: a name, a shape and memory of the caller's.
class Array {
 public:
  Array(std::string name, fx_dtype dtype, const Shape &shape, const void *data)
      : name_(std::move(name)) {
    if (shape.size() > FX_MAX_RANK) throw Error(FX_BAD_ARGUMENT, name_ + ": rank above 16");
    array_.dtype = dtype;
    array_.rank = static_cast<int>(shape.size());
    for (size_t i = 0; i < shape.size(); ++i) array_.dims[i] = shape[i];
    array_.data = const_cast<void *>(data);
  }
  Array(std::string name, fx_dtype dtype, const Shape &shape, fx_buffer *buffer)
      : Array(std::move(name), dtype, shape, static_cast<const void *>(nullptr)) {
    array_.buffer = buffer;
  }
  fx_array raw() const {
    fx_array found = array_;
    found.name = name_.c_str();
    return found;
  }

 private:
  std::string name_;
  fx_array array_{};
};

template <class T> void require(const std::string &name, const Shape &shape, std::span<T> data) {
  size_t count = 1;
  for (int64_t n : shape) count *= static_cast<size_t>(n);
  if (count != data.size())
    throw Error(FX_BAD_ARGUMENT, name + ": the shape has " + std::to_string(count) +
                                     " elements, the memory has " +
                                     std::to_string(data.size()));
}

// Memory without elements is not null, which would keep a result on the device.
inline const void *memory(const void *data) {
  static const char none = 0;
  return data ? data : &none;
}

template <std::ranges::contiguous_range R>
Array in(std::string name, const Shape &shape, const R &range) {
  using T = std::remove_cv_t<std::ranges::range_value_t<R>>;
  std::span<const T> data(std::ranges::data(range), std::ranges::size(range));
  require(name, shape, data);
  return Array(std::move(name), dtype_of<T>(), shape, memory(data.data()));
}

template <std::ranges::contiguous_range R>
Array out(std::string name, const Shape &shape, R &&range) {
  using T = std::ranges::range_value_t<R>;
  std::span<T> data(std::ranges::data(range), std::ranges::size(range));
  require(name, shape, data);
  return Array(std::move(name), dtype_of<T>(), shape, memory(data.data()));
}

// A result that stays on the device: `Model::call` returns it.
inline Array kept(std::string name, fx_dtype dtype, const Shape &shape) {
  return Array(std::move(name), dtype, shape, static_cast<const void *>(nullptr));
}

template <class T> Array scalar_in(std::string name, const T &value) {
  return Array(std::move(name), dtype_of<T>(), {}, &value);
}

template <class T> Array scalar_out(std::string name, T &value) {
  return Array(std::move(name), dtype_of<T>(), {}, &value);
}

class Runtime {
 public:
  explicit Runtime(const char *plugin = nullptr, const std::vector<std::string> &options = {}) {
    std::vector<const char *> texts;
    for (const auto &option : options) texts.push_back(option.c_str());
    held_.reset(fx_open_with(plugin, texts.data(), texts.size()));
    if (!held_) throw Error(fx_error_status());
  }
  std::string platform() const { return fx_platform(held_.get()); }
  int device_count() const { return fx_device_count(held_.get()); }
  fx_runtime *raw() const { return held_.get(); }

 private:
  struct Close {
    void operator()(fx_runtime *runtime) const { fx_close(runtime); }
  };
  std::unique_ptr<fx_runtime, Close> held_;
};

// An array that stays on the device.
class Buffer {
 public:
  Buffer(fx_buffer *buffer, fx_dtype dtype, Shape shape)
      : held_(buffer), dtype_(dtype), shape_(std::move(shape)) {
    if (!buffer) throw Error(fx_error_status());
  }
  Array as(std::string name) const { return Array(std::move(name), dtype_, shape_, held_.get()); }
  template <class T> void copy_to(std::span<T> data) const {
    check(fx_get(held_.get(), data.data(), data.size_bytes()));
  }

 private:
  struct Drop {
    void operator()(fx_buffer *buffer) const { fx_drop(buffer); }
  };
  std::unique_ptr<fx_buffer, Drop> held_;
  fx_dtype dtype_;
  Shape shape_;
};

class Model {
 public:
  Model(const Runtime &runtime, const std::string &path, int device = 0)
      : held_(fx_load(runtime.raw(), path_of(path), device)) {
    if (!held_) throw Error(fx_error_status());
  }
  std::vector<std::string> functions() const {
    std::vector<std::string> found;
    for (int i = 0; i < fx_function_count(raw()); ++i)
      found.emplace_back(fx_function_name(raw(), i));
    return found;
  }
  std::vector<Type> inputs(const std::string &function) const {
    return types(fx_input_count(raw(), function.c_str()),
                 [&](int i) { return fx_input(raw(), function.c_str(), i); });
  }
  std::vector<Type> outputs(const std::string &function) const {
    return types(fx_output_count(raw(), function.c_str()),
                 [&](int i) { return fx_output(raw(), function.c_str(), i); });
  }
  std::vector<Type> params() const {
    return types(fx_param_count(raw()), [&](int i) { return fx_param(raw(), i); });
  }
  void compile(const std::string &function) { check(fx_compile(raw(), function.c_str())); }
  // Returns the results without memory of the caller's, which stay on the device.
  std::vector<Buffer> call(const std::string &function, const std::vector<Array> &inputs,
                           const std::vector<Array> &outputs = {}) {
    std::vector<fx_array> given, wanted;
    std::vector<Buffer> found;
    found.reserve(outputs.size());
    for (const auto &array : inputs) given.push_back(array.raw());
    for (const auto &array : outputs) wanted.push_back(array.raw());
    check(fx_call(raw(), function.c_str(), given.data(), given.size(), wanted.data(),
                  wanted.size()));
    for (const auto &array : wanted)
      if (array.buffer)
        found.emplace_back(array.buffer, array.dtype,
                           Shape(array.dims, array.dims + array.rank));
    return found;
  }
  void wait() { check(fx_wait(raw())); }
  Buffer put(const Array &array) {
    fx_array given = array.raw();
    return Buffer(fx_put(raw(), &given), given.dtype,
                  Shape(given.dims, given.dims + given.rank));
  }
  void get_param(const Array &array) {
    fx_array given = array.raw();
    check(fx_get_param(raw(), &given));
  }
  void set_param(const Array &array) {
    fx_array given = array.raw();
    check(fx_set_param(raw(), &given));
  }
  void save(const std::string &path) { check(fx_save(raw(), path_of(path))); }
  fx_model *raw() const { return held_.get(); }

 private:
  template <class F> static std::vector<Type> types(int count, F type) {
    if (count < 0) throw Error(FX_BAD_ARGUMENT);
    std::vector<Type> found;
    for (int i = 0; i < count; ++i) found.emplace_back(*type(i));
    return found;
  }
  struct Free {
    void operator()(fx_model *model) const { fx_free(model); }
  };
  std::unique_ptr<fx_model, Free> held_;
};

}  // namespace fxflow
