/* See fxflow.h. The format of files is described in fxflow/export/files.py, folders.py
   and tables.py. Every number of a file is checked before it is used. */
#define _POSIX_C_SOURCE 200809L
#include "fxflow.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "third_party/pjrt_c_api.h"

#define NONE UINT32_MAX
#define LIMIT (1u << 28) /* bytes of a header or a table */

/* -- errors ---------------------------------------------------------------------- */

static _Thread_local char message[1024];
static _Thread_local fx_status kind;

const char *fx_error(void) { return message; }

fx_status fx_error_status(void) { return kind; }

static fx_status fail(fx_status status, const char *format, ...) {
  va_list values;
  va_start(values, format);
  vsnprintf(message, sizeof message, format, values);
  va_end(values);
  return kind = status;
}

static void *allocate(size_t count, size_t size) {
  void *memory = calloc(count ? count : 1, size ? size : 1);
  if (!memory) fail(FX_NO_MEMORY, "out of memory: %zu x %zu bytes", count, size);
  return memory;
}

/* Returns a text that the caller frees. */
static char *formatted(const char *format, ...) {
  va_list values, again;
  va_start(values, format);
  va_copy(again, values);
  int size = vsnprintf(NULL, 0, format, values);
  char *text = size < 0 ? NULL : allocate((size_t)size + 1, 1);
  if (text) vsnprintf(text, (size_t)size + 1, format, again);
  va_end(again);
  va_end(values);
  return text;
}

/* -- SHA-256 (FIPS 180-4) -------------------------------------------------------- */

static const uint32_t rounds[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4,
    0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe,
    0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f,
    0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7,
    0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc,
    0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
    0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116,
    0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7,
    0xc67178f2};

static uint32_t turned(uint32_t x, int by) { return x >> by | x << (32 - by); }

static void mix(uint32_t state[8], const uint8_t *block) {
  uint32_t w[64], s[8];
  for (int i = 0; i < 16; ++i, block += 4)
    w[i] = (uint32_t)block[0] << 24 | (uint32_t)block[1] << 16 |
           (uint32_t)block[2] << 8 | block[3];
  for (int i = 16; i < 64; ++i) {
    uint32_t a = w[i - 15], b = w[i - 2];
    w[i] = w[i - 16] + (turned(a, 7) ^ turned(a, 18) ^ a >> 3) + w[i - 7] +
           (turned(b, 17) ^ turned(b, 19) ^ b >> 10);
  }
  memcpy(s, state, sizeof s);
  for (int i = 0; i < 64; ++i) {
    uint32_t e = s[4], a = s[0];
    uint32_t t = s[7] + (turned(e, 6) ^ turned(e, 11) ^ turned(e, 25)) +
                 ((e & s[5]) ^ (~e & s[6])) + rounds[i] + w[i];
    uint32_t u = (turned(a, 2) ^ turned(a, 13) ^ turned(a, 22)) +
                 ((a & s[1]) ^ (a & s[2]) ^ (s[1] & s[2]));
    memmove(s + 1, s, 7 * sizeof *s);
    s[4] += t;
    s[0] = t + u;
  }
  for (int i = 0; i < 8; ++i) state[i] += s[i];
}

