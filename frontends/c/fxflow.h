/* Runs and trains functions that fxflow exported, on any PJRT plug-in.

     fx_runtime *runtime = fx_open(NULL);               // $FXFLOW_PJRT_PLUGIN
     fx_model *model = fx_load(runtime, "model.fx", 0); // on device 0
     fx_array x = {.name = "x", .dtype = FX_F32, .rank = 2, .dims = {1, 784},
                   .data = pixels};
     fx_array y = {.name = "output", .dtype = FX_F32, .rank = 2, .dims = {1, 10},
                   .data = scores};
     if (!model || fx_call(model, "predict", &x, 1, &y, 1)) puts(fx_error());

   A model is a file or a folder of `fxflow.export.save`: functions, and the parameters
   that they share, which stay on the device. A function that returns new parameters
   replaces them, so training is a loop of calls, and `fx_save` writes them back.

   Arrays are dense and row-major. A model, and each call with it, belongs to one thread
   at a time; different models may be used by different threads. Functions return 0, or
   a `fx_status` (or NULL), and `fx_error` then says why. Load only files that you made:
   a plug-in runs the program that it is given. */
#ifndef FXFLOW_H
#define FXFLOW_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct fx_runtime fx_runtime; /* a plug-in and its devices */
typedef struct fx_model fx_model;     /* a file on a device, or on several */
typedef struct fx_buffer fx_buffer;   /* an array on a device */

typedef enum {
  FX_OK,
  FX_BAD_ARGUMENT, /* a name, a dtype or a shape is not the function's */
  FX_BAD_FILE,     /* it is missing, damaged, or of another version or platform */
  FX_BAD_PLUGIN,   /* it is missing or of another version */
  FX_FAILED,       /* the runtime reports an error */
  FX_NO_MEMORY
} fx_status;

typedef enum {
  FX_BOOL = 1, FX_I8, FX_I16, FX_I32, FX_I64, FX_U8, FX_U16, FX_U32, FX_U64,
  FX_F16, FX_F32, FX_F64, FX_BF16, FX_C64, FX_C128,
  FX_F8E5M2, FX_F8E4M3FN, FX_F8E4M3B11FNUZ, FX_F8E5M2FNUZ, FX_F8E4M3FNUZ,
  FX_I4, FX_U4, /* one element a byte */
  FX_F8E4M3 = 26, FX_F8E3M4, FX_F8E8M0FNU, FX_F4E2M1FN
} fx_dtype;

#define FX_MAX_RANK 16

/* The type of an argument, a result or a parameter. */
typedef struct {
  const char *name; /* "x", "params.w", "output" */
  const char *type; /* "f32[3,4]" */
  fx_dtype dtype;
  int rank;
  const int64_t *dims;
  size_t bytes;
} fx_type;

/* An array of the caller's: in host memory (`data`) or on the device (`buffer`). */
typedef struct {
  const char *name;
  fx_dtype dtype;
  int rank;
  int64_t dims[FX_MAX_RANK];
  void *data;
  fx_buffer *buffer;
} fx_array;

/* Why the last function that failed in this thread did so: a text, and its kind. */
const char *fx_error(void);
fx_status fx_error_status(void);

/* Opens a plug-in: a shared library with PJRT's C interface; NULL: the one that the
   environment variable FXFLOW_PJRT_PLUGIN names. `fx_open_with` passes options to it,
   as "name=value", such as "cpu_device_count=4". */
fx_runtime *fx_open(const char *plugin);
fx_runtime *fx_open_with(const char *plugin, const char *const *options, size_t count);
void fx_close(fx_runtime *runtime); /* it stays open for the models and buffers it has */
const char *fx_platform(const fx_runtime *runtime); /* "cpu", "cuda", "tpu" */
int fx_device_count(const fx_runtime *runtime);

/* Loads a file, or a folder, on a device. If functions were exported for several, it
   takes that many, from `device` on: arguments are divided as the functions say, results
   are put together, and parameters stay divided. Functions are compiled at their first
   call, or by fx_compile. */
fx_model *fx_load(fx_runtime *runtime, const char *path, int device);
fx_status fx_compile(fx_model *model, const char *function);
void fx_free(fx_model *model);

/* What a file has. A count is -1 if there is no such function. */
int fx_function_count(const fx_model *model);
const char *fx_function_name(const fx_model *model, int index);
int fx_param_count(const fx_model *model);
const fx_type *fx_param(const fx_model *model, int index);
int fx_input_count(const fx_model *model, const char *function);
const fx_type *fx_input(const fx_model *model, const char *function, int index);
int fx_output_count(const fx_model *model, const char *function);
const fx_type *fx_output(const fx_model *model, const char *function, int index);

/* Calls a function. `inputs` are its arguments in any order, without the parameters;
   `outputs` are the results that the caller wants. A result whose `data` is NULL stays
   on the device: `buffer` is set, for fx_drop. If a call fails, parameters keep their
   values, and no `buffer` is set. */
fx_status fx_call(fx_model *model, const char *function, const fx_array *inputs,
                  size_t input_count, fx_array *outputs, size_t output_count);

/* Waits until the parameters are computed, which later calls do by themselves. */
fx_status fx_wait(fx_model *model);

/* Copies arrays to the device and back. For several devices, an array is divided like the
   first argument that has its name and type; a call that divides it otherwise copies it
   over the host. */
fx_buffer *fx_put(fx_model *model, const fx_array *array);
fx_status fx_get(const fx_buffer *buffer, void *data, size_t bytes);
void fx_drop(fx_buffer *buffer);

/* Reads or replaces a parameter, by its name. */
fx_status fx_get_param(fx_model *model, fx_array *array);
fx_status fx_set_param(fx_model *model, const fx_array *array);

/* Writes the file, or the folder, with the present parameters; `path` may be the one it
   was loaded from (a folder: that one, or a new one). The write is atomic. */
fx_status fx_save(fx_model *model, const char *path);

#ifdef __cplusplus
}
#endif
#endif
