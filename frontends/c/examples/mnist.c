/* Trains a net for MNIST for an epoch, tests it, and saves it.

     python frontends/export_mnist.py build
     cc -std=c11 -O2 -Ifrontends/c frontends/c/examples/mnist.c frontends/c/fxflow.c -ldl -o mnist
     FXFLOW_PJRT_PLUGIN=$(python -m fxflow.export.plugin) ./mnist build */
#include <stdio.h>
#include <stdlib.h>

#include "fxflow.h"

#define BATCH 100
#define PIXELS 784

static void must(fx_status status) {
  if (!status) return;
  fprintf(stderr, "%s\n", fx_error());
  exit(1);
}

/* Reads a file of bytes of the folder. */
static unsigned char *bytes_of(const char *folder, const char *name, size_t *size) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s.u8", folder, name);
  FILE *file = fopen(path, "rb");
  if (!file || fseek(file, 0, SEEK_END)) {
    perror(path);
    exit(1);
  }
  *size = (size_t)ftell(file);
  rewind(file);
  unsigned char *data = malloc(*size ? *size : 1);
  if (!data || fread(data, 1, *size, file) != *size) exit(1);
  fclose(file);
  return data;
}

int main(int count, char **arguments) {
  const char *folder = count > 1 ? arguments[1] : "build";
  char path[4096];
  size_t size, tests;
  unsigned char *images = bytes_of(folder, "train-images", &size);
  unsigned char *labels = bytes_of(folder, "train-labels", &size);
  fx_runtime *runtime = fx_open(NULL);
  snprintf(path, sizeof path, "%s/mnist.fx", folder);
  fx_model *model = runtime ? fx_load(runtime, path, 0) : NULL;
  if (!model) must(FX_FAILED);

  float loss;
  double sum = 0;
  size_t steps = size / BATCH;
  fx_array batch[] = {{.name = "images", .dtype = FX_U8, .rank = 2, .dims = {BATCH, PIXELS}},
                      {.name = "labels", .dtype = FX_U8, .rank = 1, .dims = {BATCH}}};
  fx_array result = {.name = "output.loss", .dtype = FX_F32, .data = &loss};
  for (size_t i = 0; i < steps; ++i) {
    batch[0].data = images + i * BATCH * PIXELS;
    batch[1].data = labels + i * BATCH;
    must(fx_call(model, "step", batch, 2, &result, 1));
    sum += loss;
  }
  free(images);
  free(labels);

  images = bytes_of(folder, "test-images", &size);
  labels = bytes_of(folder, "test-labels", &tests);
  int32_t digits[BATCH];
  size_t right = 0;
  fx_array found = {.name = "output.digits", .dtype = FX_I32, .rank = 1, .dims = {BATCH},
                    .data = digits};
  for (size_t i = 0; i < tests / BATCH; ++i) {
    batch[0].data = images + i * BATCH * PIXELS;
    must(fx_call(model, "predict", batch, 1, &found, 1));
    for (int j = 0; j < BATCH; ++j) right += digits[j] == labels[i * BATCH + (size_t)j];
  }
  printf("loss %.6f, accuracy %.4f\n", sum / (double)steps,
         (double)right / (double)(tests / BATCH * BATCH));
  snprintf(path, sizeof path, "%s/trained.fx", folder);
  must(fx_save(model, path));
  free(images);
  free(labels);
  fx_free(model);
  fx_close(runtime);
  return 0;
}