static void sha256(const uint8_t *data, size_t size, uint8_t digest[32]) {
  uint32_t state[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                       0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  size_t left = size;
  for (; left >= 64; left -= 64, data += 64) mix(state, data);
  uint8_t end[128] = {0};
  size_t length = left < 56 ? 64 : 128;
  if (left) memcpy(end, data, left);
  end[left] = 0x80;
  for (int i = 0; i < 8; ++i) end[length - 1 - i] = (uint8_t)((uint64_t)size * 8 >> 8 * i);
  for (size_t at = 0; at < length; at += 64) mix(state, end + at);
  for (int i = 0; i < 32; ++i) digest[i] = (uint8_t)(state[i / 4] >> (24 - i % 4 * 8));
}

/* -- the plug-in ----------------------------------------------------------------- */

struct fx_runtime {
  void *library;
  const PJRT_Api *api;
  PJRT_Client *client;
  PJRT_Device *const *devices;
  size_t device_count;
  char platform[32];
  atomic_size_t users; /* models and buffers, and the caller until fx_close */
};

#define ARGS(kind, name) \
  kind##_Args name = {0}; \
  name.struct_size = kind##_Args_STRUCT_SIZE

/* Turns an error of the plug-in into one of ours. */
static fx_status checked(const PJRT_Api *api, PJRT_Error *error, const char *what) {
  if (!error) return FX_OK;
  ARGS(PJRT_Error_Message, text);
  text.error = error;
  api->PJRT_Error_Message(&text);
  fail(FX_FAILED, "%s: %.*s", what, (int)(text.message_size < 900 ? text.message_size : 900),
       text.message ? text.message : "");
  ARGS(PJRT_Error_GetCode, code);
  code.error = error;
  PJRT_Error *worse = api->PJRT_Error_GetCode(&code);
  fx_status status = !worse && code.code == PJRT_Error_Code_RESOURCE_EXHAUSTED
                         ? FX_NO_MEMORY
                         : FX_FAILED;
  kind = status;
  ARGS(PJRT_Error_Destroy, gone);
  gone.error = error;
  api->PJRT_Error_Destroy(&gone);
  return status;
}

/* Waits for an event, and destroys it. */
static fx_status awaited(const PJRT_Api *api, PJRT_Event *event, const char *what) {
  if (!event) return FX_OK;
  ARGS(PJRT_Event_Await, wait);
  wait.event = event;
  fx_status status = checked(api, api->PJRT_Event_Await(&wait), what);
  ARGS(PJRT_Event_Destroy, gone);
  gone.event = event;
  checked(api, api->PJRT_Event_Destroy(&gone), what);
  return status;
}

static void destroy(const PJRT_Api *api, PJRT_Buffer *buffer) {
  if (!buffer) return;
  ARGS(PJRT_Buffer_Destroy, gone);
  gone.buffer = buffer;
  PJRT_Error *error = api->PJRT_Buffer_Destroy(&gone);
  if (error) checked(api, error, "freeing an array");
}

fx_runtime *fx_open(const char *plugin) { return fx_open_with(plugin, NULL, 0); }

static fx_status begin(fx_runtime *runtime, const char *plugin,
                       const char *const *options, size_t count);

fx_runtime *fx_open_with(const char *plugin, const char *const *options, size_t count) {
  if (!plugin) plugin = getenv("FXFLOW_PJRT_PLUGIN");
  if (!plugin || !*plugin) {
    fail(FX_BAD_PLUGIN,
         "no plug-in: pass its path, or set FXFLOW_PJRT_PLUGIN to what "
         "`python -m fxflow.export.plugin` prints");
    return NULL;
  }
  fx_runtime *runtime = allocate(1, sizeof *runtime);
  if (runtime) atomic_init(&runtime->users, 1);
  if (runtime && begin(runtime, plugin, options, count)) {
    fx_close(runtime);
    return NULL;
  }
  return runtime;
}

static fx_status begin(fx_runtime *runtime, const char *plugin,
                       const char *const *options, size_t count) {
  runtime->library = dlopen(plugin, RTLD_NOW | RTLD_LOCAL);
  if (!runtime->library) return fail(FX_BAD_PLUGIN, "no plug-in: %s", dlerror());
  const PJRT_Api *(*get)(void);
  *(void **)&get = dlsym(runtime->library, "GetPjrtApi");
  if (!get) return fail(FX_BAD_PLUGIN, "%s is not a PJRT plug-in: no GetPjrtApi", plugin);
  const PJRT_Api *api = get();
  /* Fields that this file uses come before this one, in every minor version. */
  if (!api || api->struct_size < offsetof(PJRT_Api, PJRT_CopyToDeviceStream_Destroy) ||
      api->pjrt_api_version.major_version != PJRT_API_MAJOR)
    return fail(FX_BAD_PLUGIN, "%s has version %d.%d of PJRT's interface, expected %d.x",
                plugin, api ? api->pjrt_api_version.major_version : -1,
                api ? api->pjrt_api_version.minor_version : -1, PJRT_API_MAJOR);
  ARGS(PJRT_Plugin_Initialize, start);
  if (checked(api, api->PJRT_Plugin_Initialize(&start), plugin)) return kind = FX_BAD_PLUGIN;
  PJRT_NamedValue *values = allocate(count, sizeof *values);
  if (!values) return FX_NO_MEMORY;
  for (size_t i = 0; i < count; ++i) {
    const char *sign = options[i] ? strchr(options[i], '=') : NULL;
    char *end = NULL;
    if (!sign) {
      free(values);
      return fail(FX_BAD_ARGUMENT, "option \"%s\" is not name=value",
                  options[i] ? options[i] : "(null)");
    }
    values[i].struct_size = PJRT_NamedValue_STRUCT_SIZE;
    values[i].name = options[i];
    values[i].name_size = (size_t)(sign - options[i]);
    values[i].int64_value = strtoll(sign + 1, &end, 10);
    values[i].type = PJRT_NamedValue_kInt64;
    values[i].value_size = 1;
    if (end == sign + 1 || *end) {
      if (!strncmp(options[i], "cpu_device_count=", 17)) { /* a text would end the process */
        free(values);
        return fail(FX_BAD_ARGUMENT, "option \"%s\" is not a number", options[i]);
      }
      values[i].type = PJRT_NamedValue_kString;
      values[i].string_value = sign + 1;
      values[i].value_size = strlen(sign + 1);
    }
  }
  ARGS(PJRT_Client_Create, create);
  create.create_options = values;
  create.num_options = count;
  PJRT_Error *error = api->PJRT_Client_Create(&create);
  free(values);
  if (checked(api, error, plugin)) return kind = FX_BAD_PLUGIN;
  runtime->api = api;
  runtime->client = create.client;
  ARGS(PJRT_Client_AddressableDevices, devices);
  devices.client = create.client;
  ARGS(PJRT_Client_PlatformName, name);
  name.client = create.client;
  if (checked(api, api->PJRT_Client_AddressableDevices(&devices), plugin) ||
      checked(api, api->PJRT_Client_PlatformName(&name), plugin))
    return kind = FX_BAD_PLUGIN;
  runtime->devices = devices.addressable_devices;
  runtime->device_count = devices.num_addressable_devices;
  snprintf(runtime->platform, sizeof runtime->platform, "%.*s",
           (int)(name.platform_name_size < 31 ? name.platform_name_size : 31),
           name.platform_name);
  return FX_OK;
}

/* Closes the plug-in when nothing uses it any more. */
void fx_close(fx_runtime *runtime) {
  if (!runtime || atomic_fetch_sub(&runtime->users, 1) > 1) return;
  if (runtime->client) {
    ARGS(PJRT_Client_Destroy, gone);
    gone.client = runtime->client;
    PJRT_Error *error = runtime->api->PJRT_Client_Destroy(&gone);
    if (error) checked(runtime->api, error, "closing the plug-in");
  }
  /* The library stays: plug-ins have threads and exit handlers of their own. */
  free(runtime);
}

static fx_runtime *used(fx_runtime *runtime) {
  atomic_fetch_add(&runtime->users, 1);
  return runtime;
}

const char *fx_platform(const fx_runtime *runtime) {
  return runtime ? runtime->platform : "";
}

int fx_device_count(const fx_runtime *runtime) {
  return runtime ? (int)runtime->device_count : 0;
}

/* -- files ----------------------------------------------------------------------- */

/* How an array is divided over the devices of a model. */
typedef struct {
  uint8_t kind;              /* whole on each, in parts, or in another way */
  uint8_t open;              /* if in another way: whether the partitioner chooses it */
  int64_t dims[FX_MAX_RANK]; /* of a part */
  uint32_t *numbers;         /* of the part of each device, row by row */
} layout;

enum { WHOLE, PARTS, ANOTHER };

typedef struct {
  fx_type type;
  int64_t dims[FX_MAX_RANK];
  layout layout;
  uint32_t param; /* index, or NONE */
  uint8_t kept;
} value;

typedef struct {
  const char *name;
  uint64_t start, size;
  uint8_t digest[32];
  uint32_t devices, platform; /* index of the runtime's platform in the program's */
  const char *first_platform;
  uint8_t takes_platform;
  uint32_t input_count, output_count;
  value *inputs, *outputs;
  PJRT_LoadedExecutable *executable;
} function;

struct fx_model {
  fx_runtime *runtime;
  PJRT_Device *const *devices; /* `span` of them */
  uint32_t span;
  char *path, *beside; /* the second: the separate file of the parameters, or NULL */
  int is_folder;
  uint64_t part_start, part_size; /* the parameters in their file */
  uint8_t part_digest[32];
  uint64_t table_start, digest_at; /* of that digest in the table */
  uint8_t table_digest[32];        /* of the table with zeros for it */
  uint32_t param_count, function_count;
  value *params;
  uint64_t *starts;
  PJRT_Buffer **buffers; /* those of the first device, then of the second, ... */
  function *functions;
  char **texts;
  size_t text_count;
  int rank; /* of an array with more than FX_MAX_RANK axes, if there is one */
};

struct fx_buffer {
  fx_runtime *runtime;
  value value; /* with its own `layout.numbers` */
  uint32_t span;
  PJRT_Buffer *parts[]; /* on each device */
};

static const char names[][16] = {
    "?", "bool", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f16", "f32", "f64",
    "bf16", "c64", "c128", "f8e5m2", "f8e4m3fn", "f8e4m3b11fnuz", "f8e5m2fnuz",
    "f8e4m3fnuz", "i4", "u4", "token", "i2", "u2", "f8e4m3", "f8e3m4", "f8e8m0fnu",
    "f4e2m1fn"};
static const uint8_t sizes[] = {0, 1, 1, 2, 4, 8, 1, 2, 4, 8, 2, 4, 8, 2, 8, 16, 1, 1,
                                1, 1, 1, 1, 1, 0, 0, 0, 1, 1, 1, 1};

/* Describes a type as in f32[3,4]. */
static const char *described(char *out, size_t size, int dtype, int rank,
                             const int64_t *dims) {
  int known = dtype > 0 && dtype < (int)(sizeof sizes);
  int at = snprintf(out, size, "%s[", names[known ? dtype : 0]);
  for (int i = 0; i < rank && i < FX_MAX_RANK && at > 0 && (size_t)at < size; ++i)
    at += snprintf(out + at, size - (size_t)at, "%s%lld", i ? "," : "", (long long)dims[i]);
  if (at > 0 && (size_t)at < size) snprintf(out + at, size - (size_t)at, "]");
  return out;
}

/* Reads a part of a file, or all of it if `size` is 0. */
static uint8_t *bytes_of(const char *path, uint64_t start, uint64_t size, uint64_t *end) {
  struct stat found;
  FILE *file = NULL;
  uint8_t *data = NULL;
  errno = 0;
  *end = 0;
  if (stat(path, &found) || !S_ISREG(found.st_mode) || !(file = fopen(path, "rb"))) {
    fail(FX_BAD_FILE, "%s cannot be read: %s", path, errno ? strerror(errno) : "not a file");
    return NULL;
  }
  *end = (uint64_t)found.st_size;
  if (!size) size = *end;
  if (start > *end || size > *end - start) {
    fail(FX_BAD_FILE, "%s is damaged or truncated", path);
  } else if ((data = allocate(1, size)) &&
             (fseek(file, (long)start, SEEK_SET) || fread(data, 1, size, file) != size)) {
    fail(FX_BAD_FILE, "%s cannot be read", path);
    free(data);
    data = NULL;
  }
  fclose(file);
  return data;
}

/* A position in a table; `bad` once something did not fit. */
typedef struct {
  const uint8_t *at;
  size_t left;
  int bad;
} cursor;

static const uint8_t *take(cursor *c, size_t size) {
  static const uint8_t zeros[32];
  if (c->bad || size > c->left) {
    c->bad = 1;
    return zeros;
  }
  const uint8_t *found = c->at;
  c->at += size;
  c->left -= size;
  return found;
}

static uint64_t number(cursor *c, size_t size) {
  const uint8_t *data = take(c, size);
  uint64_t found = 0;
  for (size_t i = 0; i < size; ++i) found |= (uint64_t)data[i] << 8 * i;
  return found;
}

static const char *text(fx_model *model, cursor *c) {
  size_t size = number(c, 2);
  if (size > c->left || model->text_count == SIZE_MAX) c->bad = 1;
  if (c->bad) return "";
  const uint8_t *data = take(c, size);
  char *copy = allocate(size + 1, 1);
  char **grown = realloc(model->texts, (model->text_count + 1) * sizeof *grown);
  if (!grown || !copy || memchr(data, 0, size)) {
    free(copy);
    if (grown) model->texts = grown;
    c->bad = 1;
    return "";
  }
  memcpy(copy, data, size);
  model->texts = grown;
  return model->texts[model->text_count++] = copy;
}

/* A count of things that each take at least `least` bytes of the table. */
static uint32_t count_of(cursor *c, size_t least) {
  uint32_t count = (uint32_t)number(c, 4);
  if (count > c->left / least) c->bad = 1;
  return c->bad ? 0 : count;
}

static void type_of(fx_model *model, cursor *c, value *v) {
  fx_type *type = &v->type;
  type->name = text(model, c);
  type->type = text(model, c);
  type->dtype = (fx_dtype)number(c, 1);
  uint64_t bytes = number(c, 8);
  type->rank = (int)number(c, 1);
  type->dims = v->dims;
  if (!c->bad && type->rank > FX_MAX_RANK) model->rank = type->rank;
  if (type->rank > FX_MAX_RANK || type->dtype >= sizeof sizes || !sizes[type->dtype])
    c->bad = 1;
  uint64_t size = c->bad ? 0 : sizes[type->dtype];
  for (int i = 0; !c->bad && i < type->rank; ++i) {
    uint64_t n = number(c, 8);
    if (n == UINT64_MAX) { /* a symbolic size: such functions are refused when called */
      size = UINT64_MAX;
      v->dims[i] = -1;
    } else {
      if (n > INT64_MAX || (size != UINT64_MAX && n && size > INT64_MAX / n)) c->bad = 1;
      if (size != UINT64_MAX && !c->bad) size *= n;
      v->dims[i] = (int64_t)n;
    }
  }
  if (size != bytes) c->bad = 1;
  type->bytes = bytes;
}

static void function_of(fx_model *model, cursor *c, function *f) {
  f->name = text(model, c);
  f->start = number(c, 8);
  f->size = number(c, 8);
  memcpy(f->digest, take(c, 32), 32);
  f->devices = (uint32_t)number(c, 4);
  f->takes_platform = (uint8_t)number(c, 1);
  f->platform = NONE;
  uint32_t count = count_of(c, 2);
  for (uint32_t i = 0; i < count && !c->bad; ++i) {
    const char *known = text(model, c), *ours = model->runtime->platform;
    if (!i) f->first_platform = known;
    if (!strcmp(known, ours) || (!strcmp(known, "cuda") && !strcmp(ours, "gpu")))
      f->platform = i;
  }
  for (int out = 0; out < 2; ++out) {
    count = count_of(c, 4 + 2 + 2 + 1 + 8 + 1);
    value *values = allocate(count, sizeof *values);
    if (!values) c->bad = 1;
    *(out ? &f->outputs : &f->inputs) = values;
    *(out ? &f->output_count : &f->input_count) = values ? count : 0;
    for (uint32_t i = 0; i < count && !c->bad; ++i) {
      values[i].param = (uint32_t)number(c, 4);
      values[i].kept = out ? 1 : (uint8_t)number(c, 1);
      type_of(model, c, values + i);
      if (values[i].param == NONE) continue;
      if (values[i].param >= model->param_count) {
        c->bad = 1;
      } else {
        fx_type *a = &values[i].type, *b = &model->params[values[i].param].type;
        if (a->dtype != b->dtype || a->rank != b->rank ||
            memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims))
          c->bad = 1;
      }
    }
  }
}

