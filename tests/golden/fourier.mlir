module @f0 {
func.func public @main(%a0: tensor<8xf32>) -> (tensor<8xf32>) {
%0 = stablehlo.convert %a0 : (tensor<8xf32>) -> tensor<8xcomplex<f32>>
%1 = stablehlo.fft %0, type = FFT, length = [8] : (tensor<8xcomplex<f32>>) -> tensor<8xcomplex<f32>>
%2 = stablehlo.abs %1 : (tensor<8xcomplex<f32>>) -> tensor<8xf32>
%3 = stablehlo.real %1 : (tensor<8xcomplex<f32>>) -> tensor<8xf32>
%4 = stablehlo.abs %3 : tensor<8xf32>
%5 = stablehlo.constant dense<0x7F800000> : tensor<f32>
%6 = stablehlo.broadcast_in_dim %5, dims = [] : (tensor<f32>) -> tensor<8xf32>
%7 = stablehlo.compare EQ, %4, %6, FLOAT : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xi1>
%8 = stablehlo.imag %1 : (tensor<8xcomplex<f32>>) -> tensor<8xf32>
%9 = stablehlo.abs %8 : tensor<8xf32>
%10 = stablehlo.constant dense<0x7F800000> : tensor<f32>
%11 = stablehlo.broadcast_in_dim %10, dims = [] : (tensor<f32>) -> tensor<8xf32>
%12 = stablehlo.compare EQ, %9, %11, FLOAT : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xi1>
%13 = stablehlo.or %7, %12 : tensor<8xi1>
%14 = stablehlo.constant dense<0x7F800000> : tensor<f32>
%15 = stablehlo.broadcast_in_dim %14, dims = [] : (tensor<f32>) -> tensor<8xf32>
%16 = stablehlo.select %13, %15, %2 : tensor<8xi1>, tensor<8xf32>
return %16 : tensor<8xf32>
}
}
