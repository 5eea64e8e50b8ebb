/* Loads each file that it is given, calls every function with zeros, waits, reads and
   writes parameters, and saves. Prints a line a file: "ok", or why not. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fxflow.h"

#define LARGEST (1 << 20)

static fx_array array_of(const fx_type *type) {
  fx_array made = {.name = type->name, .dtype = type->dtype, .rank = type->rank};
  memcpy(made.dims, type->dims, (size_t)type->rank * sizeof *type->dims);
  if (type->bytes <= LARGEST) made.data = calloc(type->bytes + 1, 1);
  return made;
}

/* Calls a function; if `on_device`, each second result stays there. */
static int call(fx_model *model, const char *name, int on_device) {
  int in = fx_input_count(model, name), out = fx_output_count(model, name), wrong = 0;
  fx_array *inputs = calloc((size_t)in + 1, sizeof *inputs);
  fx_array *outputs = calloc((size_t)out + 1, sizeof *outputs);
  for (int i = 0; i < in; ++i) inputs[i] = array_of(fx_input(model, name, i));
  for (int i = 0; i < out; ++i) {
    outputs[i] = array_of(fx_output(model, name, i));
    if (on_device && i % 2 == 0) {
      free(outputs[i].data);
      outputs[i].data = NULL;
    }
  }
  fx_buffer *kept = in && inputs[0].data ? fx_put(model, inputs) : NULL;
  if (kept) inputs[0].buffer = kept;
  wrong = in && inputs[0].data && !kept;
  if (!wrong) wrong = fx_call(model, name, inputs, (size_t)in, outputs, (size_t)out) != FX_OK;
  for (int i = 0; i < in; ++i) free(inputs[i].data);
  for (int i = 0; i < out; ++i) {
    free(outputs[i].data);
    if (outputs[i].buffer && wrong) fputs("a failed call handed out a buffer\n", stderr);
    fx_drop(outputs[i].buffer);
  }
  if (kept) {
    const fx_type *type = fx_input(model, name, 0);
    void *back = calloc(type->bytes + 1, 1);
    wrong |= fx_get(kept, back, type->bytes) != FX_OK;
    free(back);
    fx_drop(kept);
  }
  free(inputs);
  free(outputs);
  return wrong;
}

int main(int count, char **paths) {
  fx_runtime *runtime = fx_open(NULL);
  if (!runtime) {
    printf("plug-in: %s\n", fx_error());
    return 0;
  }
  for (int i = 1; i < count; ++i) {
    fx_model *model = fx_load(runtime, paths[i], i % fx_device_count(runtime));
    int wrong = !model;
    for (int j = 0; model && j < fx_function_count(model); ++j)
      wrong |= call(model, fx_function_name(model, j), 0) ||
               call(model, fx_function_name(model, j), 1);
    if (model) wrong |= fx_wait(model) != FX_OK;
    for (int j = 0; model && j < fx_param_count(model); ++j) {
      fx_array param = array_of(fx_param(model, j));
      wrong |= fx_get_param(model, &param) || fx_set_param(model, &param);
      free(param.data);
    }
    char path[4096];
    snprintf(path, sizeof path, "%s.saved", paths[i]);
    if (model && fx_param_count(model)) wrong |= fx_save(model, path) != FX_OK;
    printf("%s\n", wrong ? fx_error() : "ok");
    fx_free(model);
  }
  fx_close(runtime);
  return 0;
}