static void layout_of(cursor *c, value *v, uint32_t devices) {
  layout *l = &v->layout;
  uint64_t parts = 1;
  l->kind = (uint8_t)number(c, 1);
  l->open = l->kind == ANOTHER + 1;
  if (l->open) l->kind = ANOTHER;
  if (l->kind > ANOTHER || (l->kind == PARTS && !v->type.rank)) c->bad = 1;
  if (l->kind != PARTS || c->bad) return;
  for (int i = 0; i < v->type.rank; ++i) {
    uint64_t n = number(c, 4);
    if (!n || v->dims[i] < 0 || v->dims[i] % (int64_t)n || (parts *= n) > devices) c->bad = 1;
    if (c->bad) return;
    l->dims[i] = v->dims[i] / (int64_t)n;
  }
  l->numbers = c->left / 4 < devices ? NULL : allocate(devices, sizeof *l->numbers);
  if (!l->numbers) c->bad = 1;
  for (uint32_t i = 0; i < devices && !c->bad; ++i)
    if ((l->numbers[i] = (uint32_t)number(c, 4)) >= parts) c->bad = 1;
}

static int same_layout(const layout *a, const layout *b, int rank, uint32_t span) {
  return a->kind == b->kind &&
         (a->kind != PARTS || (!memcmp(a->dims, b->dims, (size_t)rank * sizeof *a->dims) &&
                               !memcmp(a->numbers, b->numbers, span * sizeof *a->numbers)));
}

/* Reads the layouts of functions for several devices, and gives the parameters those of
   the first one that takes them. */
static fx_status layouts_of(fx_model *model, cursor *c, uint32_t room) {
  model->span = 1;
  for (uint32_t i = 0; i < model->function_count && !c->bad; ++i) {
    uint32_t devices = model->functions[i].devices;
    if (!devices || (devices > 1 && model->span > 1 && devices != model->span)) c->bad = 1;
    if (devices > 1) model->span = devices;
  }
  if (c->bad || model->span == 1) return FX_OK;
  if (model->span > room)
    return fail(FX_BAD_ARGUMENT, "%s is for %u devices, but there are %u from this one on; "
                "plug-ins for CPUs have as many as the option cpu_device_count says",
                model->path, model->span, room);
  if (!c->left)
    return fail(FX_BAD_FILE, "%s is for several devices, and was written by an older fxflow; "
                "save it again", model->path);
  for (uint32_t i = 0; i < model->function_count; ++i) {
    function *f = model->functions + i;
    if (f->devices == 1) continue;
    for (uint32_t j = 0; j < f->input_count && !c->bad; ++j) {
      value *v = f->inputs + j;
      layout_of(c, v, model->span);
      if (v->param != NONE && !model->params[v->param].kept) {
        model->params[v->param].layout = v->layout;
        model->params[v->param].kept = 1;
      }
    }
    for (uint32_t j = 0; j < f->output_count && !c->bad; ++j)
      layout_of(c, f->outputs + j, model->span);
  }
  return FX_OK;
}

/* Reads the table at the end of a file. */
static fx_status table_of(fx_model *model, const uint8_t *data, size_t size, uint64_t start,
                          uint32_t room) {
  cursor c = {data, size, 0};
  if (number(&c, 4) != 1)
    return fail(FX_BAD_FILE, "%s: its table is of a version that this source does not read",
                model->path);
  text(model, &c);
  const char *beside = text(model, &c);
  model->part_start = number(&c, 8);
  model->part_size = number(&c, 8);
  model->digest_at = size - c.left;
  memcpy(model->part_digest, take(&c, 32), 32);
  uint32_t count = count_of(&c, 2 + 2 + 1 + 8 + 1 + 16);
  model->params = allocate(count, sizeof *model->params);
  model->starts = allocate(count, sizeof *model->starts);
  if (!model->params || !model->starts) return FX_NO_MEMORY;
  model->param_count = count;
  for (uint32_t i = 0; i < count && !c.bad; ++i) {
    type_of(model, &c, model->params + i);
    uint64_t at = number(&c, 8), length = number(&c, 8);
    uint64_t into = at - model->part_start;
    if (length != model->params[i].type.bytes || at < model->part_start ||
        into > model->part_size || length > model->part_size - into)
      c.bad = 1;
    model->starts[i] = into;
  }
  count = count_of(&c, 2 + 16 + 32 + 5 + 12);
  model->functions = allocate(count, sizeof *model->functions);
  if (!model->functions) return FX_NO_MEMORY;
  for (uint32_t i = 0; i < count && !c.bad; ++i) {
    model->function_count = i + 1;
    function_of(model, &c, model->functions + i);
    function *f = model->functions + i;
    if (model->is_folder ? f->start || !f->size || strchr(f->name, '/') != NULL
                         : f->start > start || f->size > start - f->start)
      c.bad = 1;
  }
  fx_status status = layouts_of(model, &c, room);
  if (status) return status;
  if (*beside && !c.bad) { /* a name, in the same folder */
    const char *slash = strrchr(model->path, '/');
    int folder = slash ? (int)(slash - model->path) + 1 : 0;
    if (strchr(beside, '/') || !strcmp(beside, "..")) c.bad = 1;
    model->beside = model->is_folder ? formatted("%s/%s", model->path, beside)
                                     : formatted("%.*s%s", folder, model->path, beside);
    if (!model->beside) return FX_NO_MEMORY;
  } else if (!c.bad && (model->part_start > start || model->part_size > start - model->part_start)) {
    c.bad = 1;
  }
  if (model->rank)
    return fail(FX_BAD_FILE, "%s has an array with %d axes; this source takes %d",
                model->path, model->rank, FX_MAX_RANK);
  if (c.bad || c.left) return fail(FX_BAD_FILE, "%s is damaged: its table", model->path);
  model->buffers = allocate((size_t)model->param_count * model->span, sizeof *model->buffers);
  return model->buffers ? FX_OK : FX_NO_MEMORY;
}

static uint64_t little(const uint8_t *data, size_t size) {
  cursor c = {data, size, 0};
  return number(&c, size);
}

/* Checks the beginning of a file. */
static fx_status head_of(const fx_model *model) {
  static const uint8_t mark[8] = {0x89, 'F', 'X', '\r', '\n', 0x1a, '\n', 0};
  uint64_t end;
  uint8_t *head = bytes_of(model->path, 0, 48, &end);
  if (!head) {
    if (end && end < 48) fail(FX_BAD_FILE, "%s is not a .fx file", model->path);
    return FX_BAD_FILE;
  }
  uint64_t version = little(head + 8, 4);
  int marked = !memcmp(head, mark, 8);
  free(head);
  if (!marked) return fail(FX_BAD_FILE, "%s is not a .fx file", model->path);
  if (version == 1) return FX_OK;
  return fail(FX_BAD_FILE, "%s has format version %u; this source reads version 1",
              model->path, (unsigned)version);
}

