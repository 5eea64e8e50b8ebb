package fxflow

import (
	"errors"
	"os"
	"strings"
	"testing"
)

// The tests run on the file that FXFLOW_TEST_MODEL names: step(state, x: f32[4,3]).

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestAbsentPluginsAndFiles(t *testing.T) {
	var refused *Error
	_, err := Open("/nowhere.so")
	if !errors.As(err, &refused) || refused.Status != BadPlugin {
		t.Fatal(err)
	}
	_, err = Open("", "cpu_device_count")
	if !errors.As(err, &refused) || refused.Text != "option \"cpu_device_count\" is not name=value" {
		t.Fatal(err)
	}
	runtime, err := Open("", "cpu_device_count=3")
	must(t, err)
	defer runtime.Close()
	if runtime.DeviceCount() != 3 || runtime.Platform() != "cpu" {
		t.Fatal(runtime.Platform())
	}
	_, err = runtime.Load("/nowhere.fx", 0)
	if !errors.As(err, &refused) || refused.Text != "/nowhere.fx cannot be read: No such file or directory" {
		t.Fatal(err)
	}
}

func TestCallsAndRefusals(t *testing.T) {
	runtime, err := Open("")
	must(t, err)
	defer runtime.Close()
	model, err := runtime.Load(os.Getenv("FXFLOW_TEST_MODEL"), 0)
	must(t, err)
	defer model.Close()
	if strings.Join(model.Functions(), " ") != "step swapped" || len(model.Params()) != 2 {
		t.Fatal(model.Functions(), model.Params())
	}
	inputs, err := model.Inputs("step")
	must(t, err)
	if inputs[0].Text != "f32[4,3]" || inputs[0].Shape[1] != 3 {
		t.Fatal(inputs)
	}
	x, y, w := make([]float32, 12), make([]float32, 1), make([]float32, 3)
	for i := range x {
		x[i] = 1
	}
	for i := 0; i < 3; i++ {
		must(t, model.Call("step", []Array{Of("x", x, 4, 3)}, []Array{Of("output", y)}))
	}
	must(t, model.GetParam(Of("w", w, 3)))
	if w[0] >= 1 || w[0] != w[2] {
		t.Fatal(w)
	}
	must(t, model.SetParam(Of("w", []float32{5, 6, 7}, 3)))
	must(t, model.GetParam(Of("w", w, 3)))
	if w[2] != 7 {
		t.Fatal(w)
	}
	for text, array := range map[string]Array{
		"step: x is f32[4,4], expected f32[4,3]":              Of("x", make([]float32, 16), 4, 4),
		"step: x is i32[4,3], expected f32[4,3]":              Of("x", make([]int32, 12), 4, 3),
		"step has no argument z; it has x":                    Of("z", x, 4, 3),
		"x: the shape [4 3] has 12 elements, the slice has 5": Of("x", x[:5], 4, 3),
	} {
		if err := model.Call("step", []Array{array}, nil); err == nil || err.Error() != text {
			t.Fatal(err)
		}
	}
	if err := model.Save("a\x00b"); err == nil || !strings.Contains(err.Error(), "zero byte") {
		t.Fatal(err)
	}
	// A closed model is refused; one that is not keeps the runtime open.
	other, err := Open("")
	must(t, err)
	last, err := other.Load(os.Getenv("FXFLOW_TEST_MODEL"), 0)
	must(t, err)
	other.Close()
	must(t, last.Call("step", []Array{Of("x", x, 4, 3)}, nil))
	last.Close()
	last.Close()
	if err := last.Call("step", nil, nil); err == nil || err.Error() != "a call: no model" {
		t.Fatal(err)
	}
	if last.Functions() != nil || last.Params() != nil || other.Platform() != "" {
		t.Fatal(last)
	}
}
