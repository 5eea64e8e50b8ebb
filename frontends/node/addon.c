/* The C front end for Node, by Node-API. index.js checks types and names the functions. */
#include <node_api.h>
#include <stdlib.h>
#include <string.h>

#include "fxflow.h"

typedef struct {
  fx_runtime *runtime;
} runtime_t;

typedef struct {
  fx_model *model;
  napi_ref runtime; /* keeps it open */
} model_t;

#define MOST 6

static napi_value thrown(napi_env env, fx_status status) {
  static const char *const codes[] = {"", "BAD_ARGUMENT", "BAD_FILE", "BAD_PLUGIN", "FAILED",
                                      "NO_MEMORY"};
  napi_throw_error(env, codes[status], fx_error());
  return NULL;
}

static int arguments(napi_env env, napi_callback_info info, napi_value *values, size_t count) {
  size_t given = MOST;
  napi_value all[MOST];
  if (napi_get_cb_info(env, info, &given, all, NULL, NULL) != napi_ok || given < count) {
    napi_throw_type_error(env, "BAD_ARGUMENT", "too few arguments");
    return 0;
  }
  memcpy(values, all, count * sizeof *values);
  return 1;
}

/* A string of JavaScript; NULL for null and undefined. The caller frees it. */
static char *string_of(napi_env env, napi_value value) {
  size_t size;
  if (napi_get_value_string_utf8(env, value, NULL, 0, &size) != napi_ok) return NULL;
  char *text = malloc(size + 1);
  if (text) napi_get_value_string_utf8(env, value, text, size + 1, &size);
  return text;
}

static void closed(napi_env env, void *data, void *hint) {
  (void)env, (void)hint;
  fx_close(((runtime_t *)data)->runtime);
  free(data);
}

static void freed(napi_env env, void *data, void *hint) {
  (void)hint;
  model_t *held = data;
  fx_free(held->model);
  if (held->runtime) napi_delete_reference(env, held->runtime);
  free(held);
}

static void *held_by(napi_env env, napi_value value) {
  void *data = NULL;
  if (napi_get_value_external(env, value, &data) != napi_ok)
    napi_throw_type_error(env, "BAD_ARGUMENT", "not a runtime or a model");
  return data;
}

static fx_model *model_of(napi_env env, napi_value value) {
  model_t *held = held_by(env, value);
  if (held && !held->model) napi_throw_error(env, "BAD_ARGUMENT", "the model is closed");
  return held ? held->model : NULL;
}

static napi_value open_plugin(napi_env env, napi_callback_info info) {
  napi_value given[2], made, value;
  uint32_t count = 0;
  if (!arguments(env, info, given, 2)) return NULL;
  napi_get_array_length(env, given[1], &count);
  char *plugin = string_of(env, given[0]), **options = calloc(count + 1, sizeof *options);
  for (uint32_t i = 0; options && i < count; ++i) {
    napi_get_element(env, given[1], i, &value);
    options[i] = string_of(env, value);
    if (!options[i]) count = i; /* out of memory: the plug-in's defaults */
  }
  fx_runtime *runtime =
      fx_open_with(plugin, (const char *const *)options, options ? count : 0);
  for (uint32_t i = 0; options && i < count; ++i) free(options[i]);
  free(options);
  free(plugin);
  if (!runtime) return thrown(env, fx_error_status());
  runtime_t *held = malloc(sizeof *held);
  if (!held) return fx_close(runtime), thrown(env, FX_NO_MEMORY);
  held->runtime = runtime;
  napi_create_external(env, held, closed, NULL, &made);
  return made;
}

static napi_value about(napi_env env, napi_callback_info info) {
  napi_value given[1], made, value;
  if (!arguments(env, info, given, 1)) return NULL;
  runtime_t *held = held_by(env, given[0]);
  if (!held) return NULL;
  napi_create_object(env, &made);
  napi_create_string_utf8(env, fx_platform(held->runtime), NAPI_AUTO_LENGTH, &value);
  napi_set_named_property(env, made, "platform", value);
  napi_create_int32(env, fx_device_count(held->runtime), &value);
  napi_set_named_property(env, made, "deviceCount", value);
  return made;
}