/* Reads the table at the end of a file, which `path` is. */
static fx_status tail_of(fx_model *model, const char *path, uint32_t room) {
  uint8_t digest[32];
  struct stat found;
  uint64_t end = stat(path, &found) ? 0 : (uint64_t)found.st_size, start;
  uint8_t *tail = bytes_of(path, end < 48 ? 0 : end - 48, 48, &end);
  if (!tail) return FX_BAD_FILE;
  start = little(tail + 32, 8);
  int marked = !memcmp(tail + 40, "FXTABLE1", 8);
  free(tail);
  if (!marked)
    return fail(FX_BAD_FILE,
                "%s has no table for C at its end: it is truncated, or was written by an "
                "older fxflow; save it again", path);
  if (start > end - 48 || end - start > LIMIT || (model->is_folder && start))
    return fail(FX_BAD_FILE, "%s is damaged: the place of its table", path);
  uint8_t *table = bytes_of(path, start, end - start, &end);
  if (!table) return FX_BAD_FILE;
  sha256(table, end - start - 48, digest);
  fx_status status =
      memcmp(digest, table + (end - start - 48), 32)
          ? fail(FX_BAD_FILE, "%s is damaged: the digest of its table differs", path)
          : table_of(model, table, end - start - 48, start, room);
  if (!status) {
    memset(table + model->digest_at, 0, 32);
    sha256(table, end - start - 48, model->table_digest);
    model->table_start = start;
  }
  free(table);
  return status;
}

static fx_status file_of(fx_model *model, uint32_t room) {
  struct stat found;
  model->is_folder = !stat(model->path, &found) && S_ISDIR(found.st_mode);
  if (!model->is_folder) {
    fx_status status = head_of(model);
    return status ? status : tail_of(model, model->path, room);
  }
  char *path = formatted("%s/signature.bin", model->path);
  fx_status status = path ? tail_of(model, path, room) : FX_NO_MEMORY;
  free(path);
  return status;
}

/* -- arrays ---------------------------------------------------------------------- */

/* The first byte of a device's part of a dense array, and the strides. */
static size_t part_of(const value *v, uint32_t device, int64_t strides[FX_MAX_RANK]) {
  size_t at = 0;
  int64_t stride = sizes[v->type.dtype];
  uint32_t number = v->layout.kind == PARTS ? v->layout.numbers[device] : 0;
  for (int i = v->type.rank - 1; i >= 0; --i) {
    strides[i] = stride;
    stride *= v->dims[i];
    if (v->layout.kind != PARTS || !v->layout.dims[i]) continue;
    uint32_t parts = (uint32_t)(v->dims[i] / v->layout.dims[i]);
    at += number % parts * (size_t)v->layout.dims[i] * (size_t)strides[i];
    number /= parts;
  }
  return v->type.bytes ? at : 0;
}

/* Copies an array to the devices of a model, to every `step`-th of `buffers`. */
static fx_status to_devices(const fx_model *model, const void *data, const value *v,
                            PJRT_Buffer **buffers, size_t step) {
  const PJRT_Api *api = model->runtime->api;
  fx_status status = FX_OK;
  uint32_t done = 0;
  for (; done < model->span && !status; done += !status) {
    int64_t strides[FX_MAX_RANK];
    ARGS(PJRT_Client_BufferFromHostBuffer, put);
    put.client = model->runtime->client;
    put.data = data;
    put.type = (PJRT_Buffer_Type)v->type.dtype;
    put.dims = v->dims;
    put.num_dims = (size_t)v->type.rank;
    if (v->layout.kind == PARTS) {
      put.data = (const uint8_t *)data + part_of(v, done, strides);
      put.dims = v->layout.dims;
      put.byte_strides = strides;
      put.num_byte_strides = put.num_dims;
    }
    put.host_buffer_semantics = PJRT_HostBufferSemantics_kImmutableOnlyDuringCall;
    put.device = model->devices[done];
    status = checked(api, api->PJRT_Client_BufferFromHostBuffer(&put), v->type.name);
    if (status) break;
    buffers[done * step] = put.buffer;
    status = awaited(api, put.done_with_host_buffer, v->type.name);
    if (status) destroy(api, put.buffer), buffers[done * step] = NULL;
  }
  while (status && done--) destroy(api, buffers[done * step]), buffers[done * step] = NULL;
  return status;
}

/* Starts to copy an array of a device to the host; `event` says when it is there. */
static fx_status to_host(const fx_runtime *runtime, PJRT_Buffer *buffer, int rank,
                         void *data, size_t bytes, const char *what, PJRT_Event **event) {
  int64_t order[FX_MAX_RANK];
  for (int i = 0; i < rank; ++i) order[i] = rank - 1 - i;
  PJRT_Buffer_MemoryLayout dense = {0};
  dense.struct_size = PJRT_Buffer_MemoryLayout_STRUCT_SIZE;
  dense.type = PJRT_Buffer_MemoryLayout_Type_Tiled;
  dense.tiled.struct_size = PJRT_Buffer_MemoryLayout_Tiled_STRUCT_SIZE;
  dense.tiled.minor_to_major = order;
  dense.tiled.minor_to_major_size = (size_t)rank;
  ARGS(PJRT_Buffer_ToHostBuffer, get);
  get.src = buffer;
  get.host_layout = &dense;
  get.dst = data;
  get.dst_size = bytes;
  fx_status status = checked(runtime->api, runtime->api->PJRT_Buffer_ToHostBuffer(&get), what);
  *event = status ? NULL : get.event;
  return status;
}

/* Copies an array of several devices to the host, or starts to, as above. */
static fx_status gathered(const fx_runtime *runtime, PJRT_Buffer *const *buffers, size_t step,
                          uint32_t span, const value *v, void *data, const char *what,
                          PJRT_Event **event) {
  int rank = v->type.rank;
  if (v->layout.kind != PARTS)
    return to_host(runtime, buffers[0], rank, data, v->type.bytes, what, event);
  const int64_t *dims = v->layout.dims;
  size_t bytes = sizes[v->type.dtype];
  for (int i = 0; i < rank; ++i) bytes *= (size_t)dims[i];
  *event = NULL;
  uint8_t *part = allocate(bytes, 1);
  fx_status status = part ? FX_OK : FX_NO_MEMORY;
  for (uint32_t device = 0; device < span && !status && bytes; ++device) {
    int64_t strides[FX_MAX_RANK], index[FX_MAX_RANK] = {0};
    size_t at = part_of(v, device, strides), row = (size_t)(dims[rank - 1] * strides[rank - 1]);
    uint32_t before = 0; /* whether another device had the same part */
    while (before < device && v->layout.numbers[before] != v->layout.numbers[device]) ++before;
    if (before < device) continue;
    status = to_host(runtime, buffers[device * step], rank, part, bytes, what, event);
    if (!status) status = awaited(runtime->api, *event, what);
    *event = NULL;
    for (size_t done = 0; done < bytes && !status; done += row) {
      memcpy((uint8_t *)data + at, part + done, row);
      for (int i = rank - 2; i >= 0; --i) { /* the next row */
        at += (size_t)strides[i];
        if (++index[i] < dims[i]) break;
        at -= (size_t)(dims[i] * strides[i]);
        index[i] = 0;
      }
    }
  }
  free(part);
  return status;
}

static fx_status same_type(const char *where, const fx_array *given, const value *v) {
  char text[256];
  int rank = given->rank;
  if (given->dtype == v->type.dtype && rank == v->type.rank &&
      !memcmp(given->dims, v->dims, (size_t)rank * sizeof *v->dims))
    return FX_OK;
  return fail(FX_BAD_ARGUMENT, "%s: %s is %s, expected %s", where, v->type.name,
              described(text, sizeof text, (int)given->dtype, rank, given->dims),
              v->type.type);
}

/* -- models ---------------------------------------------------------------------- */

static void hex(const uint8_t digest[32], char out[65]) {
  for (int i = 0; i < 32; ++i) snprintf(out + 2 * i, 3, "%02x", digest[i]);
}

/* Finds the digest of the arrays in the header of their file, which ends at `start`. */
static uint8_t *arrays_digest(uint8_t *part, uint64_t size, uint64_t *start) {
  static const char mark[] = "\"fxflow.sha256\":\"";
  uint64_t length = size < 8 ? 0 : little(part, 8), known = sizeof mark - 1;
  if (size < 8 || length > size - 8) return NULL;
  *start = 8 + length;
  for (uint64_t at = 8; at + known + 64 <= *start; ++at)
    if (!memcmp(part + at, mark, known)) return part + at + known;
  return NULL;
}

/* Checks the parameters of a folder: their digest, and that its table is for them. */
static fx_status checked_arrays(const fx_model *model, uint8_t *part, uint64_t end) {
  uint8_t digest[32];
  char text[65];
  uint64_t start = 0;
  uint8_t *place = arrays_digest(part, model->part_size, &start);
  if (end == model->part_size && place) {
    sha256(part + start, end - start, digest);
    hex(digest, text);
    if (memcmp(text, place, 64))
      return fail(FX_BAD_FILE, "%s is damaged: the digest of the parameters differs",
                  model->beside);
    memset(place, '0', 64);
    sha256(part, start, digest);
    if (!memcmp(digest, model->part_digest, 32)) return FX_OK;
  }
  return fail(FX_BAD_FILE, "%s is not the file that its folder was written with: load the "
              "folder in Python, and save it again", model->beside);
}

