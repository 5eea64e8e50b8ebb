module @f0 {
func.func public @main(%a0: tensor<8xf32>) -> (tensor<8xf32>) {
%0 = stablehlo.convert %a0 : (tensor<8xf32>) -> tensor<8xcomplex<f32>>
%1 = stablehlo.fft %0, type = FFT, length = [8] : (tensor<8xcomplex<f32>>) -> tensor<8xcomplex<f32>>
%2 = stablehlo.abs %1 : (tensor<8xcomplex<f32>>) -> tensor<8xf32>
return %2 : tensor<8xf32>
}
}