static napi_value load(napi_env env, napi_callback_info info) {
  napi_value given[3], made;
  int32_t device = 0;
  if (!arguments(env, info, given, 3)) return NULL;
  runtime_t *held = held_by(env, given[0]);
  if (!held) return NULL;
  char *path = string_of(env, given[1]);
  napi_get_value_int32(env, given[2], &device);
  fx_model *model = fx_load(held->runtime, path, device);
  free(path);
  if (!model) return thrown(env, fx_error_status());
  model_t *mine = calloc(1, sizeof *mine);
  if (!mine) return fx_free(model), thrown(env, FX_NO_MEMORY);
  mine->model = model;
  napi_create_external(env, mine, freed, NULL, &made);
  napi_create_reference(env, given[0], 1, &mine->runtime);
  return made;
}

static napi_value close_model(napi_env env, napi_callback_info info) {
  napi_value given[1];
  if (!arguments(env, info, given, 1)) return NULL;
  model_t *held = held_by(env, given[0]);
  if (held) {
    fx_free(held->model);
    held->model = NULL;
  }
  return NULL;
}

static napi_value type_of(napi_env env, const fx_type *type) {
  napi_value made, value, shape;
  napi_create_object(env, &made);
  napi_create_string_utf8(env, type->name, NAPI_AUTO_LENGTH, &value);
  napi_set_named_property(env, made, "name", value);
  napi_create_string_utf8(env, type->type, NAPI_AUTO_LENGTH, &value);
  napi_set_named_property(env, made, "type", value);
  napi_create_int32(env, (int32_t)type->dtype, &value);
  napi_set_named_property(env, made, "dtype", value);
  napi_create_double(env, (double)type->bytes, &value);
  napi_set_named_property(env, made, "bytes", value);
  napi_create_array_with_length(env, (size_t)type->rank, &shape);
  for (int i = 0; i < type->rank; ++i) {
    napi_create_double(env, (double)type->dims[i], &value);
    napi_set_element(env, shape, (uint32_t)i, value);
  }
  napi_set_named_property(env, made, "shape", shape);
  return made;
}

/* {functions: {name: {inputs, outputs}}, params} */
static napi_value describe(napi_env env, napi_callback_info info) {
  napi_value given[1], made, functions, list, one;
  if (!arguments(env, info, given, 1)) return NULL;
  fx_model *model = model_of(env, given[0]);
  if (!model) return NULL;
  napi_create_object(env, &made);
  napi_create_object(env, &functions);
  for (int i = 0; i < fx_function_count(model); ++i) {
    const char *name = fx_function_name(model, i);
    napi_create_object(env, &one);
    for (int out = 0; out < 2; ++out) {
      int count = out ? fx_output_count(model, name) : fx_input_count(model, name);
      napi_create_array(env, &list);
      for (int j = 0; j < count; ++j)
        napi_set_element(env, list, (uint32_t)j,
                         type_of(env, out ? fx_output(model, name, j) : fx_input(model, name, j)));
      napi_set_named_property(env, one, out ? "outputs" : "inputs", list);
    }
    napi_set_named_property(env, functions, name, one);
  }
  napi_set_named_property(env, made, "functions", functions);
  napi_create_array(env, &list);
  for (int i = 0; i < fx_param_count(model); ++i)
    napi_set_element(env, list, (uint32_t)i, type_of(env, fx_param(model, i)));
  napi_set_named_property(env, made, "params", list);
  return made;
}