static fx_status params_of(fx_model *model) {
  if (!model->param_count) return FX_OK;
  uint8_t digest[32];
  uint64_t end = 0;
  const char *path = model->beside ? model->beside : model->path;
  if (!model->part_size) return fail(FX_BAD_FILE, "%s is damaged: its parameters", path);
  uint8_t *part = bytes_of(path, model->part_start, model->part_size, &end);
  if (!part) return FX_BAD_FILE;
  fx_status status = FX_OK;
  if (model->is_folder) {
    status = model->beside ? checked_arrays(model, part, end)
                           : fail(FX_BAD_FILE, "%s is damaged: its parameters", path);
  } else {
    sha256(part, model->part_size, digest);
    if (memcmp(digest, model->part_digest, 32))
      status = fail(FX_BAD_FILE, "%s is damaged: the digest of the parameters differs", path);
  }
  for (uint32_t i = 0; i < model->param_count && !status; ++i)
    status = to_devices(model, part + model->starts[i], model->params + i, model->buffers + i,
                        model->param_count);
  free(part);
  return status;
}

fx_model *fx_load(fx_runtime *runtime, const char *path, int device) {
  if (!runtime || !path) {
    fail(FX_BAD_ARGUMENT, "fx_load: no %s", runtime ? "path" : "runtime");
    return NULL;
  }
  if (device < 0 || (size_t)device >= runtime->device_count) {
    fail(FX_BAD_ARGUMENT, "fx_load: device %d of %zu", device, runtime->device_count);
    return NULL;
  }
  fx_model *model = allocate(1, sizeof *model);
  if (!model) return NULL;
  model->runtime = used(runtime);
  model->devices = runtime->devices + device;
  uint32_t room = (uint32_t)(runtime->device_count - (size_t)device);
  model->path = allocate(strlen(path) + 1, 1);
  if (!model->path || (strcpy(model->path, path), file_of(model, room)) || params_of(model)) {
    fx_free(model);
    return NULL;
  }
  return model;
}

void fx_free(fx_model *model) {
  if (!model) return;
  fx_runtime *runtime = model->runtime;
  const PJRT_Api *api = runtime->api;
  for (uint32_t i = 0; i < model->function_count; ++i) {
    function *f = model->functions + i;
    if (f->executable) {
      ARGS(PJRT_LoadedExecutable_Destroy, gone);
      gone.executable = f->executable;
      checked(api, api->PJRT_LoadedExecutable_Destroy(&gone), f->name);
    }
    for (uint32_t j = 0; j < f->input_count; ++j) free(f->inputs[j].layout.numbers);
    for (uint32_t j = 0; j < f->output_count; ++j) free(f->outputs[j].layout.numbers);
    free(f->inputs);
    free(f->outputs);
  }
  for (size_t i = 0; model->buffers && i < (size_t)model->param_count * model->span; ++i)
    destroy(api, model->buffers[i]);
  for (size_t i = 0; i < model->text_count; ++i) free(model->texts[i]);
  free(model->texts);
  free(model->functions);
  free(model->params);
  free(model->starts);
  free(model->buffers);
  free(model->beside);
  free(model->path);
  free(model);
  fx_close(runtime);
}

/* Whether a function of the interface got what it needs. */
static int given(const char *where, const void *it, const char *what) {
  if (!it) fail(FX_BAD_ARGUMENT, "%s: no %s", where, what);
  return it != NULL;
}

static function *named(const fx_model *model, const char *name) {
  if (!given("a call", model, "model") || !given("a call", name, "name of a function"))
    return NULL;
  for (uint32_t i = 0; i < model->function_count; ++i)
    if (!strcmp(model->functions[i].name, name)) return model->functions + i;
  char known[512] = "";
  for (uint32_t i = 0; i < model->function_count; ++i) {
    size_t at = strlen(known);
    snprintf(known + at, sizeof known - at, "%s%s", i ? ", " : "", model->functions[i].name);
  }
  fail(FX_BAD_ARGUMENT, "%s has no function %s; it has %s", model->path, name, known);
  return NULL;
}

int fx_function_count(const fx_model *model) {
  return given("fx_function_count", model, "model") ? (int)model->function_count : -1;
}

const char *fx_function_name(const fx_model *model, int index) {
  if (!model || index < 0 || (uint32_t)index >= model->function_count) return NULL;
  return model->functions[index].name;
}

int fx_param_count(const fx_model *model) {
  return given("fx_param_count", model, "model") ? (int)model->param_count : -1;
}

const fx_type *fx_param(const fx_model *model, int index) {
  if (!model || index < 0 || (uint32_t)index >= model->param_count) return NULL;
  return &model->params[index].type;
}

/* The values of the caller's: those that are not parameters. */
static int own_count(const value *values, uint32_t count) {
  int found = 0;
  for (uint32_t i = 0; i < count; ++i) found += values[i].param == NONE;
  return found;
}

static const fx_type *own(const value *values, uint32_t count, int index) {
  for (uint32_t i = 0; i < count; ++i)
    if (values[i].param == NONE && !index--) return &values[i].type;
  return NULL;
}

int fx_input_count(const fx_model *model, const char *name) {
  function *f = named(model, name);
  return f ? own_count(f->inputs, f->input_count) : -1;
}

const fx_type *fx_input(const fx_model *model, const char *name, int index) {
  function *f = named(model, name);
  return f ? own(f->inputs, f->input_count, index) : NULL;
}

int fx_output_count(const fx_model *model, const char *name) {
  function *f = named(model, name);
  return f ? own_count(f->outputs, f->output_count) : -1;
}

const fx_type *fx_output(const fx_model *model, const char *name, int index) {
  function *f = named(model, name);
  return f ? own(f->outputs, f->output_count, index) : NULL;
}

/* -- calls ----------------------------------------------------------------------- */

static uint8_t *varint(uint8_t *out, uint64_t n) {
  for (; n > 127; n >>= 7) *out++ = (uint8_t)(n | 128);
  *out++ = (uint8_t)n;
  return out;
}

/* Writes a field of a protocol buffer: a number, or bytes. */
static uint8_t *field(uint8_t *out, uint32_t tag, uint64_t n, const uint8_t *bytes) {
  out = varint(varint(out, tag << 3 | (bytes ? 2 : 0)), n);
  if (bytes) memcpy(out, bytes, n);
  return bytes ? out + n : out;
}

/* Serializes XLA's CompileOptionsProto: one replica, a partition on each device. */
static fx_status options_for(const fx_model *model, const char *what, uint8_t **options,
                             size_t *size) {
  const PJRT_Api *api = model->runtime->api;
  uint8_t *assigned = allocate(16 + 16 * (size_t)model->span, 1), *build, *end;
  build = allocate(64 + 16 * (size_t)model->span, 1);
  *options = allocate(80 + 16 * (size_t)model->span, 1);
  fx_status status = assigned && build && *options ? FX_OK : FX_NO_MEMORY;
  if (!status) {
    end = field(field(assigned, 1, 1, NULL), 2, model->span, NULL);
    for (uint32_t i = 0; i < model->span && !status; ++i) {
      uint8_t ids[16], list[16];
      ARGS(PJRT_Device_GetDescription, device);
      device.device = model->devices[i];
      ARGS(PJRT_DeviceDescription_Id, id);
      status = checked(api, api->PJRT_Device_GetDescription(&device), what);
      id.device_description = device.device_description;
      if (!status) status = checked(api, api->PJRT_DeviceDescription_Id(&id), what);
      size_t length = (size_t)(varint(ids, (uint32_t)id.id) - ids);
      length = (size_t)(field(list, 1, length, ids) - list);
      end = field(end, 3, length, list);
    }
    size_t length = (size_t)(end - assigned);
    end = field(field(build, 4, 1, NULL), 5, model->span, NULL); /* replicas, partitions */
    if (model->span > 1) end = field(end, 6, 1, NULL);           /* SPMD partitioning */
    end = field(end, 9, length, assigned);
    if (model->span > 1) { /* what has no sharding is whole; by Shardy */
      static const uint8_t no[] = {0};
      end = field(field(field(end, 12, 1, no), 18, 1, no), 19, 1, NULL);
    }
    *size = (size_t)(field(*options, 3, (uint64_t)(end - build), build) - *options);
  }
  free(assigned);
  free(build);
  if (status) free(*options), *options = NULL;
  return status;
}

/* Checks the layouts of a function for several devices. */
static fx_status check_layouts(const fx_model *model, const function *f) {
  for (int out = 0; out < 2; ++out) {
    const value *values = out ? f->outputs : f->inputs;
    for (uint32_t i = 0; i < (out ? f->output_count : f->input_count); ++i) {
      const value *v = values + i, *param = v->param == NONE ? v : model->params + v->param;
      const char *verb = out ? "returns" : "takes", *name = param->type.name;
      if (v->layout.kind == ANOTHER)
        return fail(FX_BAD_FILE, "%s %s %s in a sharding that %s", f->name, verb, name,
                    v->layout.open ? "the partitioner chooses: export it with out_shardings"
                                   : "this front end lacks: parts of different sizes, "
                                     "unreduced values, or another memory");
      if (!same_layout(&v->layout, &param->layout, v->type.rank, model->span))
        return fail(FX_BAD_FILE, "%s %s %s in another sharding than the function that first "
                    "takes it: export it with %s", f->name, verb, name,
                    out ? "out_shardings" : "in_shardings");
    }
  }
  return FX_OK;
}

