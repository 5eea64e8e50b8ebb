// Package fxflow calls and trains programs that fxflow exported, over the C front end.
//
//	runtime, err := fxflow.Open("") // $FXFLOW_PJRT_PLUGIN
//	model, err := runtime.Load("model.fx", 0)
//	var loss [1]float32
//	err = model.Call("step",
//	    []fxflow.Array{fxflow.Of("x", x, 8, 3), fxflow.Of("y", y, 8)},
//	    []fxflow.Array{fxflow.Of("output.loss", loss[:])})
//	err = model.Save("model.fx")
//
// Arrays are slices in row-major order, which are copied to and from C's memory. A model
// belongs to one goroutine at a time. A runtime stays open for models that are not closed.
package fxflow

/*
#cgo CFLAGS: -std=c11 -O2 -I${SRCDIR}/../c
#cgo LDFLAGS: -ldl
#include <stdlib.h>
#include <string.h>
#include "fxflow.h"
*/
import "C"

import (
	"fmt"
	"runtime"
	"strings"
	"unsafe"
)

// Status is the kind of an error.
type Status int

const (
	BadArgument Status = iota + 1 // a name, a dtype or a shape is not the function's
	BadFile                       // missing, damaged, or of another version or platform
	BadPlugin                     // missing or of another version
	Failed                        // the runtime reports an error
	NoMemory
)

// Error is what the C front end reports.
type Error struct {
	Status Status
	Text   string
}

func (e *Error) Error() string { return e.Text }

// in runs a function of C and reads its error, in one thread.
func in(f func() C.fx_status) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if status := f(); status != 0 {
		return &Error{Status(status), C.GoString(C.fx_error())}
	}
	return nil
}

// Element lists the Go types that arrays can have.
type Element interface {
	bool | int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64 | float32 | float64 | complex64 | complex128
}

// Array is an argument or a result: a name, a shape, and a slice.
type Array struct {
	name  string
	dtype C.fx_dtype
	shape []int
	count int
	bytes int
	data  unsafe.Pointer
	keep  any
}

// Of makes an Array of a slice. Without a shape it is a scalar, of one element.
func Of[T Element](name string, data []T, shape ...int) Array {
	var zero T
	made := Array{name: name, dtype: dtypeOf(any(zero)), shape: shape, count: len(data), keep: data}
	made.bytes = len(data) * int(unsafe.Sizeof(zero))
	if len(data) > 0 {
		made.data = unsafe.Pointer(&data[0])
	}
	return made
}

func dtypeOf(zero any) C.fx_dtype {
	switch zero.(type) {
	case bool:
		return C.FX_BOOL
	case int8:
		return C.FX_I8
	case int16:
		return C.FX_I16
	case int32:
		return C.FX_I32
	case int64:
		return C.FX_I64
	case uint8:
		return C.FX_U8
	case uint16:
		return C.FX_U16
	case uint32:
		return C.FX_U32
	case uint64:
		return C.FX_U64
	case float32:
		return C.FX_F32
	case float64:
		return C.FX_F64
	case complex64:
		return C.FX_C64
	}
	return C.FX_C128
}

// arrays are Arrays in C's memory.
type arrays struct {
	raw   *C.fx_array
	given []Array
}

func (a *arrays) at(i int) *C.fx_array {
	return (*C.fx_array)(unsafe.Pointer(uintptr(unsafe.Pointer(a.raw)) + uintptr(i)*C.sizeof_fx_array))
}

func toC(given []Array) (*arrays, error) {
	for _, array := range given {
		count := 1
		for _, n := range array.shape {
			count *= n
		}
		if len(array.shape) > C.FX_MAX_RANK || count != array.count {
			text := fmt.Sprintf("%s: the shape %v has %d elements, the slice has %d", array.name, array.shape, count, array.count)
			return nil, &Error{BadArgument, text}
		}
	}
	made := &arrays{(*C.fx_array)(C.calloc(C.size_t(len(given)+1), C.sizeof_fx_array)), given}
	for i, array := range given {
		raw := made.at(i)
		raw.name = C.CString(array.name)
		raw.dtype = array.dtype
		raw.rank = C.int(len(array.shape))
		for j, n := range array.shape {
			raw.dims[j] = C.int64_t(n)
		}
		raw.data = C.calloc(C.size_t(array.bytes+1), 1)
		if array.bytes > 0 {
			C.memcpy(raw.data, array.data, C.size_t(array.bytes))
		}
	}
	return made, nil
}

func (a *arrays) back() {
	for i, array := range a.given {
		if array.bytes > 0 {
			C.memcpy(array.data, a.at(i).data, C.size_t(array.bytes))
		}
	}
}

func (a *arrays) free() {
	for i := range a.given {
		C.free(unsafe.Pointer(a.at(i).name))
		C.free(a.at(i).data)
	}
	C.free(unsafe.Pointer(a.raw))
}

// Runtime is a plug-in and its devices.
type Runtime struct{ raw *C.fx_runtime }

// Open opens a plug-in; "": the one that FXFLOW_PJRT_PLUGIN names. Options such as
// "cpu_device_count=4" are the plug-in's.
func Open(plugin string, options ...string) (*Runtime, error) {
	var name *C.char
	if plugin != "" {
		name = C.CString(plugin)
		defer C.free(unsafe.Pointer(name))
	}
	made := &Runtime{}
	texts := (**C.char)(C.calloc(C.size_t(len(options)+1), C.size_t(unsafe.Sizeof(name))))
	defer C.free(unsafe.Pointer(texts))
	for i, option := range options {
		at := (**C.char)(unsafe.Pointer(uintptr(unsafe.Pointer(texts)) + uintptr(i)*unsafe.Sizeof(name)))
		*at = C.CString(option)
		defer C.free(unsafe.Pointer(*at))
	}
	err := in(func() C.fx_status {
		if made.raw = C.fx_open_with(name, texts, C.size_t(len(options))); made.raw == nil {
			return C.fx_error_status()
		}
		return C.FX_OK
	})
	if err != nil {
		return nil, err
	}
	return made, nil
}