/* Reads {name, dtype, shape, bytes, data} into an array. */
static int array_of(napi_env env, napi_value value, fx_array *out) {
  napi_value name, dtype, shape, data, n;
  uint32_t rank = 0;
  int32_t number = 0;
  size_t count;
  double bytes = -1;
  napi_get_named_property(env, value, "name", &name);
  napi_get_named_property(env, value, "dtype", &dtype);
  napi_get_named_property(env, value, "shape", &shape);
  napi_get_named_property(env, value, "data", &data);
  napi_get_named_property(env, value, "bytes", &n);
  napi_get_value_double(env, n, &bytes);
  out->name = string_of(env, name);
  napi_get_value_int32(env, dtype, &number);
  napi_get_array_length(env, shape, &rank);
  out->dtype = (fx_dtype)number;
  out->rank = (int)rank;
  if (!out->name || rank > FX_MAX_RANK) return 0;
  for (uint32_t i = 0; i < rank; ++i) {
    double size = 0;
    napi_get_element(env, shape, i, &n);
    napi_get_value_double(env, n, &size);
    out->dims[i] = (int64_t)size;
  }
  napi_typedarray_type kind;
  napi_value buffer;
  size_t at;
  if (napi_get_typedarray_info(env, data, &kind, &count, &out->data, &buffer, &at) != napi_ok)
    return 0;
  /* A class that extends an array may say anything about its size. */
  static const uint8_t each[] = {1, 1, 1, 2, 2, 4, 4, 4, 8, 8, 8};
  return (size_t)kind < sizeof each && (double)count * each[kind] == bytes;
}

static fx_array *list_of(napi_env env, napi_value list, uint32_t *count) {
  napi_value value;
  napi_get_array_length(env, list, count);
  fx_array *made = calloc(*count + 1, sizeof *made);
  for (uint32_t i = 0; made && i < *count; ++i) {
    napi_get_element(env, list, i, &value);
    if (!array_of(env, value, made + i)) {
      napi_throw_type_error(env, "BAD_ARGUMENT", "expected {name, dtype, shape, bytes, data}");
      break;
    }
  }
  return made;
}

static void release(fx_array *arrays, uint32_t count) {
  for (uint32_t i = 0; arrays && i < count; ++i) {
    free((char *)arrays[i].name);
    fx_drop(arrays[i].buffer); /* of a result without elements, which has no memory */
  }
  free(arrays);
}

static napi_value call(napi_env env, napi_callback_info info) {
  napi_value given[4];
  uint32_t in = 0, out = 0;
  bool pending = false;
  if (!arguments(env, info, given, 4)) return NULL;
  fx_model *model = model_of(env, given[0]);
  if (!model) return NULL;
  char *name = string_of(env, given[1]);
  fx_array *inputs = list_of(env, given[2], &in), *outputs = list_of(env, given[3], &out);
  napi_is_exception_pending(env, &pending);
  fx_status status = FX_OK;
  if (!pending && name) status = fx_call(model, name, inputs, in, outputs, out);
  release(inputs, in);
  release(outputs, out);
  free(name);
  return status ? thrown(env, status) : NULL;
}

static napi_value param(napi_env env, napi_callback_info info) {
  napi_value given[3];
  bool set = false;
  fx_array array = {0};
  if (!arguments(env, info, given, 3)) return NULL;
  fx_model *model = model_of(env, given[0]);
  if (!model) return NULL;
  napi_get_value_bool(env, given[2], &set);
  fx_status status = FX_OK;
  if (array_of(env, given[1], &array))
    status = set ? fx_set_param(model, &array) : fx_get_param(model, &array);
  else
    napi_throw_type_error(env, "BAD_ARGUMENT", "expected {name, dtype, shape, bytes, data}");
  free((char *)array.name);
  return status ? thrown(env, status) : NULL;
}

static napi_value save(napi_env env, napi_callback_info info) {
  napi_value given[2];
  if (!arguments(env, info, given, 2)) return NULL;
  fx_model *model = model_of(env, given[0]);
  if (!model) return NULL;
  char *path = string_of(env, given[1]);
  if (!path) return napi_throw_type_error(env, "BAD_ARGUMENT", "the path is not a string"), NULL;
  fx_status status = fx_save(model, path);
  free(path);
  return status ? thrown(env, status) : NULL;
}

NAPI_MODULE_INIT() {
  static const struct {
    const char *name;
    napi_callback run;
  } all[] = {{"open", open_plugin}, {"about", about}, {"load", load},   {"close", close_model},
             {"describe", describe}, {"call", call},  {"param", param}, {"save", save}};
  for (size_t i = 0; i < sizeof all / sizeof *all; ++i) {
    napi_value function;
    napi_create_function(env, all[i].name, NAPI_AUTO_LENGTH, all[i].run, NULL, &function);
    napi_set_named_property(env, exports, all[i].name, function);
  }
  return exports;
}