static fx_status compile(fx_model *model, function *f) {
  if (f->executable) return FX_OK;
  const PJRT_Api *api = model->runtime->api;
  if (f->platform == NONE)
    return fail(FX_BAD_FILE, "%s was not exported for the platform %s: export it with "
                "platforms=(\"%s\", \"%s\")", f->name, model->runtime->platform,
                f->first_platform ? f->first_platform : "", model->runtime->platform);
  fx_status status = model->span > 1 ? check_layouts(model, f) : FX_OK;
  if (status) return status;
  for (uint32_t i = 0; i < f->input_count; ++i)
    if (f->inputs[i].type.bytes == SIZE_MAX)
      return fail(FX_BAD_FILE, "%s: %s has a symbolic size, %s: export it for a fixed one",
                  f->name, f->inputs[i].type.name, f->inputs[i].type.type);
  uint64_t end = 0;
  uint8_t digest[32];
  char *path = model->is_folder ? formatted("%s/%s.mlirbc", model->path, f->name)
                                : formatted("%s", model->path);
  if (!path) return FX_NO_MEMORY;
  uint8_t *code = bytes_of(path, f->start, f->size, &end);
  free(path);
  if (!code) return FX_BAD_FILE;
  sha256(code, f->size, digest);
  if (memcmp(digest, f->digest, 32)) {
    free(code);
    return fail(FX_BAD_FILE, "%s is damaged: the digest of %s differs", model->path, f->name);
  }
  uint8_t *options = NULL;
  size_t options_size = 0;
  status = options_for(model, f->name, &options, &options_size);
  PJRT_Program program = {0};
  program.struct_size = PJRT_Program_STRUCT_SIZE;
  program.code = (char *)code;
  program.code_size = f->size;
  program.format = "mlir";
  program.format_size = 4;
  ARGS(PJRT_Client_Compile, args);
  args.client = model->runtime->client;
  args.program = &program;
  args.compile_options = (char *)options;
  args.compile_options_size = options_size;
  if (!status) status = checked(api, api->PJRT_Client_Compile(&args), f->name);
  free(code);
  free(options);
  if (status) return status;
  /* The program must return what the table lists: the caller's memory is sized by it. */
  ARGS(PJRT_LoadedExecutable_GetExecutable, inner);
  inner.loaded_executable = args.executable;
  ARGS(PJRT_Executable_NumOutputs, outputs);
  status = checked(api, api->PJRT_LoadedExecutable_GetExecutable(&inner), f->name);
  if (!status) {
    outputs.executable = inner.executable;
    status = checked(api, api->PJRT_Executable_NumOutputs(&outputs), f->name);
    ARGS(PJRT_Executable_Destroy, gone);
    gone.executable = inner.executable;
    checked(api, api->PJRT_Executable_Destroy(&gone), f->name);
  }
  if (!status && outputs.num_outputs != f->output_count)
    status = fail(FX_BAD_FILE, "%s is damaged: %s returns %zu arrays, its table says %u",
                  model->path, f->name, outputs.num_outputs, f->output_count);
  if (status) {
    ARGS(PJRT_LoadedExecutable_Destroy, gone);
    gone.executable = args.executable;
    api->PJRT_LoadedExecutable_Destroy(&gone);
    return status;
  }
  f->executable = args.executable;
  return FX_OK;
}

fx_status fx_compile(fx_model *model, const char *name) {
  function *f = named(model, name);
  return f ? compile(model, f) : FX_BAD_ARGUMENT;
}

/* Finds the array of the caller's for a value. */
static const fx_array *given_for(const value *v, const fx_array *arrays, size_t count) {
  for (size_t i = 0; i < count; ++i)
    if (arrays[i].name && !strcmp(arrays[i].name, v->type.name)) return arrays + i;
  return NULL;
}

/* Checks names, types and memory of the arrays of one side of a call. */
static fx_status check(const function *f, const value *values, uint32_t value_count,
                       const fx_array *arrays, size_t count, int inputs) {
  for (size_t i = 0; i < count; ++i) {
    const value *found = NULL;
    for (uint32_t j = 0; j < value_count && arrays[i].name; ++j)
      if (values[j].param == NONE && !strcmp(values[j].type.name, arrays[i].name))
        found = values + j;
    if (!found) {
      char known[512] = "";
      for (uint32_t j = 0; j < value_count; ++j) {
        size_t at = strlen(known);
        if (values[j].param == NONE)
          snprintf(known + at, sizeof known - at, "%s%s", at ? ", " : "", values[j].type.name);
      }
      return fail(FX_BAD_ARGUMENT, "%s has no %s %s; it has %s", f->name,
                  inputs ? "argument" : "result", arrays[i].name ? arrays[i].name : "(null)",
                  *known ? known : "none");
    }
    if (given_for(found, arrays, i))
      return fail(FX_BAD_ARGUMENT, "%s: %s is given twice", f->name, arrays[i].name);
    fx_status status = same_type(f->name, arrays + i, found);
    if (status) return status;
    if (inputs && !arrays[i].data && !arrays[i].buffer && found->type.bytes)
      return fail(FX_BAD_ARGUMENT, "%s: %s has neither data nor a buffer", f->name,
                  arrays[i].name);
  }
  for (uint32_t j = 0; inputs && j < value_count; ++j)
    if (values[j].param == NONE && !given_for(values + j, arrays, count))
      return fail(FX_BAD_ARGUMENT, "%s: %s %s is missing", f->name, values[j].type.name,
                  values[j].type.type);
  return FX_OK;
}

/* Copies a buffer, over the host, that is divided over devices in another way. */
static fx_status divided_anew(const fx_model *model, const fx_buffer *b, const value *v,
                              PJRT_Buffer **operands, size_t room) {
  PJRT_Event *event = NULL;
  uint8_t *data = allocate(v->type.bytes, 1);
  fx_status status = data ? gathered(b->runtime, b->parts, 1, b->span, &b->value, data,
                                     v->type.name, &event)
                          : FX_NO_MEMORY;
  if (!status) status = awaited(b->runtime->api, event, v->type.name);
  if (!status) status = to_devices(model, data, v, operands, room);
  free(data);
  return status;
}

/* Gathers the operands of `main`, `room` for each device; `owned` marks those made here. */
static fx_status operands_of(fx_model *model, const function *f, const fx_array *inputs,
                             size_t count, PJRT_Buffer **operands, size_t room,
                             uint8_t *owned, size_t *total) {
  size_t n = 0;
  fx_status status = FX_OK;
  if (f->takes_platform) {
    static const value platform = {{"the platform", "i32[]", FX_I32, 0, NULL, 4}, {0},
                                   {0}, NONE, 1};
    int32_t index = (int32_t)f->platform;
    status = to_devices(model, &index, &platform, operands + n, room);
    if (status) return status;
    owned[n++] = 1;
  }
  for (uint32_t i = 0; i < f->input_count && !status; ++i) {
    const value *v = f->inputs + i;
    if (!v->kept) continue;
    const fx_array *given = v->param == NONE ? given_for(v, inputs, count) : NULL;
    PJRT_Buffer *const *from = model->buffers + v->param;
    size_t step = model->param_count;
    if (given && given->buffer) {
      const fx_buffer *b = given->buffer;
      if (b->value.type.dtype != v->type.dtype || b->value.type.rank != v->type.rank ||
          memcmp(b->value.dims, v->dims, (size_t)v->type.rank * sizeof *v->dims))
        status = fail(FX_BAD_ARGUMENT, "%s: the buffer of %s is not %s", f->name,
                      v->type.name, v->type.type);
      else if (b->span != model->span ||
               !same_layout(&b->value.layout, &v->layout, v->type.rank, b->span)) {
        status = divided_anew(model, b, v, operands + n, room);
        owned[n] = !status;
      }
      from = b->parts;
      step = 1;
    } else if (given) {
      status = to_devices(model, given->data, v, operands + n, room);
      owned[n] = !status;
    }
    for (uint32_t d = 0; d < model->span && !status && !owned[n]; ++d)
      operands[d * room + n] = from[d * step];
    n += !status;
  }
  *total = n;
  return status;
}

static fx_buffer *wrapped(const fx_model *model, const value *v, PJRT_Buffer *const *parts,
                          size_t step) {
  uint32_t span = model->span;
  fx_buffer *made = allocate(1, sizeof *made + span * sizeof *made->parts);
  if (!made) return NULL;
  made->value = *v;
  made->span = span;
  if (v->layout.kind == PARTS) {
    made->value.layout.numbers = allocate(span, sizeof *v->layout.numbers);
    if (!made->value.layout.numbers) {
      free(made);
      return NULL;
    }
    memcpy(made->value.layout.numbers, v->layout.numbers, span * sizeof *v->layout.numbers);
  }
  for (uint32_t d = 0; d < span && parts; ++d) made->parts[d] = parts[d * step];
  made->runtime = used(model->runtime);
  return made;
}

static void unwrapped(fx_buffer *buffer) {
  fx_runtime *runtime = buffer->runtime;
  free(buffer->value.layout.numbers);
  free(buffer);
  fx_close(runtime);
}

/* Copies the results that the caller wants; the others are dropped. Those that stay on
   the device are handed out last, when nothing can fail any more. */
