/* A PJRT plug-in for tests: arrays in host memory, and programs that copy their operands
   to their results. FAKE_FAIL=n makes the n-th call of the interface fail, FAKE_OUTPUTS
   is the number of results of each program, FAKE_MAJOR another version. At exit it says
   how many objects were left. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../frontends/c/third_party/pjrt_c_api.h"

struct PJRT_Error { PJRT_Error_Code code; };
struct PJRT_Event { int unused; };
struct PJRT_Buffer { size_t size; unsigned char *data; };
struct PJRT_Client { int unused; };
struct PJRT_Executable { int unused; };
struct PJRT_LoadedExecutable { int unused; };
struct PJRT_Device { int id; };
struct PJRT_DeviceDescription { int id; };

static long calls, fail_at, living;
static struct PJRT_Device devices[2] = {{0}, {1}};
static struct PJRT_Device *listed[2] = {devices, devices + 1};

static void *made(size_t size) {
  ++living;
  return calloc(1, size);
}

static void gone(void *object) {
  --living;
  free(object);
}

static void report(void) {
  if (living) fprintf(stderr, "fake plug-in: %ld objects left\n", living);
}

static PJRT_Error *failed(PJRT_Error_Code code) {
  PJRT_Error *error = made(sizeof *error);
  error->code = code;
  return error;
}

#define COUNT() \
  if (++calls == fail_at) return failed(calls % 2 ? PJRT_Error_Code_RESOURCE_EXHAUSTED : PJRT_Error_Code_INTERNAL)

static void error_destroy(PJRT_Error_Destroy_Args *a) { gone(a->error); }
static void error_message(PJRT_Error_Message_Args *a) {
  a->message = "a planted failure";
  a->message_size = strlen(a->message);
}
static PJRT_Error *error_code(PJRT_Error_GetCode_Args *a) {
  a->code = a->error->code;
  return NULL;
}
static PJRT_Error *start(PJRT_Plugin_Initialize_Args *a) { (void)a; COUNT(); return NULL; }
static PJRT_Error *event_destroy(PJRT_Event_Destroy_Args *a) { gone(a->event); return NULL; }
static PJRT_Error *event_await(PJRT_Event_Await_Args *a) { (void)a; COUNT(); return NULL; }
static PJRT_Error *client_create(PJRT_Client_Create_Args *a) {
  COUNT();
  a->client = made(sizeof *a->client);
  return NULL;
}
static PJRT_Error *client_destroy(PJRT_Client_Destroy_Args *a) { gone(a->client); return NULL; }
static PJRT_Error *platform(PJRT_Client_PlatformName_Args *a) {
  COUNT();
  a->platform_name = "cpu";
  a->platform_name_size = 3;
  return NULL;
}
static PJRT_Error *addressable(PJRT_Client_AddressableDevices_Args *a) {
  COUNT();
  a->addressable_devices = listed;
  a->num_addressable_devices = 2;
  return NULL;
}
static PJRT_Error *description(PJRT_Device_GetDescription_Args *a) {
  COUNT();
  a->device_description = (PJRT_DeviceDescription *)a->device;
  return NULL;
}
static PJRT_Error *id(PJRT_DeviceDescription_Id_Args *a) {
  COUNT();
  a->id = a->device_description->id;
  return NULL;
}
static PJRT_Error *compile(PJRT_Client_Compile_Args *a) {
  COUNT();
  a->executable = made(sizeof *a->executable);
  return NULL;
}
static PJRT_Error *executable(PJRT_LoadedExecutable_GetExecutable_Args *a) {
  COUNT();
  a->executable = made(sizeof *a->executable);
  return NULL;
}
static PJRT_Error *executable_destroy(PJRT_Executable_Destroy_Args *a) {
  gone(a->executable);
  return NULL;
}
static PJRT_Error *loaded_destroy(PJRT_LoadedExecutable_Destroy_Args *a) {
  gone(a->executable);
  return NULL;
}
static size_t output_count(void) {
  const char *text = getenv("FAKE_OUTPUTS");
  return text ? (size_t)atol(text) : 0;
}
static PJRT_Error *outputs(PJRT_Executable_NumOutputs_Args *a) {
  COUNT();
  a->num_outputs = output_count();
  return NULL;
}
static PJRT_Buffer *copy_of(const void *data, size_t size) {
  PJRT_Buffer *buffer = made(sizeof *buffer);
  buffer->size = size;
  buffer->data = made(size + 1);
  memcpy(buffer->data, data, size);
  return buffer;
}
static PJRT_Error *put(PJRT_Client_BufferFromHostBuffer_Args *a) {
  static const unsigned char sizes[] = {0, 1, 1, 2, 4, 8, 1, 2, 4, 8, 2, 4, 8, 2, 8, 16};
  COUNT();
  size_t size = a->type < sizeof sizes ? sizes[a->type] : 1;
  size_t element = size;
  for (size_t i = 0; i < a->num_dims; ++i) size *= (size_t)a->dims[i];
  a->buffer = copy_of("", 0);
  gone(a->buffer->data);
  a->buffer->size = size;
  a->buffer->data = made(size + 1);
  for (size_t at = 0; at < size; at += element) { /* each element, by the strides */
    size_t left = at / element;
    const unsigned char *from = a->data;
    for (size_t i = a->num_dims; i-- && a->num_byte_strides; left /= (size_t)a->dims[i])
      from += (int64_t)(left % (size_t)a->dims[i]) * a->byte_strides[i];
    memcpy(a->buffer->data + at, a->num_byte_strides ? from : from + at, element);
  }
  a->done_with_host_buffer = made(sizeof *a->done_with_host_buffer);
  return NULL;
}
static PJRT_Error *buffer_destroy(PJRT_Buffer_Destroy_Args *a) {
  gone(a->buffer->data);
  gone(a->buffer);
  return NULL;
}
static PJRT_Error *ready(PJRT_Buffer_ReadyEvent_Args *a) {
  COUNT();
  a->event = made(sizeof *a->event);
  return NULL;
}
static PJRT_Error *get(PJRT_Buffer_ToHostBuffer_Args *a) {
  COUNT();
  size_t size = a->src->size < a->dst_size ? a->src->size : a->dst_size;
  memset(a->dst, 0, a->dst_size);
  memcpy(a->dst, a->src->data, size);
  a->event = made(sizeof *a->event);
  return NULL;
}
static PJRT_Error *run(PJRT_LoadedExecutable_Execute_Args *a) {
  COUNT();
  for (size_t i = 0; i < output_count() * a->num_devices; ++i) {
    size_t device = i / output_count(), j = i % output_count();
    const PJRT_Buffer *from = a->num_args ? a->argument_lists[device][j % a->num_args] : NULL;
    a->output_lists[device][j] = from ? copy_of(from->data, from->size) : copy_of("", 0);
  }
  return NULL;
}

