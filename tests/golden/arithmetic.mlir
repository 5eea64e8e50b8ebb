module @f0 {
func.func public @main(%a0: tensor<3xf32>, %a1: tensor<3xf32>) -> (tensor<3xf32>) {
%0 = stablehlo.constant dense<2.0> : tensor<f32>
%1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<3xf32>
%2 = stablehlo.multiply %1, %a1 : tensor<3xf32>
%3 = stablehlo.add %a0, %2 : tensor<3xf32>
%4 = stablehlo.multiply %a0, %a0 : tensor<3xf32>
%5 = stablehlo.constant dense<1.0> : tensor<f32>
%6 = stablehlo.broadcast_in_dim %5, dims = [] : (tensor<f32>) -> tensor<3xf32>
%7 = stablehlo.subtract %6, %4 : tensor<3xf32>
%8 = stablehlo.divide %3, %7 : tensor<3xf32>
%9 = stablehlo.constant dense<0.0> : tensor<f32>
%10 = stablehlo.broadcast_in_dim %9, dims = [] : (tensor<f32>) -> tensor<3xf32>
%11 = stablehlo.maximum %a0, %10 : tensor<3xf32>
%12 = stablehlo.subtract %8, %11 : tensor<3xf32>
return %12 : tensor<3xf32>
}
}