static fx_status results_of(fx_model *model, const function *f, PJRT_Buffer **results,
                            fx_array *outputs, size_t count) {
  const PJRT_Api *api = model->runtime->api;
  size_t step = f->output_count;
  PJRT_Event **events = allocate(f->output_count, sizeof *events);
  fx_buffer **kept = allocate(f->output_count, sizeof *kept);
  fx_status status = events && kept ? FX_OK : FX_NO_MEMORY;
  for (uint32_t i = 0; i < f->output_count && !status; ++i) {
    const value *v = f->outputs + i;
    const fx_array *wanted = v->param == NONE ? given_for(v, outputs, count) : NULL;
    if (!wanted) continue;
    if (wanted->data)
      status = gathered(model->runtime, results + i, step, model->span, v, wanted->data,
                        v->type.name, events + i);
    else if (!(kept[i] = wrapped(model, v, results + i, step)))
      status = FX_NO_MEMORY;
  }
  for (uint32_t i = 0; events && i < f->output_count; ++i) {
    fx_status late = awaited(api, events[i], f->outputs[i].type.name);
    if (!status) status = late;
  }
  for (uint32_t i = 0; kept && i < f->output_count; ++i) {
    if (!kept[i]) continue;
    if (status) {
      unwrapped(kept[i]);
      continue;
    }
    ((fx_array *)given_for(f->outputs + i, outputs, count))->buffer = kept[i];
    for (uint32_t d = 0; d < model->span; ++d) results[d * step + i] = NULL;
  }
  free(events);
  free(kept);
  return status;
}

static fx_status executed(fx_model *model, const function *f, PJRT_Buffer **operands,
                          size_t room, size_t count, PJRT_Buffer **results) {
  const PJRT_Api *api = model->runtime->api;
  PJRT_Buffer *const *one_list[1] = {operands}, *const **lists = one_list;
  PJRT_Buffer **one_made[1] = {results}, ***made = one_made;
  if (model->span > 1) {
    lists = allocate(model->span, sizeof *lists);
    made = allocate(model->span, sizeof *made);
  }
  fx_status status = lists && made ? FX_OK : FX_NO_MEMORY;
  for (uint32_t d = 1; d <= model->span - 1 && !status; ++d) {
    lists[0] = operands, made[0] = results;
    lists[d] = operands + d * room, made[d] = results + d * f->output_count;
  }
  if (!status) {
    PJRT_ExecuteOptions options = {0};
    options.struct_size = PJRT_ExecuteOptions_STRUCT_SIZE;
    ARGS(PJRT_LoadedExecutable_Execute, run);
    run.executable = f->executable;
    run.options = &options;
    run.argument_lists = lists;
    run.num_devices = model->span;
    run.num_args = count;
    run.output_lists = made;
    status = checked(api, api->PJRT_LoadedExecutable_Execute(&run), f->name);
    if (status) memset(results, 0, (size_t)f->output_count * model->span * sizeof *results);
  }
  if (model->span > 1) free(lists), free(made);
  return status;
}

fx_status fx_call(fx_model *model, const char *name, const fx_array *inputs,
                  size_t input_count, fx_array *outputs, size_t output_count) {
  function *f = named(model, name);
  if (!f || (input_count && !given(name, inputs, "inputs")) ||
      (output_count && !given(name, outputs, "outputs")))
    return FX_BAD_ARGUMENT;
  fx_status status = check(f, f->inputs, f->input_count, inputs, input_count, 1);
  if (!status) status = check(f, f->outputs, f->output_count, outputs, output_count, 0);
  if (!status) status = compile(model, f);
  if (status) return status;
  const PJRT_Api *api = model->runtime->api;
  size_t room = f->input_count + 1, n = 0, span = model->span;
  size_t results_count = f->output_count * span;
  PJRT_Buffer **operands = allocate(room * span, sizeof *operands);
  PJRT_Buffer **results = allocate(results_count, sizeof *results);
  uint8_t *owned = allocate(room, 1);
  if (!operands || !results || !owned) status = FX_NO_MEMORY;
  if (!status)
    status = operands_of(model, f, inputs, input_count, operands, room, owned, &n);
  if (!status) status = executed(model, f, operands, room, n, results);
  if (!status) status = results_of(model, f, results, outputs, output_count);
  for (size_t i = 0; !status && i < results_count; ++i) {
    uint32_t param = f->outputs[i % f->output_count].param;
    if (param == NONE) continue;
    PJRT_Buffer **place = model->buffers + i / f->output_count * model->param_count + param;
    PJRT_Buffer *old = *place;
    *place = results[i];
    results[i] = old;
  }
  for (size_t i = 0; operands && owned && i < room * span; ++i)
    if (owned[i % room]) destroy(api, operands[i]);
  for (size_t i = 0; results && i < results_count; ++i) destroy(api, results[i]);
  free(operands);
  free(results);
  free(owned);
  return status;
}

fx_status fx_wait(fx_model *model) {
  if (!given("fx_wait", model, "model")) return FX_BAD_ARGUMENT;
  const PJRT_Api *api = model->runtime->api;
  fx_status status = FX_OK;
  for (size_t i = 0; i < (size_t)model->param_count * model->span && !status; ++i) {
    const char *name = model->params[i % model->param_count].type.name;
    ARGS(PJRT_Buffer_ReadyEvent, ready);
    ready.buffer = model->buffers[i];
    status = checked(api, api->PJRT_Buffer_ReadyEvent(&ready), name);
    if (!status) status = awaited(api, ready.event, name);
  }
  return status;
}

/* -- buffers and parameters ------------------------------------------------------ */

/* An array is divided like the first argument of its name and type. */
static const value *layout_for(const fx_model *model, value *v) {
  for (uint32_t i = 0; i < model->function_count && model->span > 1; ++i) {
    const function *f = model->functions + i;
    for (uint32_t j = 0; j < f->input_count; ++j) {
      const value *known = f->inputs + j;
      if (known->param == NONE && known->layout.kind == PARTS &&
          known->type.dtype == v->type.dtype && known->type.rank == v->type.rank &&
          !strcmp(known->type.name, v->type.name) &&
          !memcmp(known->dims, v->dims, (size_t)v->type.rank * sizeof *v->dims)) {
        v->layout = known->layout;
        return v;
      }
    }
  }
  return v;
}

fx_buffer *fx_put(fx_model *model, const fx_array *array) {
  if (!given("fx_put", model, "model") || !given("fx_put", array, "array")) return NULL;
  value v = {{array->name ? array->name : "the array", "", array->dtype, array->rank, NULL, 0},
             {0}, {0}, NONE, 1};
  if (array->rank < 0 || array->rank > FX_MAX_RANK || array->dtype < 1 ||
      array->dtype >= sizeof sizes || !sizes[array->dtype]) {
    fail(FX_BAD_ARGUMENT, "fx_put: %s has an unknown dtype or rank", v.type.name);
    return NULL;
  }
  v.type.bytes = sizes[array->dtype];
  for (int i = 0; i < array->rank; ++i) {
    int64_t n = v.dims[i] = array->dims[i];
    if (n < 0 || (n && v.type.bytes > SIZE_MAX / (size_t)n)) {
      fail(FX_BAD_ARGUMENT, "fx_put: %s has the size %lld", v.type.name, (long long)n);
      return NULL;
    }
    v.type.bytes *= (size_t)n;
  }
  if (!array->data && v.type.bytes) {
    fail(FX_BAD_ARGUMENT, "fx_put: %s has no data", v.type.name);
    return NULL;
  }
  fx_buffer *made = wrapped(model, layout_for(model, &v), NULL, 0);
  if (made && to_devices(model, array->data, &made->value, made->parts, 1)) {
    unwrapped(made);
    return NULL;
  }
  return made;
}

fx_status fx_get(const fx_buffer *buffer, void *data, size_t bytes) {
  if (!given("fx_get", buffer, "buffer") || (bytes && !given("fx_get", data, "memory")))
    return FX_BAD_ARGUMENT;
  const value *v = &buffer->value;
  if (bytes != v->type.bytes)
    return fail(FX_BAD_ARGUMENT, "fx_get: the array has %zu bytes, got memory of %zu",
                v->type.bytes, bytes);
  PJRT_Event *event;
  fx_status status = gathered(buffer->runtime, buffer->parts, 1, buffer->span, v, data,
                              "fx_get", &event);
  return status ? status : awaited(buffer->runtime->api, event, "fx_get");
}

void fx_drop(fx_buffer *buffer) {
  if (!buffer) return;
  for (uint32_t d = 0; d < buffer->span; ++d) destroy(buffer->runtime->api, buffer->parts[d]);
  unwrapped(buffer);
}

static fx_status param_named(const fx_model *model, const fx_array *array, uint32_t *index) {
  if (!given("a parameter", model, "model") || !given("a parameter", array, "array"))
    return FX_BAD_ARGUMENT;
  for (*index = 0; *index < model->param_count; ++*index)
    if (array->name && !strcmp(model->params[*index].type.name, array->name))
      return same_type("parameters", array, model->params + *index);
  char known[512] = "";
  for (uint32_t i = 0; i < model->param_count; ++i) {
    size_t at = strlen(known);
    snprintf(known + at, sizeof known - at, "%s%s", i ? ", " : "", model->params[i].type.name);
  }
  return fail(FX_BAD_ARGUMENT, "%s has no parameter %s; it has %s", model->path,
              array->name ? array->name : "(null)", *known ? known : "none");
}