const PJRT_Api *GetPjrtApi(void) {
  static PJRT_Api api;
  const char *text = getenv("FAKE_FAIL"), *major = getenv("FAKE_MAJOR");
  fail_at = text ? atol(text) : 0;
  if (!api.struct_size) atexit(report);
  api.struct_size = PJRT_Api_STRUCT_SIZE;
  api.pjrt_api_version.major_version = major ? atoi(major) : PJRT_API_MAJOR;
  api.PJRT_Error_Destroy = error_destroy;
  api.PJRT_Error_Message = error_message;
  api.PJRT_Error_GetCode = error_code;
  api.PJRT_Plugin_Initialize = start;
  api.PJRT_Event_Destroy = event_destroy;
  api.PJRT_Event_Await = event_await;
  api.PJRT_Client_Create = client_create;
  api.PJRT_Client_Destroy = client_destroy;
  api.PJRT_Client_PlatformName = platform;
  api.PJRT_Client_AddressableDevices = addressable;
  api.PJRT_Device_GetDescription = description;
  api.PJRT_DeviceDescription_Id = id;
  api.PJRT_Client_Compile = compile;
  api.PJRT_LoadedExecutable_GetExecutable = executable;
  api.PJRT_Executable_Destroy = executable_destroy;
  api.PJRT_LoadedExecutable_Destroy = loaded_destroy;
  api.PJRT_Executable_NumOutputs = outputs;
  api.PJRT_Client_BufferFromHostBuffer = put;
  api.PJRT_Buffer_Destroy = buffer_destroy;
  api.PJRT_Buffer_ReadyEvent = ready;
  api.PJRT_Buffer_ToHostBuffer = get;
  api.PJRT_LoadedExecutable_Execute = run;
  return &api;
}
