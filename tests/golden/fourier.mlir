module @f0 {
func.func public @main(%a0: tensor<8xf32>) -> (tensor<8xf32>) {
%0 = stablehlo.convert %a0 : (tensor<8xf32>) -> tensor<8xcomplex<f32>>
%1 = stablehlo.fft %0, type = FFT, length = [8] : (tensor<8xcomplex<f32>>) -> tensor<8xcomplex<f32>>
%2 = stablehlo.abs %1 : (tensor<8xcomplex<f32>>) -> tensor<8xf32>
%3 = stablehlo.real %1 : (tensor<8xcomplex<f32>>) -> tensor<8xf32>
%4 = stablehlo.abs %3 : tensor<8xf32>
%5 = stablehlo.constant dense<0x7F800000> : tensor<8xf32>
%6 = stablehlo.compare EQ, %4, %5, FLOAT : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xi1>
%7 = stablehlo.imag %1 : (tensor<8xcomplex<f32>>) -> tensor<8xf32>
%8 = stablehlo.abs %7 : tensor<8xf32>
%9 = stablehlo.constant dense<0x7F800000> : tensor<8xf32>
%10 = stablehlo.compare EQ, %8, %9, FLOAT : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xi1>
%11 = stablehlo.or %6, %10 : tensor<8xi1>
%12 = stablehlo.constant dense<0x7F800000> : tensor<f32>
%13 = stablehlo.broadcast_in_dim %12, dims = [] : (tensor<f32>) -> tensor<8xf32>
%14 = stablehlo.select %11, %13, %2 : tensor<8xi1>, tensor<8xf32>
return %14 : tensor<8xf32>
}
}
