/* Loads each file that it is given, calls every function with zeros, waits, reads and
   writes parameters, and saves. Prints a line a file: "ok", or why not. With "misused"
   as first argument, does what a caller must not, with two files, and saves to a third. */
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

#define SAY(call) puts((call) ? fx_error() : "ok")

static int misused(char **paths) {
  fx_runtime *runtime = fx_open(NULL);
  fx_model *first = fx_load(runtime, paths[0], 0), *second = fx_load(runtime, paths[0], 1);
  fx_model *other = fx_load(runtime, paths[1], 0);
  fx_close(runtime); /* it stays open for them */
  float none;
  fx_array empty = {.name = "x", .dtype = FX_F32, .rank = 2, .dims = {0, 3}};
  fx_array one = {.name = "x", .dtype = FX_F32, .data = &none};
  const char *options[] = {NULL};
  SAY(fx_call(NULL, "step", NULL, 0, NULL, 0));
  SAY(fx_call(first, NULL, NULL, 0, NULL, 0));
  SAY(fx_call(first, "step", NULL, 1, NULL, 0));
  SAY(fx_compile(NULL, "step"));
  SAY(fx_wait(NULL));
  SAY(!fx_put(NULL, &one));
  SAY(!fx_put(first, NULL));
  SAY(fx_get(NULL, &none, 4));
  SAY(fx_get_param(first, NULL));
  SAY(fx_set_param(NULL, &one));
  SAY(fx_save(NULL, paths[0]));
  SAY(fx_save(first, NULL));
  SAY(!fx_open_with(NULL, options, 1));
  printf("%d %d %d\n", fx_function_count(NULL), fx_param_count(NULL), fx_device_count(NULL));
  fx_buffer *kept = fx_put(first, &empty);
  SAY(!kept || fx_get(kept, NULL, 0));
  fx_drop(kept);
  kept = fx_put(first, &one);
  SAY(fx_get(kept, NULL, 4));
  /* Two models of one file are both saved, there and elsewhere. */
  SAY(fx_save(first, paths[0]) || fx_save(second, paths[0]) || fx_save(first, paths[2]));
  SAY(fx_save(first, paths[1]));
  SAY(fx_save(other, paths[1])); /* its functions are gone */
  fx_free(first), fx_free(second), fx_free(other);
  SAY(fx_get(kept, &none, 4));
  fx_drop(kept);
  return 0;
}

int main(int count, char **paths) {
  if (count == 5 && !strcmp(paths[1], "misused")) return misused(paths + 2);
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