static fx_status param_to_host(fx_model *model, uint32_t i, void *data) {
  const fx_type *type = &model->params[i].type;
  PJRT_Event *event;
  fx_status status = gathered(model->runtime, model->buffers + i, model->param_count,
                              model->span, model->params + i, data, type->name, &event);
  return status ? status : awaited(model->runtime->api, event, type->name);
}

fx_status fx_get_param(fx_model *model, fx_array *array) {
  uint32_t i;
  fx_status status = param_named(model, array, &i);
  if (status) return status;
  if (!array->data && model->params[i].type.bytes)
    return fail(FX_BAD_ARGUMENT, "%s has no data", array->name);
  return param_to_host(model, i, array->data);
}

fx_status fx_set_param(fx_model *model, const fx_array *array) {
  uint32_t i;
  fx_status status = param_named(model, array, &i);
  if (status) return status;
  if (!array->data && model->params[i].type.bytes)
    return fail(FX_BAD_ARGUMENT, "%s has no data", array->name);
  size_t step = model->param_count;
  PJRT_Buffer **made = allocate(model->span, sizeof *made);
  status = made ? to_devices(model, array->data, model->params + i, made, 1) : FX_NO_MEMORY;
  for (uint32_t d = 0; d < model->span && !status; ++d) {
    destroy(model->runtime->api, model->buffers[d * step + i]);
    model->buffers[d * step + i] = made[d];
  }
  free(made);
  return status;
}

/* -- saving ---------------------------------------------------------------------- */

/* Replaces a digest in the header, where it is written once. */
static fx_status replaced(uint8_t *header, size_t size, const uint8_t old[32],
                          const uint8_t new[32]) {
  char before[65], after[65];
  hex(old, before);
  hex(new, after);
  for (size_t i = 0; i + 64 <= size; ++i)
    if (!memcmp(header + i, before, 64)) {
      memcpy(header + i, after, 64);
      return FX_OK;
    }
  return fail(FX_BAD_FILE, "the file is damaged: its header lacks a digest");
}

/* Writes new parameters and digests into the bytes of a file. */
static fx_status updated(fx_model *model, uint8_t *data, uint64_t size) {
  uint8_t table_before[32], table_after[32], part[32], old[32];
  uint64_t start = little(data + size - 16, 8), length = little(data + 12, 4);
  int same = start == model->table_start && start < size - 48 && length <= size - 48 &&
             model->digest_at + 32 <= size - 48 - start && model->part_start <= size &&
             model->part_size <= size - model->part_start;
  uint8_t *place = same ? data + start + model->digest_at : NULL;
  if (same) { /* but for its parameters, which another model may have saved */
    sha256(data + start, size - start, table_before);
    memcpy(old, place, 32);
    memset(place, 0, 32);
    sha256(data + start, size - start - 48, part);
    same = !memcmp(part, model->table_digest, 32);
  }
  if (!same) return fail(FX_BAD_FILE, "%s has changed since it was loaded", model->path);
  for (uint32_t i = 0; i < model->param_count; ++i) {
    fx_status status = param_to_host(model, i, data + model->part_start + model->starts[i]);
    if (status) return status;
  }
  sha256(data + model->part_start, model->part_size, part);
  memcpy(place, part, 32);
  sha256(data + start, size - start - 48, data + size - 48);
  sha256(data + start, size - start, table_after);
  uint8_t *header = data + 48;
  fx_status status = replaced(header, length, old, part);
  if (!status) status = replaced(header, length, table_before, table_after);
  sha256(header, length, data + 16);
  return status;
}

/* A name beside `path` that is short enough for each file system; the caller frees it. */
static char *temporary(const char *path, unsigned number) {
  size_t folder = strlen(path);
  while (folder > 1 && path[folder - 1] == '/') --folder;
  while (folder && path[folder - 1] != '/') --folder;
  return formatted("%.*swrite-%ld-%u-%08x.tmp", (int)folder, path, (long)getpid(), number,
                   number);
}

/* Writes a file under a temporary name, which no other thread has, and renames it. */
static fx_status written(const char *path, const uint8_t *data, uint64_t size) {
  int handle = -1;
  char *part = NULL;
  for (unsigned i = 0; handle < 0 && (part = temporary(path, i)); ++i) {
    handle = open(part, O_WRONLY | O_CREAT | O_EXCL, 0666);
    if (handle < 0 && errno != EEXIST) break;
    if (handle < 0) free(part);
  }
  if (!part) return FX_NO_MEMORY;
  FILE *file = handle < 0 ? NULL : fdopen(handle, "wb");
  int wrong = !file || fwrite(data, 1, size, file) != size || fflush(file) || fsync(handle);
  int why = errno;
  if (file && fclose(file) && !wrong) wrong = 1, why = errno;
  if (!file && handle >= 0) close(handle);
  if (!wrong && rename(part, path)) wrong = 1, why = errno;
  if (wrong && handle >= 0) remove(part);
  free(part);
  return wrong ? fail(FX_BAD_FILE, "%s cannot be written: %s", path, strerror(why)) : FX_OK;
}

/* The files of a folder but the parameters: `index` counts them; NULL is the end. */
static char *file_in(const fx_model *model, const char *folder, uint32_t index) {
  static const char *const kinds[] = {"mlirbc", "jax", "onnx"};
  if (index < 2) return formatted("%s/signature.%s", folder, index ? "bin" : "json");
  index -= 2;
  if (index / 3 >= model->function_count) return NULL;
  return formatted("%s/%s.%s", folder, model->functions[index / 3].name, kinds[index % 3]);
}

/* Copies them, or removes the copies. */
static fx_status copied(const fx_model *model, const char *folder, int away) {
  char *from, *to;
  fx_status status = FX_OK;
  for (uint32_t i = 0; !status && (from = file_in(model, model->path, i)); ++i) {
    uint64_t size;
    int is_there = !away && !access(from, F_OK);
    uint8_t *data = is_there ? bytes_of(from, 0, 0, &size) : NULL;
    if (is_there && !data) status = kind;
    to = status ? NULL : file_in(model, folder, i);
    if (!to && !status) status = FX_NO_MEMORY;
    if (to && away) remove(to);
    if (to && data) status = written(to, data, size);
    free(to);
    free(data);
    free(from);
  }
  return status;
}

static fx_status save_folder(fx_model *model, const char *path) {
  struct stat here, there;
  uint64_t end = 0, start = 0;
  uint8_t digest[32];
  char text[65];
  uint8_t *data = bytes_of(model->beside, 0, model->part_size, &end);
  if (!data) return FX_BAD_FILE;
  fx_status status = checked_arrays(model, data, end);
  for (uint32_t i = 0; i < model->param_count && !status; ++i)
    status = param_to_host(model, i, data + model->starts[i]);
  uint8_t *place = status ? NULL : arrays_digest(data, end, &start);
  if (place) {
    sha256(data + start, end - start, digest);
    hex(digest, text);
    memcpy(place, text, 64);
  }
  int exists = !stat(path, &there);
  if (!status && exists && !stat(model->path, &here) && here.st_ino == there.st_ino &&
      here.st_dev == there.st_dev) {
    status = written(model->beside, data, end);
  } else if (!status && exists) {
    status = fail(FX_BAD_ARGUMENT, "fx_save: %s exists; a folder is saved to where it was "
                  "loaded from, or to a new one", path);
  } else if (!status) {
    char *made = temporary(path, 0);
    int wrong = 1;
    for (unsigned i = 1; made && (wrong = mkdir(made, 0777)) && errno == EEXIST; ++i) {
      free(made);
      made = temporary(path, i);
    }
    int why = errno;
    char *params = made ? formatted("%s/params.safetensors", made) : NULL;
    if (!params) status = FX_NO_MEMORY;
    errno = why;
    if (!status && wrong)
      status = fail(FX_BAD_FILE, "%s cannot be written: %s", made, strerror(errno));
    else if (!status) {
      status = copied(model, made, 0);
      if (!status) status = written(params, data, end);
      if (!status && rename(made, path))
        status = fail(FX_BAD_FILE, "%s cannot be written: %s", path, strerror(errno));
      if (status) {
        char kept[sizeof message];
        memcpy(kept, message, sizeof kept);
        copied(model, made, 1);
        remove(params);
        remove(made);
        memcpy(message, kept, sizeof kept);
        kind = status;
      }
    }
    free(made);
    free(params);
  }
  free(data);
  return status;
}

fx_status fx_save(fx_model *model, const char *path) {
  if (!given("fx_save", model, "model") || !given("fx_save", path, "path"))
    return FX_BAD_ARGUMENT;
  if (!model->param_count)
    return fail(FX_BAD_ARGUMENT, "%s has no parameters to save", model->path);
  if (model->is_folder) return save_folder(model, path);
  if (model->beside)
    return fail(FX_BAD_ARGUMENT, "fx_save: the parameters of %s are in a separate file, %s; "
                "save them in one file to train in C", model->path, model->beside);
  uint64_t size = 0;
  uint8_t *data = bytes_of(model->path, 0, 0, &size);
  if (!data) return FX_BAD_FILE;
  fx_status status = size < 96 ? fail(FX_BAD_FILE, "%s has changed since it was loaded",
                                           model->path)
                               : updated(model, data, size);
  if (!status) status = written(path, data, size);
  free(data);
  return status;
}
