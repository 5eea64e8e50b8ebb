// Trains a net for MNIST for an epoch, tests it, and saves it.
//
//	python frontends/export_mnist.py build
//	cd frontends/go
//	FXFLOW_PJRT_PLUGIN=$(python -m fxflow.export.plugin) go run ./examples/mnist ../../build
package main

import (
	"fmt"
	"log"
	"os"

	"fxflow"
)

const batch, pixels = 100, 784

func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}

func main() {
	folder := "build"
	if len(os.Args) > 1 {
		folder = os.Args[1]
	}
	read := func(name string) []byte { return must(os.ReadFile(folder + "/" + name + ".u8")) }
	runtime := must(fxflow.Open(""))
	defer runtime.Close()
	model := must(runtime.Load(folder+"/mnist.fx", 0))
	defer model.Close()

	images, labels := read("train-images"), read("train-labels")
	sum, loss, steps := 0.0, make([]float32, 1), len(labels)/batch
	for i := 0; i < steps; i++ {
		x, y := images[i*batch*pixels:(i+1)*batch*pixels], labels[i*batch:(i+1)*batch]
		inputs := []fxflow.Array{fxflow.Of("images", x, batch, pixels), fxflow.Of("labels", y, batch)}
		if err := model.Call("step", inputs, []fxflow.Array{fxflow.Of("output.loss", loss)}); err != nil {
			log.Fatal(err)
		}
		sum += float64(loss[0])
	}

	unseen, truth := read("test-images"), read("test-labels")
	right, digits, count := 0, make([]int32, batch), len(truth)/batch
	for i := 0; i < count; i++ {
		x := unseen[i*batch*pixels : (i+1)*batch*pixels]
		inputs := []fxflow.Array{fxflow.Of("images", x, batch, pixels)}
		if err := model.Call("predict", inputs, []fxflow.Array{fxflow.Of("output.digits", digits, batch)}); err != nil {
			log.Fatal(err)
		}
		for j, digit := range digits {
			if int(digit) == int(truth[i*batch+j]) {
				right++
			}
		}
	}
	fmt.Printf("loss %.6f, accuracy %.4f\n", sum/float64(steps), float64(right)/float64(count*batch))
	if err := model.Save(folder + "/trained.fx"); err != nil {
		log.Fatal(err)
	}
}