// Platform returns "cpu", "cuda" or "tpu".
func (r *Runtime) Platform() string { return C.GoString(C.fx_platform(r.raw)) }

// DeviceCount returns the number of devices.
func (r *Runtime) DeviceCount() int { return int(C.fx_device_count(r.raw)) }

// Close closes the plug-in; models that are not closed keep it open.
func (r *Runtime) Close() {
	C.fx_close(r.raw)
	r.raw = nil
}

// Model is a file on a device: functions, and the state that they share.
type Model struct {
	raw     *C.fx_model
	runtime *Runtime
}

// checkPath refuses a path that C would cut off.
func checkPath(path string) error {
	if strings.IndexByte(path, 0) >= 0 {
		return &Error{BadArgument, fmt.Sprintf("%q has a zero byte", path)}
	}
	return nil
}

// Load loads a file on a device.
func (r *Runtime) Load(path string, device int) (*Model, error) {
	if err := checkPath(path); err != nil {
		return nil, err
	}
	if device != int(C.int(device)) {
		return nil, &Error{BadArgument, fmt.Sprintf("Load: device %d of %d", device, r.DeviceCount())}
	}
	name := C.CString(path)
	defer C.free(unsafe.Pointer(name))
	made := &Model{runtime: r}
	err := in(func() C.fx_status {
		if made.raw = C.fx_load(r.raw, name, C.int(device)); made.raw == nil {
			return C.fx_error_status()
		}
		return C.FX_OK
	})
	if err != nil {
		return nil, err
	}
	return made, nil
}

// Close frees the model.
func (m *Model) Close() {
	C.fx_free(m.raw)
	m.raw = nil
}

// Functions returns the names of the functions.
func (m *Model) Functions() []string {
	var found []string
	for i := 0; i < int(C.fx_function_count(m.raw)); i++ {
		found = append(found, C.GoString(C.fx_function_name(m.raw, C.int(i))))
	}
	return found
}

// Type is the type of an argument, a result or a parameter: "x", "f32[3,4]".
type Type struct {
	Name, Text string
	Shape      []int
}

func typeOf(t *C.fx_type) Type {
	found := Type{Name: C.GoString(t.name), Text: C.GoString(t._type)}
	for i := 0; i < int(t.rank); i++ {
		at := unsafe.Pointer(uintptr(unsafe.Pointer(t.dims)) + uintptr(i)*8)
		found.Shape = append(found.Shape, int(*(*C.int64_t)(at)))
	}
	return found
}

// Inputs returns the arguments of a function, without the parameters.
func (m *Model) Inputs(function string) ([]Type, error) {
	name := C.CString(function)
	defer C.free(unsafe.Pointer(name))
	var found []Type
	err := in(func() C.fx_status {
		count := C.fx_input_count(m.raw, name)
		for i := C.int(0); i < count; i++ {
			found = append(found, typeOf(C.fx_input(m.raw, name, i)))
		}
		if count < 0 {
			return C.FX_BAD_ARGUMENT
		}
		return C.FX_OK
	})
	return found, err
}

// Outputs returns the results of a function, without the parameters.
func (m *Model) Outputs(function string) ([]Type, error) {
	name := C.CString(function)
	defer C.free(unsafe.Pointer(name))
	var found []Type
	err := in(func() C.fx_status {
		count := C.fx_output_count(m.raw, name)
		for i := C.int(0); i < count; i++ {
			found = append(found, typeOf(C.fx_output(m.raw, name, i)))
		}
		if count < 0 {
			return C.FX_BAD_ARGUMENT
		}
		return C.FX_OK
	})
	return found, err
}

// Params returns the parameters.
func (m *Model) Params() []Type {
	var found []Type
	for i := C.int(0); i < C.fx_param_count(m.raw); i++ {
		found = append(found, typeOf(C.fx_param(m.raw, i)))
	}
	return found
}

// Call calls a function. A function that returns new parameters replaces them; outputs
// are the results that the caller wants.
func (m *Model) Call(function string, inputs, outputs []Array) error {
	given, err := toC(inputs)
	if err != nil {
		return err
	}
	defer given.free()
	wanted, err := toC(outputs)
	if err != nil {
		return err
	}
	defer wanted.free()
	name := C.CString(function)
	defer C.free(unsafe.Pointer(name))
	err = in(func() C.fx_status {
		return C.fx_call(m.raw, name, given.raw, C.size_t(len(inputs)), wanted.raw, C.size_t(len(outputs)))
	})
	if err == nil {
		wanted.back()
	}
	return err
}

// GetParam reads a parameter into the slice of an Array.
func (m *Model) GetParam(param Array) error {
	made, err := toC([]Array{param})
	if err != nil {
		return err
	}
	defer made.free()
	if err = in(func() C.fx_status { return C.fx_get_param(m.raw, made.raw) }); err == nil {
		made.back()
	}
	return err
}

// SetParam replaces a parameter.
func (m *Model) SetParam(param Array) error {
	made, err := toC([]Array{param})
	if err != nil {
		return err
	}
	defer made.free()
	return in(func() C.fx_status { return C.fx_set_param(m.raw, made.raw) })
}

// Save writes the file with the present parameters, atomically.
func (m *Model) Save(path string) error {
	if err := checkPath(path); err != nil {
		return err
	}
	name := C.CString(path)
	defer C.free(unsafe.Pointer(name))
	return in(func() C.fx_status { return C.fx_save(m.raw, name) })
}
